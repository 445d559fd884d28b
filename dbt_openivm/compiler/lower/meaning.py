"""When two expressions with subqueries in them say the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_openivm.compiler.algebra import Operator
from dbt_openivm.compiler.lower.expressions import Binder
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.lower.subqueries import LowersQueries, is_subquery, quantifier, query_of
from dbt_openivm.compiler.sql import text
from dbt_openivm.errors import UnsupportedError


@dataclass
class Meaning:
    """Binds expressions over a scope, with the text of each subquery for its value.

    Attributes:
        lowered: the operators of the subqueries on the way.
    """

    lowers: LowersQueries
    scope: Scope
    lowered: list[Operator] = field(default_factory=list)

    def of(self, node: exp.Expr) -> exp.Expr | None:
        """What expressions over the scope's rows have in common that are the same; None if there is no telling."""
        scope = replace(self.scope, subqueries=self)
        try:
            return Binder(scope, self.lowers.facts).bind(node).unnest()
        except UnsupportedError:
            return None

    def value(self, node: exp.Expr, bind: Callable[[exp.Expr], exp.Expr]) -> exp.Expr | None:
        if not is_subquery(node):
            return None
        query = query_of(node)
        self.lowered.append(self.lowers.inner(query, self.scope))
        compared = quantifier(node)
        parts: list[exp.Expr] = [exp.Literal.string(said) for said in (kind_of(node), plain_text(query))]
        if compared is not None:
            parts.append(bind(compared.value))
        return exp.Anonymous(this="openivm_subquery", expressions=parts)


def kind_of(node: exp.Expr) -> str:
    """EXISTS, the comparison, or that it is a value."""
    compared = quantifier(node)
    if compared is not None:
        return f"{compared.comparison.__name__} {'ALL' if compared.every else 'ANY'}"
    return "EXISTS" if isinstance(node, exp.Exists) else "VALUE"


def plain_text(query: exp.Expr) -> str:
    """The text of a query, whatever the case of the names of its tables and columns."""
    while isinstance(query, exp.Subquery | exp.Paren) and (isinstance(query, exp.Paren) or query.is_wrapper):
        query = query.this
    copy = query.copy()
    for name in copy.find_all(exp.Identifier):
        if isinstance(name.parent, exp.Column | exp.Table | exp.TableAlias):
            name.replace(exp.to_identifier(name.name.lower(), quoted=True))
    return text(copy, comments=False)

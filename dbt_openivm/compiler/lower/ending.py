"""What stands behind a select list, or a whole query: QUALIFY, DISTINCT ON, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from dbt_openivm.compiler.algebra import Filter, Operator, Project, column, exactly, unique_name
from dbt_openivm.compiler.lower.bounds import within
from dbt_openivm.compiler.lower.expressions import Binder
from dbt_openivm.compiler.lower.limits import (
    Limit,
    Order,
    find_order,
    first_of_each,
    limit_of,
    limited,
    refuse_unordered,
)
from dbt_openivm.compiler.lower.scope import Binding, Scope
from dbt_openivm.compiler.lower.subqueries import LowersQueries
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import bare
from dbt_openivm.errors import UnsupportedError

Output = tuple[str, str, exp.Expr | None]
"""An output column: its name as written, the operator's column, and the unbound expression where there is one."""

QUALIFY, ON, ORDER = "openivm_qualify", "openivm_on", "openivm_order"


def is_distinct(node: exp.Expr) -> bool:
    """SELECT DISTINCT, without ON."""
    kind = node.args.get("distinct")
    return isinstance(node, exp.Select) and kind is not None and not kind.args.get("on")


@dataclass
class Ending:
    """The ending of a SELECT block: what it reads beside the select list stands in hidden columns.

    Attributes:
        hidden: (hidden column, unbound expression).
        qualify: the column with the predicate of QUALIFY.
        on: the columns of DISTINCT ON, None without one.
        order: what decides which rows are first; empty where nothing asks for it.
    """

    outputs: Sequence[Output]
    lowers: LowersQueries
    hidden: list[tuple[str, exp.Expr]] = field(default_factory=list)
    qualify: str | None = None
    on: list[str] | None = None
    order: Order = ()
    limit: Limit | None = None

    @classmethod
    def of(cls, node: exp.Select, outputs: Sequence[Output], lowers: LowersQueries) -> Ending:
        ending = cls(outputs, lowers)
        qualify, kind = node.args.get("qualify"), node.args.get("distinct")
        if qualify is not None:
            ending.qualify = ending.hide(QUALIFY, qualify.this)
        if is_distinct(node):
            return ending  # its order reads nothing but the output
        ending.limit = limit_of(node)
        if kind is not None:
            ending.on = [ending.find(value, ON) for value in values_of(kind.args["on"])]
        if ending.limit is not None or ending.on is not None:
            ending.order = ending.ordered(node)
        return ending

    def ordered(self, node: exp.Expr) -> Order:
        everything = [out for _, out, _ in self.outputs]
        settings = self.lowers.facts.settings
        return find_order(node.args.get("order"), everything, lambda value: self.find(value, ORDER), settings)

    def find(self, value: exp.Expr, hint: str) -> str:
        """The column of an expression of ORDER BY or DISTINCT ON, by DuckDB's rules: a place, an alias, any value."""
        if isinstance(value, exp.PositionalColumn):
            value = value.this
        if isinstance(value, exp.Literal) and value.is_int:
            return self.outputs[int(value.name) - 1][1]
        if isinstance(value, exp.Column) and len(value.parts) == 1:
            named = [entry for entry in self.outputs if entry[0].lower() == value.name.lower()]
            aliased = [entry for entry in named if not isinstance(entry[2], exp.Column) or entry[2].name != entry[0]]
            if aliased:
                return aliased[-1][1]
        same = next((out for _, out, known in self.outputs if known is not None and known == value), None)
        return same or self.hide(hint, value)

    def hide(self, hint: str, value: exp.Expr) -> str:
        taken = {name.lower() for _, name, _ in self.outputs} | {name for name, _ in self.hidden}
        self.hidden.append((unique_name(hint, taken), value))
        return self.hidden[-1][0]

    def apply(self, operator: Operator, node: exp.Select) -> Operator:
        """The rows that remain of those with the hidden columns."""
        if self.qualify is not None:
            operator = Filter(operator, column(self.qualify))
        if self.on is not None:
            operator = first_of_each(operator, self.on, self.order, exp.Literal.number(1))
        operator = first_rows(operator, self.order, self.limit, node, self.lowers)
        return exactly(operator, tuple(out for _, out, _ in self.outputs))


def values_of(on: exp.Expr) -> list[exp.Expr]:
    return list(on.expressions) if isinstance(on, exp.Tuple) else [bare(on)]


def first_of_query(
    operator: Operator,
    outputs: Sequence[Output],
    node: exp.Expr,
    lowers: LowersQueries,
    shown: Callable[[exp.Expr], exp.Expr] = lambda value: value,
) -> Operator:
    """ORDER BY and LIMIT of a query of which only the output is known: a set operation, VALUES, a SELECT DISTINCT.

    Args:
        shown: puts columns of the output into an expression of ORDER BY that says the same as they.
    """
    limit = limit_of(node)
    if limit is None:
        return operator
    ending = Ending(outputs, lowers)
    order = ending.ordered(node)
    if ending.hidden:
        scope = Scope(operator, [Binding("", tuple((name, out) for name, out, _ in outputs))])
        items: list[tuple[str, exp.Expr]] = [(out, column(out)) for _, out, _ in outputs]
        items += [(name, Binder(scope, lowers.facts).bind(shown(value))) for name, value in ending.hidden]
        operator = Project(operator, tuple(items))
    return exactly(first_rows(operator, order, limit, node, lowers), tuple(out for _, out, _ in outputs))


def first_rows(
    operator: Operator, order: Order, limit: Limit | None, node: exp.Expr, lowers: LowersQueries
) -> Operator:
    """The rows that LIMIT and OFFSET leave."""
    if limit is None or limit.constant:
        return limited(operator, order, limit, node)
    refuse_unordered(order, node)
    if limit.percent:
        raise UnsupportedError(f"LIMIT n% of what is no constant{place(node.args['limit'])}")
    return within(operator, order, limit, lowers)

"""Aggregate calls in a subquery that belong to a query around it: those whose columns are all of that query.

``SELECT g, (SELECT max(y) FROM u WHERE u.k = sum(t.x)) FROM t GROUP BY g`` takes the sum over the groups of `t`. The
query around computes the call beside its own ones, and the subquery refers to it as to a column of the groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from dbt_openivm.compiler.aggregates import is_call, read_by
from dbt_openivm.compiler.algebra import Operator, column
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.expressions import Binder, expand_macro, look_up, rebuild
from dbt_openivm.compiler.lower.outer import outer_column
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.lower.subqueries import LowersQueries, is_subquery, query_of
from dbt_openivm.compiler.places import place
from dbt_openivm.errors import UnsupportedError

CLAUSES = ("expressions", "where", "group", "having", "qualify", "order", "distinct")


def with_outer_calls(node: exp.Select, scope: Scope, facts: CompileFacts) -> exp.Select:
    """A SELECT block whose aggregate calls are its own, with references to those of the queries around it.

    Args:
        scope: of the block's FROM clause.
    """
    if scope.outer is None:
        return node
    copy = node.copy()
    aliases = {item.alias.lower() for item in copy.expressions if isinstance(item, exp.Alias)}
    for clause in CLAUSES:
        value = copy.args.get(clause)
        for part in list(value) if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                refer(part, scope, facts, aliases)
    return copy


def refer(node: exp.Expr, scope: Scope, facts: CompileFacts, aliases: Collection[str] = ()) -> None:
    """Replace the calls in an expression, which has a parent, that belong to a query around."""
    for call in list(calls(node, facts)):
        around = owner(call, scope, aliases)
        if around is not None:
            call.replace(reference(call, around, facts))
    for macro in list(macros(node, facts)):
        body = exp.Paren(this=expand_macro(macro, facts))
        before = body.copy()
        refer(body, scope, facts, aliases)
        if body != before:
            macro.replace(body)


def macros(node: exp.Expr, facts: CompileFacts) -> Iterator[exp.Expr]:
    """The calls of macros in a block's expression whose bodies call aggregates."""
    for part in node.walk(prune=lambda part: isinstance(part, exp.Query)):
        body = None if isinstance(part, exp.Query) else expand_macro(part, facts)
        if body is not None and aggregates(body, facts):
            yield part


def aggregates(node: exp.Expr, facts: CompileFacts) -> bool:
    """Whether aggregates are called somewhere below, in macros too."""
    parts = list(node.walk())
    bodies = filter(None, (expand_macro(part, facts) for part in parts))
    return any(is_call(part, facts) for part in parts) or any(aggregates(body, facts) for body in bodies)


def calls(node: exp.Expr, facts: CompileFacts) -> Iterator[exp.Expr]:
    """The aggregate calls of a block's expression; those of subqueries are theirs."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        parts = list(read_by(node))
    elif is_call(node, facts):
        yield node
        return
    else:
        parts = list(node.iter_expressions())
    for part in parts:
        yield from calls(part, facts)


def owner(call: exp.Expr, scope: Scope, aliases: Collection[str]) -> Scope | None:
    """The scope around whose columns a call reads while it reads none of `scope`; None if the call belongs there."""
    if call.find(exp.Query):
        return None
    names = list(column_parts(call))
    if any(len(parts) == 1 and parts[0].lower() in aliases for parts in names):
        return None
    around: Scope | None = scope
    while around is not None:
        if any(look_up(around, parts, column) is not None for parts in names):
            return None if around is scope else around
        around = around.outer
    return None


def column_parts(call: exp.Expr) -> Iterator[list[str]]:
    """The columns that a call reads, each as the parts of its name; the parameters of lambdas are none."""
    local = {name.name.lower() for function in call.find_all(exp.Lambda) for name in function.expressions}
    for node in call.find_all(exp.Column):
        parts = [part.name for part in node.parts]
        if parts[0].lower() not in local:
            yield parts


def reference(call: exp.Expr, around: Scope, facts: CompileFacts) -> exp.Expr:
    """What stands for a call in the subquery."""
    if around.aggregates is None:
        raise UnsupportedError(f"an aggregate of a query around the subquery that it stands in{place(call)}")
    return outer_column(around.number, around.aggregates(rebuild(call, Binder(around, facts).bind)))


@dataclass
class Ahead:
    """Lowers subqueries, some of them before their turn: see whether aggregate calls of theirs belong to the block."""

    lowers: LowersQueries
    known: dict[int, tuple[exp.Expr, Operator]] = field(default_factory=dict)

    @property
    def facts(self) -> CompileFacts:
        return self.lowers.facts

    def number(self) -> int:
        return self.lowers.number()

    def inner(self, node: exp.Expr, scope: Scope) -> Operator:
        """The operator of a subquery. One that was lowered before its turn is not lowered again."""
        before = self.known.pop(id(node), None)
        return self.lowers.inner(node, scope) if before is None else before[1]

    def look(self, value: exp.Expr, scope: Scope) -> None:
        """Lower the subqueries of an expression that have aggregate calls in them."""
        for node in outermost_subqueries(value):
            query = query_of(node)
            if aggregates(query, self.facts):
                self.known[id(query)] = (query, self.lowers.inner(query, scope))


def outermost_subqueries(node: exp.Expr) -> Iterator[exp.Expr]:
    if is_subquery(node):
        yield node
    else:
        for part in node.iter_expressions():
            yield from outermost_subqueries(part)

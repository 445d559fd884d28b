"""Types the compiler needs from DuckDB: of unions (to cast their branches) and of aggregate arguments and results.

The compiler has no connection. It states what it wants as queries (`probes`) and finds the answers in
`CompileFacts.types`; without an answer a type is None, and the rules that depend on it take the path that is right
for every type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import (
    Aggregate,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    SemiJoin,
    TopK,
    UnionAll,
    column,
)
from dbt_openivm.compiler.rules import Context, SourceState, new

Types = tuple[str, ...]


def live_context(operator: Operator) -> Context:
    """A context that reads every source as it stands."""
    states = {op.relation.key: SourceState(op.relation.sql) for op in operator.walk() if isinstance(op, Scan)}
    return Context(states)


def rows_query(operator: Operator) -> str:
    """The operator's rows as a query over the live sources."""
    context = live_context(operator)
    fragment = context.single(new(operator, context), operator.columns)
    return sql.text(fragment.select(fragment.all_items() or [exp.Literal.number(1)]))


def argument_query(aggregate: Aggregate) -> str:
    """One column for each simple argument, then one for each call."""
    context = live_context(aggregate)
    source = context.single(new(aggregate.child, context), aggregate.child.columns)
    values = [source.bind(call.argument) for _, call in aggregate.calls if call.argument is not None]
    items = [sql.named(value, f"a{index}") for index, value in enumerate(values)]
    calls = [sql.named(source.bind(call.expression), f"c{index}") for index, (_, call) in enumerate(aggregate.calls)]
    # any_value() lets arguments stand beside the calls without naming the keys
    wrapped = [sql.named(exp.AnyValue(this=item.this), item.alias) for item in map(_aliased, items)]
    return sql.text(source.select([*wrapped, *calls]))


def _aliased(item: exp.Expr) -> exp.Expr:
    return item if isinstance(item, exp.Alias) else exp.Alias(this=item, alias=sql.identifier(item.name))


def probes(operator: Operator) -> list[str]:
    """The queries whose result types `compile` would like to know."""
    wanted: list[str] = []
    for op in operator.walk():
        if isinstance(op, UnionAll) and op.columns:
            wanted.extend(rows_query(part) for part in (op, *op.children))
        elif isinstance(op, SemiJoin | OuterJoin):
            wanted.extend(rows_query(part) for part in op.inputs if part.columns)
        elif isinstance(op, Recursive):
            wanted.append(rows_query(op.base))
        elif isinstance(op, TopK):
            wanted.append(rows_query(op.child))
        elif isinstance(op, Aggregate) and op.calls:
            wanted.append(argument_query(op))
    return list(dict.fromkeys(wanted))


def call_types(aggregate: Aggregate, types: Mapping[str, Types]) -> tuple[tuple[str | None, str | None], ...]:
    """(type of the argument, type of the result) of each call; None where unknown."""
    answer = types.get(argument_query(aggregate)) if aggregate.calls else None
    if answer is None:
        return tuple((None, None) for _ in aggregate.calls)
    with_argument = [name for name, call in aggregate.calls if call.argument is not None]
    arguments = dict(zip(with_argument, answer[: len(with_argument)], strict=True))
    results = answer[len(with_argument) :]
    return tuple((arguments.get(name), result) for (name, _), result in zip(aggregate.calls, results, strict=True))


def side_types(join: SemiJoin | OuterJoin | TopK, types: Mapping[str, Types]) -> Types | None:
    """Types of the columns of all inputs; None where some are unknown."""
    found: Types = ()
    for part in join.inputs:
        answer = types.get(rows_query(part)) if part.columns else ()
        if answer is None:
            return None
        found += answer
    return found


def resolve_types(operator: Operator, types: Mapping[str, Types]) -> Operator:
    """Note the types of aggregate calls and of both sides of joins; cast the branches of every UNION ALL to its types.

    DuckDB coerces branches when they meet; a delta may come from one branch alone and would keep that branch's type.
    """
    memo: dict[int, Operator] = {}

    def visit(op: Operator) -> Operator:
        if id(op) not in memo:
            memo[id(op)] = rebuilt(op)
        return memo[id(op)]

    def rebuilt(op: Operator) -> Operator:
        inputs = tuple(visit(child) for child in op.inputs)
        if isinstance(op, UnionAll):
            wanted = types.get(rows_query(op)) if op.columns else None
            answers = [types.get(rows_query(child)) for child in op.children]
            return UnionAll(tuple(retyped(child, wanted, have) for child, have in zip(inputs, answers, strict=True)))
        if isinstance(op, SemiJoin | OuterJoin):
            return replace(op, left=inputs[0], right=inputs[1], types=side_types(op, types))
        if isinstance(op, Recursive):
            return replace(op, base=inputs[0], step=inputs[1], types=types.get(rows_query(op.base)))
        if isinstance(op, TopK):
            return replace(op, child=inputs[0], types=side_types(op, types))
        if isinstance(op, Aggregate):
            return replace(op, child=inputs[0], types=call_types(op, types))
        return op.with_inputs(inputs)

    return visit(operator)


def retyped(operator: Operator, wanted: Types | None, have: Types | None) -> Operator:
    if wanted is None or wanted == have:
        return operator
    have = have or ("",) * len(wanted)
    items = tuple(
        (name, column(name) if a == b else sql.cast(column(name), a))
        for name, a, b in zip(operator.columns, wanted, have, strict=True)
    )
    return Project(operator, items)

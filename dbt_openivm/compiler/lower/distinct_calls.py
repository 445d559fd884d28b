"""Aggregates with DISTINCT: one grouping counts the rows of each value, another one aggregates the values.

So a change costs what the values in it cost, not the group. Every row goes into each of the groupings, so all have the
same groups and are joined by their keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dbt_openivm.compiler.aggregates import describe
from dbt_openivm.compiler.algebra import Aggregate, Call, Filter, Join, Operator, Project, column, unique_name
from dbt_openivm.compiler.components import filtered_argument
from dbt_openivm.compiler.decompose import rule_of
from dbt_openivm.compiler.lower.grouping import Calls, Grouping
from dbt_openivm.compiler.sql import null_safe_equal

IDEMPOTENT = frozenset({"min", "max", "bool_and", "bool_or", "bit_and", "bit_or"})
"""Aggregates to which a second occurrence of a value makes no difference."""
VALUE = "openivm_value"
ROWS = "openivm_rows"
"""The column of one row that shows nothing else."""


def aggregate(grouping: Grouping, scalar: bool) -> Operator:
    """The operator that has the keys and calls of a grouping as its columns."""
    calls = tuple((name, without_idle_distinct(call)) for name, call in grouping.calls)
    if scalar and not calls:
        calls = ((ROWS, describe(exp.Count(this=exp.Star(), big_int=True))),)
    plain = tuple(entry for entry in calls if distinct_argument(entry[1]) is None)
    if len(plain) == len(calls) or not all(adds_up(call) for _, call in calls):
        # a call that has the touched groups recomputed reads their rows anyway, and with them come all others
        return Aggregate(grouping.child, grouping.keys, calls, scalar=scalar)
    parts = [over_values(grouping, values, scalar) for values in by_argument(calls)]
    if plain:
        parts.insert(0, Aggregate(grouping.child, grouping.keys, plain, scalar=scalar))
    return joined(parts, [name for name, _ in grouping.keys], [name for name, _ in calls])


def distinct_argument(call: Call) -> exp.Expr | None:
    """The argument of a call ``f(DISTINCT x)``; None for any other call."""
    arguments = list(bare(call).iter_expressions())
    if len(arguments) != 1 or not isinstance(arguments[0], exp.Distinct) or len(arguments[0].expressions) != 1:
        return None
    argument: exp.Expr = arguments[0].expressions[0]
    return argument


def bare(call: Call) -> exp.Expr:
    """The call without its FILTER."""
    return call.expression.this if isinstance(call.expression, exp.Filter) else call.expression


def with_argument(call: Call, value: exp.Expr) -> exp.Expr:
    """``f(value)`` for the call ``f(DISTINCT x)``, without its FILTER."""
    copy = bare(call).copy()
    next(copy.iter_expressions()).replace(value.copy())
    return copy


def without_idle_distinct(call: Call) -> Call:
    argument = distinct_argument(call)
    if argument is None or call.function not in IDEMPOTENT:
        return call
    inner = with_argument(call, argument)
    if call.condition is not None:
        inner = exp.Filter(this=inner, expression=exp.Where(this=call.condition.copy()))
    return describe(inner)


def adds_up(call: Call) -> bool:
    """Whether the call is made of components that add up, once its DISTINCT is taken away."""
    argument = distinct_argument(call)
    return rule_of(call if argument is None else describe(with_argument(call, argument))) is not None


def by_argument(calls: Calls) -> list[tuple[exp.Expr, Calls]]:
    """The calls with DISTINCT, those over the same values together."""
    found: list[tuple[exp.Expr, Calls]] = []
    for name, call in calls:
        argument = distinct_argument(call)
        if argument is None:
            continue
        # rows that FILTER leaves out count as NULL, which no aggregate with additive components counts
        value = filtered_argument(Call(call.function, argument, call.condition, call.expression, simple=True))
        position = next((index for index, (known, _) in enumerate(found) if known == value), None)
        if position is None:
            found.append((value, ((name, call),)))
        else:
            found[position] = (value, (*found[position][1], (name, call)))
    return found


def over_values(grouping: Grouping, values: tuple[exp.Expr, Calls], scalar: bool) -> Aggregate:
    """The values of each group once each, aggregated."""
    value, calls = values
    held = Aggregate(grouping.child, (*grouping.keys, (VALUE, value)), ())
    described = tuple((name, describe(with_argument(call, column(VALUE)))) for name, call in calls)
    return Aggregate(held, tuple((name, column(name)) for name, _ in grouping.keys), described, scalar=scalar)


def joined(parts: Sequence[Operator], keys: Sequence[str], calls: Sequence[str]) -> Operator:
    """One operator for parts that have one row each for the same keys."""
    if len(parts) == 1:
        return parts[0]
    taken: set[str] = set()
    names: list[tuple[str, int, str]] = []
    same: list[exp.Expr] = []
    for position, part in enumerate(parts):
        for name in part.columns:
            out = unique_name(name, taken)
            names.append((out, position, name))
            if position and name in keys:
                same.append(null_safe_equal(column(name), column(out)))
    operator: Operator = Join(tuple(parts), tuple(names))
    for condition in same:
        operator = Filter(operator, condition)
    return Project(operator, tuple((name, column(name)) for name in (*keys, *calls)))

"""Grouping sets: what ROLLUP, CUBE and GROUPING SETS stand for, and one grouping that computes them all.

The rows are there once for each set, with the number of the set and with NULL for the keys that are not in it. Grouped
by the number and the keys, they give every set's groups: one state, one MERGE.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sqlglot import exp

from dbt_openivm.compiler.algebra import Call, Constant, Operator, Project, UnionAll, column, unique_name
from dbt_openivm.compiler.sql import cast
from dbt_openivm.errors import UnsupportedError

Keys = tuple[tuple[str, exp.Expr], ...]
Calls = tuple[tuple[str, Call], ...]

MACROS = {
    "geomean": True,
    "geometric_mean": True,
    "wavg": True,
    "weighted_avg": True,
    "json_group_array": False,
    "json_group_object": False,
    "json_group_structure": False,
    "variant_group_array": False,
}
"""Aggregates that are macros, which DuckDB gives no FILTER; whether they skip rows whose first argument is NULL."""

KINDS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def grouping_sets(group: exp.Group) -> list[list[exp.Expr]]:
    """Every set of grouping expressions of a GROUP BY, as written; plain expressions stand in each.

    Example:
        >>> import sqlglot
        >>> query = sqlglot.parse_one("SELECT 1 GROUP BY a, ROLLUP (b, c)", dialect="duckdb")
        >>> [[value.name for value in found] for found in grouping_sets(query.args["group"])]
        [['a', 'b', 'c'], ['a', 'b'], ['a']]
    """
    elements = list(group.expressions)
    for name in ("grouping_sets", "rollup", "cube"):
        elements += [value for value in group.args.get(name) or [] if isinstance(value, exp.Expr)]
    return [joined(parts) for parts in product(*map(sets_of, elements))]


def sets_of(element: exp.Expr) -> list[list[exp.Expr]]:
    """The sets that one element of a GROUP BY stands for."""
    if isinstance(element, exp.GroupingSets):
        return [found for part in element.expressions for found in sets_of(part)]
    parts = [values_of(part) for part in element.expressions] if isinstance(element, KINDS) else []
    if isinstance(element, exp.Rollup):
        return [joined(parts[:length]) for length in range(len(parts), -1, -1)]
    if isinstance(element, exp.Cube):
        choices = product((True, False), repeat=len(parts))
        return [joined(part for part, taken in zip(parts, choice, strict=True) if taken) for choice in choices]
    return [values_of(element)]


def values_of(element: exp.Expr) -> list[exp.Expr]:
    """The expressions of an element: those in its parentheses, if it has some."""
    if isinstance(element, exp.Tuple):
        return list(element.expressions)
    return [element]


def joined(parts: Iterable[Sequence[exp.Expr]]) -> list[exp.Expr]:
    return [value for part in parts for value in part]


SET = "openivm_set"
REAL = "openivm_real"


@dataclass(frozen=True)
class Grouping:
    """What is grouped, by what, and the aggregate calls over it."""

    child: Operator
    keys: Keys
    calls: Calls


def over_sets(grouping: Grouping, sets: Sequence[Sequence[str]]) -> Grouping:
    """A grouping by sets of keys, each given as the keys' names, as a grouping by all keys and `SET`.

    The empty set has a group whatever happens. So there is a row of no source for it, which no call counts.
    """
    child = grouping.child
    taken = {name.lower() for name in child.columns}
    inner = {name: unique_name(name, taken) for name, _ in grouping.keys}
    number, real = unique_name(SET, taken), unique_name(REAL, taken)
    whole = not all(sets)
    branches: list[Operator] = []
    for position, members in enumerate(sets):
        items: list[tuple[str, exp.Expr]] = [(name, column(name)) for name in child.columns]
        items += [(inner[name], value if name in members else null_of(value)) for name, value in grouping.keys]
        items += [(number, literal(position))] + ([(real, exp.Boolean(this=True))] if whole else [])
        branches.append(Project(child, tuple(items)))
    calls = grouping.calls
    if whole:
        nulls = [exp.Null() for _ in (*child.columns, *inner)]
        empty = [position for position, members in enumerate(sets) if not members]
        rows = tuple((*nulls, literal(position), exp.Boolean(this=False)) for position in empty)
        branches.append(Constant(rows, branches[0].columns))
        calls = tuple((name, only_where(call, column(real))) for name, call in calls)
    keys = tuple((name, column(inner[name])) for name, _ in grouping.keys)
    return Grouping(UnionAll(tuple(branches)), (*keys, (SET, column(number))), calls)


def null_of(value: exp.Expr) -> exp.Expr:
    """NULL of the value's type."""
    return exp.Case(ifs=[exp.If(this=exp.Boolean(this=False), true=value.copy())])


def literal(number: int) -> exp.Expr:
    return exp.Literal.number(number)


def only_where(call: Call, condition: exp.Expr) -> Call:
    """The call over the rows that fulfil one more condition."""
    inner = call.expression.this if isinstance(call.expression, exp.Filter) else call.expression
    both = condition if call.condition is None else exp.And(this=condition, expression=exp.Paren(this=call.condition))
    if call.function in MACROS:
        if not MACROS[call.function]:
            raise UnsupportedError(f"{call.function}() under a grouping set without keys")
        return replace(call, condition=both, expression=only_values_where(inner, both))
    return replace(call, condition=both, expression=exp.Filter(this=inner, expression=exp.Where(this=both)))


def only_values_where(call: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """A call that skips NULL with NULL for the first argument of other rows."""
    copy = call.copy()
    first = next(copy.iter_expressions())
    first.replace(exp.Case(ifs=[exp.If(this=condition.copy(), true=first.copy())]))
    return copy


def grouping_value(sets: Sequence[Sequence[str]], names: Sequence[str]) -> exp.Expr:
    """GROUPING(): a bit for each of the keys, the last the lowest, which is set where the key is not grouped by."""
    values = [sum((name not in members) << bit for bit, name in enumerate(reversed(names))) for members in sets]
    if len(set(values)) == 1:
        return cast(literal(values[0]), "BIGINT")
    ifs = [exp.If(this=literal(position), true=literal(value)) for position, value in enumerate(values)]
    return cast(exp.Case(this=column(SET), ifs=ifs), "BIGINT")

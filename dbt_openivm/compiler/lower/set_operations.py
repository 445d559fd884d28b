"""Lower set operations: all of them to unions whose rows are counted by group.

Rows are compared as DuckDB's set operations and groupings compare them: NULL equals NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dbt_openivm.compiler.algebra import (
    Aggregate,
    Call,
    Filter,
    Operator,
    Project,
    UnionAll,
    Unnest,
    column,
    exactly,
    unique_name,
)
from dbt_openivm.compiler.lower.select import distinct
from dbt_openivm.compiler.places import place
from dbt_openivm.errors import UnsupportedError

Side = tuple[Operator, tuple[str, ...]]
"""A branch: its operator and the names of its columns as written."""

LEFT, RIGHT = "openivm_left", "openivm_right"
FROM_LEFT = "openivm_from_left"
COPIES, COPY = "openivm_copies", "openivm_copy"


def combine(node: exp.SetOperation, left: Side, right: Side) -> Side:
    """The operator of a set operation over its lowered branches, and its names."""
    if node.args.get("by_name"):
        left, right = by_name(left, right)
    if len(left[1]) != len(right[1]):
        raise UnsupportedError(f"branches with {len(left[1])} and {len(right[1])} columns{place(node)}")
    keep_duplicates = node.args.get("distinct") is False
    if isinstance(node, exp.Union):
        return union(left[0], right[0], keep_duplicates), left[1]
    if not isinstance(node, exp.Intersect | exp.Except):
        raise UnsupportedError(f"{type(node).__name__.upper()}{place(node)}")
    return matched(left[0], right[0], isinstance(node, exp.Except), keep_duplicates), left[1]


def by_name(left: Side, right: Side) -> tuple[Side, Side]:
    """Both branches with the columns of both, those of the left first; NULL where a branch has none of a name."""
    names = {name.lower(): name for name in (*right[1], *left[1])}
    order = list(dict.fromkeys(name.lower() for name in (*left[1], *right[1])))
    shown = tuple(names[key] for key in order)
    return (aligned(left, order), shown), (aligned(right, order), shown)


def aligned(side: Side, order: Sequence[str]) -> Operator:
    operator, written = side
    found = {name.lower(): column(inner) for name, inner in zip(written, operator.columns, strict=True)}
    taken: set[str] = set()
    items = tuple((unique_name(key, taken), found.get(key) or exp.Null()) for key in order)
    return Project(operator, items)


def union(left: Operator, right: Operator, keep_duplicates: bool) -> Operator:
    if keep_duplicates:
        return UnionAll((left, right))
    return distinct(UnionAll((without_distinct(left), without_distinct(right))))


def without_distinct(operator: Operator) -> Operator:
    """What `distinct` was applied to, in the same columns: duplicates are removed further up anyway."""
    if isinstance(operator, Project) and isinstance(operator.child, Aggregate) and operator.child.distinct:
        grouped = operator.child
        keys = dict(grouped.keys)
        values = [(name, keys[value.name]) for name, value in operator.items if isinstance(value, exp.Column)]
        if len(values) == len(operator.items) == len(keys):
            return exactly(Project(grouped.child, tuple(values)), operator.columns)
    return operator


def matched(left: Operator, right: Operator, subtract: bool, keep_duplicates: bool) -> Operator:
    """INTERSECT or EXCEPT: count each row on either side, keep it by the counts, with ALL as often as they say."""
    if not keep_duplicates:
        left, right = without_distinct(left), without_distinct(right)
    tag = unique_name(FROM_LEFT, {name.lower() for name in (*left.columns, *right.columns)})
    child = UnionAll((tagged(left, tag, True), tagged(right, tag, False)))
    keys = tuple((f"openivm_key_{index}", column(name)) for index, name in enumerate(left.columns))
    calls = ((LEFT, count_where(column(tag))), (RIGHT, count_where(exp.Not(this=column(tag)))))
    counted: Operator = Aggregate(child, keys, calls)
    shown = tuple((name, column(key)) for name, (key, _) in zip(left.columns, keys, strict=True))
    kept = Filter(counted, condition(subtract, keep_duplicates))
    if not keep_duplicates:
        return Project(kept, shown)
    taken = {name.lower() for name in left.columns}
    copies, copy = unique_name(COPIES, taken), unique_name(COPY, taken)
    repeated = Project(kept, (*shown, (copies, number_of_copies(subtract))))
    lists = Unnest(repeated, ((copy, exp.Anonymous(this="range", expressions=[column(copies)])),))
    return exactly(lists, left.columns)


def tagged(operator: Operator, tag: str, value: bool) -> Operator:
    items = tuple((name, column(name)) for name in operator.columns)
    return Project(operator, (*items, (tag, exp.Boolean(this=value))))


def count_where(condition: exp.Expr) -> Call:
    call = exp.Filter(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Where(this=condition))
    return Call("count_star", None, condition, call, simple=True)


def condition(subtract: bool, keep_duplicates: bool) -> exp.Expr:
    """Whether a row is in the result at all, by its counts."""
    zero = exp.Literal.number(0)
    if subtract and keep_duplicates:
        return exp.GT(this=column(LEFT), expression=column(RIGHT))
    on_left = exp.GT(this=column(LEFT), expression=zero)
    other = exp.EQ if subtract else exp.GT
    return exp.And(this=on_left, expression=other(this=column(RIGHT), expression=zero.copy()))


def number_of_copies(subtract: bool) -> exp.Expr:
    if subtract:
        return exp.Sub(this=column(LEFT), expression=column(RIGHT))
    return exp.Least(this=column(LEFT), expressions=[column(RIGHT)], ignore_nulls=True)

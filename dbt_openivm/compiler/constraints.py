"""What unique and foreign keys of relations tell of an operator's rows.

A row that is new in a parent has a key that no row there had before, and each old row of a child refers to a row that
was there. So where a join equates the foreign key, rows that are only added to the parent meet no old row of the child:
``old(child) x delta(parent)`` is empty, and with it every term of a delta that holds this product.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Filter, Join, Operator, OuterJoin, Project, Scan, SemiJoin
from dbt_openivm.compiler.algebra.base import References

Place = tuple[int, str]
"""A column of an input: (its index, the column)."""


def unique_keys(operator: Operator) -> list[tuple[str, ...]]:
    """Sets of the operator's columns in which no two of its rows are equal, as far as is known."""
    if isinstance(operator, Scan):
        shown = {source: out for out, source in reversed(operator.names)}
        return renamed(operator.relation.unique_keys, shown)
    if isinstance(operator, Filter):
        return unique_keys(operator.child)
    if isinstance(operator, SemiJoin):
        return unique_keys(operator.left)
    if isinstance(operator, Project):
        shown = {value.name: out for out, value in reversed(operator.items) if isinstance(value, exp.Column)}
        return renamed(unique_keys(operator.child), shown)
    if isinstance(operator, Join):
        whole: list[tuple[str, ...]] = [()]
        for index, child in enumerate(operator.children):
            shown = {inner: out for out, position, inner in reversed(operator.names) if position == index}
            whole = [(*one, *other) for one in whole for other in renamed(unique_keys(child), shown)[:1]]
        return whole
    return []


def renamed(keys: Iterable[tuple[str, ...]], shown: dict[str, str]) -> list[tuple[str, ...]]:
    """The keys all of whose columns are shown, as they are called there."""
    return [tuple(shown[name] for name in key) for key in keys if all(name in shown for name in key)]


def with_references(operator: Operator) -> Operator:
    """The same tree, whose joins know which of their inputs refer to which others by a foreign key."""
    done: dict[tuple[int, tuple[int, ...]], Operator] = {}

    def visit(op: Operator, kept: tuple[exp.Expr, ...] = ()) -> Operator:
        """`kept`: the conditions right above a join, which go with it: another reader of the join has other ones."""
        key = (id(op), tuple(map(id, kept)))
        if key not in done:
            below = (*kept, op.predicate) if isinstance(op, Filter) and is_joined(op) else ()
            done[key] = referring(op.with_inputs(tuple(visit(child, below) for child in op.inputs)), kept)
        return done[key]

    return visit(operator)


def is_joined(operator: Operator) -> bool:
    """Whether below filters there is a join."""
    while isinstance(operator, Filter):
        operator = operator.child
    return isinstance(operator, Join)


def referring(operator: Operator, kept: tuple[exp.Expr, ...]) -> Operator:
    if isinstance(operator, Join):
        places = {out: (index, inner) for out, index, inner in operator.names}
        return replace(operator, references=references(operator.children, equalities(kept, places)))
    if isinstance(operator, OuterJoin):
        places = {out: (index, inner) for out, index, inner in operator.names}
        return replace(operator, references=references(operator.inputs, equalities([operator.on], places)))
    if isinstance(operator, SemiJoin):
        places = {name: (0, name) for name in operator.left.columns} | {
            name: (1, inner) for name, inner in operator.right_names
        }
        return replace(operator, references=references(operator.inputs, equalities([operator.on], places)))
    return operator


def equalities(conditions: Iterable[exp.Expr], places: dict[str, Place]) -> set[tuple[Place, Place]]:
    """The columns that a conjunction equates, in both orders."""
    found = set()
    for part in (part for condition in conditions for part in sql.conjuncts(condition)):
        if isinstance(part, exp.EQ):
            sides = [sql.bare(side) for side in (part.this, part.expression)]
            if all(isinstance(side, exp.Column) and side.name in places for side in sides):
                one, other = (places[side.name] for side in sides)
                found |= {(one, other), (other, one)}
    return found


def references(inputs: tuple[Operator, ...], equal: set[tuple[Place, Place]]) -> References:
    """The pairs (parent, child) of inputs of which a whole foreign key is equated."""
    equated: dict[tuple[int, int], set[tuple[str, str]]] = {}
    for (child, inner), (parent, other) in equal:
        one, two = origin(inputs[child], inner), origin(inputs[parent], other)
        # a comparison of two types may find equal what is not: 1 = '01'
        if child != parent and one and two and type_of(*one) == type_of(*two):
            equated.setdefault((parent, child), set()).add((one[1], two[1]))
    return tuple(sorted(pair for pair, columns in equated.items() if refers(inputs, pair, columns)))


def refers(inputs: tuple[Operator, ...], pair: tuple[int, int], equated: set[tuple[str, str]]) -> bool:
    """Whether all columns of a foreign key of the child are equated with those that they refer to in the parent."""
    parent, child = (source(inputs[index]) for index in pair)
    assert parent is not None
    assert child is not None
    return any(
        key.parent == parent.relation.key and set(zip(key.columns, key.parent_columns, strict=True)) <= equated
        for key in child.relation.foreign_keys
    )


def type_of(scan: Scan, name: str) -> str:
    return next(column.type for column in scan.relation.columns if column.name == name)


def origin(operator: Operator, name: str) -> tuple[Scan, str] | None:
    """The scan whose rows an operator hands on one by one, maybe not all, and the column of it that `name` shows."""
    while not isinstance(operator, Scan):
        if isinstance(operator, Project):
            value = dict(operator.items)[name]
            if not isinstance(value, exp.Column):
                return None
            name = value.name
        elif not isinstance(operator, Filter):
            return None
        operator = operator.child
    return operator, dict(operator.names)[name]


def source(operator: Operator) -> Scan | None:
    """The one scan whose rows an operator hands on one by one."""
    while isinstance(operator, Project | Filter):
        operator = operator.child
    return operator if isinstance(operator, Scan) else None

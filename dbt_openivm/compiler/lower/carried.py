"""Operators that hand columns of their inputs on besides their own, as unnesting by domain asks of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from dbt_openivm.compiler.algebra import (
    Aggregate,
    Filter,
    Join,
    Operator,
    OuterJoin,
    Project,
    SemiJoin,
    TopK,
    UnionAll,
    Window,
    column,
    exactly,
)
from dbt_openivm.compiler.lower.limits import first_of_each
from dbt_openivm.compiler.sql import conjunction, null_safe_equal


def carried(operator: Operator, inputs: Mapping[int, Operator], names: tuple[str, ...]) -> Operator:
    """`operator` over some inputs that have the columns `names` besides, which it hands on.

    Where several inputs have them, only rows meet that agree in them.
    """
    children = tuple(inputs.get(index, child) for index, child in enumerate(operator.inputs))
    own = [(name, column(name)) for name in names]
    if isinstance(operator, Project):
        return Project(children[0], (*own, *operator.items))
    if isinstance(operator, Aggregate):
        return replace(operator, child=children[0], keys=(*own, *operator.keys), scalar=False)
    if isinstance(operator, Window):
        calls = tuple((name, partitioned(call, names)) for name, call in operator.calls)
        keys = tuple((f"{name}_key", column(name)) for name in names)
        return replace(operator, child=children[0], keys=(*keys, *operator.keys), calls=calls)
    if isinstance(operator, TopK):
        return first_of_each(children[0], names, operator.order, operator.limit, operator.offset)
    if isinstance(operator, UnionAll):
        order = [(*names, *child.columns) for child in operator.children]
        return UnionAll(tuple(exactly(child, columns) for child, columns in zip(children, order, strict=True)))
    if isinstance(operator, Join):
        return carried_join(operator, children, tuple(inputs), names)
    if isinstance(operator, SemiJoin):
        on, right_names = operator.on, operator.right_names
        if 1 in inputs:
            right_names = (*right_names, *((f"{name}_right", name) for name in names))
            on = agreeing(on, names, "_right")
        return replace(operator, left=children[0], right=children[1], on=on, right_names=right_names)
    if isinstance(operator, OuterJoin):
        return carried_outer(operator, children, tuple(inputs), names)
    return operator.with_inputs(children)


def partitioned(call: exp.Expr, names: tuple[str, ...]) -> exp.Expr:
    """A window call with more keys of its partitions."""
    copy = call.copy()
    for window in [copy] if isinstance(copy, exp.Window) else list(copy.find_all(exp.Window)):
        window.set("partition_by", [*map(column, names), *(window.args.get("partition_by") or [])])
    return copy


def agreeing(on: exp.Expr, names: tuple[str, ...], suffix: str) -> exp.Expr:
    result = conjunction([on, *(null_safe_equal(column(name), column(name + suffix)) for name in names)])
    assert result is not None
    return result


def carried_join(
    join: Join, children: tuple[Operator, ...], having: tuple[int, ...], names: tuple[str, ...]
) -> Operator:
    entries = list(join.names) + [(name, having[0], name) for name in names]
    others = [(index, f"_{index}") for index in having[1:]]
    entries += [(name + suffix, index, name) for index, suffix in others for name in names]
    result: Operator = Join(children, tuple(entries))
    for _, suffix in others:
        for name in names:
            result = Filter(result, null_safe_equal(column(name), column(name + suffix)))
    return exactly(result, (*join.columns, *names)) if others else result


def carried_outer(
    join: OuterJoin, children: tuple[Operator, ...], having: tuple[int, ...], names: tuple[str, ...]
) -> Operator:
    first = having[0] if len(having) == 1 or join.left_kept else 1
    if len(having) == 1:
        entries = (*join.names, *((name, first, name) for name in names))
        return replace(join, left=children[0], right=children[1], names=entries)
    entries = (
        *join.names,
        *((name, first, name) for name in names),
        *((f"{name}_x", 1 - first, name) for name in names),
    )
    on = agreeing(join.on, names, "_x")
    result = replace(join, left=children[0], right=children[1], names=entries, on=on)
    if not (join.left_kept and join.right_kept):
        return exactly(result, (*join.columns, *names))
    either = [(name, exp.Coalesce(this=column(name), expressions=[column(f"{name}_x")])) for name in names]
    return Project(result, (*((name, column(name)) for name in join.columns), *either))

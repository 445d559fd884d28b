"""Additive state of folds: bits, and products."""

from __future__ import annotations

from dbt_openivm.compiler.algebra import Call
from dbt_openivm.compiler.components import (
    INTEGERS,
    Component,
    Decomposition,
    Rule,
    W,
    additive,
    counted,
    filtered_argument,
    non_null,
)

PRODUCT_SIZE = "600"
"""A product is trusted while no order of its factors leaves the range of DOUBLE: by the sum of their logarithms."""
PRODUCT_STEPS = "1e5"
"""How many factors may come and go before rounding is worth a recompute."""


def bits_rule(function: str, operator: str) -> Rule:
    """BIT_AND and BIT_OR: inserts are folded in; a deleted value makes the group stale."""

    def rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
        argument = result.argument(filtered_argument(call))
        name = f"openivm_{function}_{argument.removeprefix('openivm_')}"
        inserted, deleted = f"{name}_in", f"{name}_out"
        deltas = (
            (inserted, f'{function}("{argument}") FILTER (WHERE {W} > 0)'),
            (deleted, f'count("{argument}") FILTER (WHERE {W} < 0)'),
        )
        old, new = f't."{name}"', f'd."{inserted}"'
        merged = f"CASE WHEN {new} IS NULL THEN {old} WHEN {old} IS NULL THEN {new} ELSE {old} {operator} {new} END"
        whole, stale = f'{function}("{argument}")', f'd."{deleted}" > 0'
        return f'"{result.add(Component(name, whole, deltas, merged, new, stale, signed=True, inserted=whole))}"'

    return rule


def bit_xor_rule(result: Decomposition, call: Call, type_: str | None) -> str | None:
    """BIT_XOR undoes itself: what is deleted is folded in once more."""
    if type_ not in {*INTEGERS, "UHUGEINT"}:
        return None
    argument = result.argument(filtered_argument(call))
    seen = result.add(non_null(argument))
    name = f"openivm_bit_xor_{argument.removeprefix('openivm_')}"
    delta = f'coalesce(bit_xor("{argument}") FILTER (WHERE {W} % 2 <> 0), 0)'
    whole = f'coalesce(bit_xor("{argument}"), 0)'
    result.add(Component(name, whole, ((name, delta),), f'xor(t."{name}", d."{name}")', f'd."{name}"', inserted=whole))
    return f'CASE WHEN "{seen}" > 0 THEN "{name}" END'


def product_rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
    """The product of the factors that are not zero, which divides; zeros are counted."""
    argument = result.argument(filtered_argument(call))
    short, value = argument.removeprefix("openivm_"), f'CAST("{argument}" AS DOUBLE)'
    seen, zeros = result.add(non_null(argument)), result.add(counted("zero", argument, f"{value} = 0"))
    factor, logarithm = f"CASE WHEN {value} <> 0 THEN {value} END", f"abs(ln(abs({value})))"
    some = f"FILTER (WHERE {value} <> 0)"
    size = result.add(
        additive(
            f"openivm_product_size_{short}",
            f"coalesce(sum({logarithm}) {some}, 0)",
            f"coalesce(sum({logarithm} * {W}) {some}, 0)",
        )
    )
    steps = result.add(
        additive(f"openivm_steps_{short}", f'count("{argument}")', f"coalesce(sum(abs({W})), 0)"),
    )
    name = f"openivm_product_{short}"
    new_size, new_steps = f'(t."{size}" + d."{size}")', f'(t."{steps}" + d."{steps}")'
    stale = f"(NOT isfinite({new_size}) OR {new_size} > {PRODUCT_SIZE} OR {new_steps} > {PRODUCT_STEPS})"
    delta = f"coalesce(product(pow({factor}, {W})), 1)"
    whole = f"coalesce(product({factor}), 1)"
    result.add(
        Component(name, whole, ((name, delta),), f'(t."{name}" * d."{name}")', f'd."{name}"', stale, inserted=whole)
    )
    return f'CASE WHEN "{seen}" > 0 THEN CASE WHEN "{zeros}" > 0 THEN 0 ELSE "{name}" END END'


FOLDS: dict[str, Rule] = {
    "bit_and": bits_rule("bit_and", "&"),
    "bit_or": bits_rule("bit_or", "|"),
    "bit_xor": bit_xor_rule,
    "product": product_rule,
}

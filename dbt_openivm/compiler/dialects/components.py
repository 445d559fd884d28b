"""Which aggregate calls have additive state on PostgreSQL, in the types of PostgreSQL.

Sums are kept in NUMERIC, which neither overflows nor rounds, so that what comes and goes again leaves no trace:

- ``sum(bigint)`` and ``avg`` of exact numbers are what PostgreSQL itself makes of this sum. The scale of an average
  depends on the scale of the sum, so only numbers of one scale are added up.
- A double is added up as the NUMERIC of its 15 digits; PostgreSQL has an error where a sum of doubles overflows on the
  way. Where the sum is small beside the magnitudes in it, those digits do not do, and the group is recomputed.
- NaN and infinity never leave a sum by subtraction: the group is recomputed.

Everything else (variances, sums of reals and of numbers whose scale varies) is recomputed for each touched group.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt_openivm.compiler import components
from dbt_openivm.compiler.algebra import Call
from dbt_openivm.compiler.components import (
    SUM_CONDITION,
    Component,
    Decomposition,
    Rule,
    W,
    filtered_argument,
    non_null,
    nullable_sum,
)
from dbt_openivm.compiler.dialects.types import INTEGERS, decimal, scale_of

ORDERED = ("BOOLEAN", *INTEGERS, "DOUBLE", "FLOAT", "VARCHAR", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
"""Types whose values are equal only where they look equal, so that it does not matter which of them is the least."""


def exact_sum(argument: str, type_: str) -> Component:
    value = f'CAST("{argument}" AS {decimal(0)})' if type_ in INTEGERS else f'"{argument}"'
    name = f"openivm_sum_{argument.removeprefix('openivm_')}"
    return nullable_sum(name, argument, value, None if type_ in INTEGERS else not_finite(new_sum(name)))


def new_sum(name: str) -> str:
    return f'(coalesce(t."{name}", 0) + d."{name}")'


def not_finite(value: str) -> str:
    """NaN less NaN is NaN, and so is infinity less infinity."""
    return f"({value} - {value} <> 0)"


def float_sum(argument: str) -> tuple[Component, Component]:
    value = f'CAST(CAST("{argument}" AS DOUBLE) AS {decimal(0)})'
    short = argument.removeprefix("openivm_")
    name, size = f"openivm_sum_{short}", f"openivm_magnitude_{short}"
    new, weight = new_sum(name), f'(t."{size}" + d."{size}")'
    stale = f"({not_finite(new)} OR {weight} > {SUM_CONDITION} * abs({new}))"
    whole, change = f"coalesce(sum(abs({value})), 0)", f"coalesce(sum(abs({value}) * {W}), 0)"
    return nullable_sum(name, argument, value, stale), components.additive(size, whole, change)


def summed(result: Decomposition, call: Call, type_: str | None) -> tuple[str, str] | None:
    """Components (non-null count, sum) of an argument that can be summed by addition."""
    if type_ is None or (scale_of(type_) is None and type_ not in ("DOUBLE", "FLOAT")):
        return None
    argument = result.argument(filtered_argument(call))
    seen = result.add(non_null(argument))
    if scale_of(type_) is not None:
        return seen, result.add(exact_sum(argument, type_))
    total, size = float_sum(argument)
    result.add(size)
    return seen, result.add(total)


def sum_rule(result: Decomposition, call: Call, type_: str | None) -> str | None:
    """A sum of reals is rounded to a real at every step, in an order that nobody knows."""
    names = None if type_ == "FLOAT" else summed(result, call, type_)
    if names is None or type_ is None:
        return None
    # bare where it has the type already, so that the visible column holds the component
    return f'"{names[1]}"' if scale_of(type_) is not None and type_ not in ("SMALLINT", "INTEGER") else cast(names[1])


def cast(name: str) -> str:
    """In parentheses, so that it is not taken for the component itself: the cast to the call's type is put around."""
    return f'("{name}")'


def avg_rule(result: Decomposition, call: Call, type_: str | None) -> str | None:
    names = summed(result, call, type_)
    if names is None:
        return None
    value = f'CAST("{names[1]}" AS DOUBLE)' if type_ in ("DOUBLE", "FLOAT") else f'"{names[1]}"'
    return f'{value} / "{names[0]}"'


def extremum_rule(function: str) -> Rule:
    def rule(result: Decomposition, call: Call, type_: str | None) -> str | None:
        if type_ not in ORDERED and not (type_ and type_.startswith("DECIMAL")):
            return None
        return f'"{result.add(components.extremum(function, result.argument(filtered_argument(call))))}"'

    return rule


RULES: Mapping[str, Rule] = {
    **{name: components.RULES[name] for name in ("count_star", "count", "bool_and", "bool_or")},
    "sum": sum_rule,
    "avg": avg_rule,
    "min": extremum_rule("min"),
    "max": extremum_rule("max"),
}

"""Decompose aggregate calls into additive state.

Each call becomes components (hidden columns of the state) with three forms: how the component is computed from all
rows of a group, how its change is computed from the group's delta, and how old value and change merge. `final` puts
components together
to the call's value. Where addition cannot be undone, a component says when its group is stale and must be recomputed:

- a floating sum keeps the magnitude of everything that went through it since the group was last recomputed; once that
is far
  larger than the sum, cancellation may have eaten digits (an inserted and deleted 1e300 being the extreme), and NaN
  or infinity never leave by subtraction;
- a minimum or maximum whose extremum was deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import sqlglot
from sqlglot import exp

from dbt_openivm.compiler.algebra import Call
from dbt_openivm.names import COUNT_STAR, MULTIPLICITY

SUM_CONDITION = "1e3"
"""A floating sum is trusted while the magnitude that went through it is below this multiple of the sum."""

VARIANCE_CONDITION = "1e4"
"""A floating variance is trusted while the squares that went through it are below this multiple of the squared
deviations."""

SMALL_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"})
INTEGERS = SMALL_INTEGERS | {"BIGINT", "UBIGINT", "HUGEINT"}
FLOATS = frozenset({"FLOAT", "DOUBLE", "UHUGEINT"})  # DuckDB sums UHUGEINT as DOUBLE


@dataclass(frozen=True)
class Component:
    """One hidden column of the state.

    All texts are SQL. Arguments are columns of the delta's inner query; ``t`` is the state's row, ``d`` the delta's
    group.

    Attributes:
        whole: over all rows of a group.
        deltas: columns that the delta query offers for it, as (name, SQL over weighted rows).
        merged: new value from ``t`` and ``d``.
        initial: value of a new group, from ``d``.
        stale: condition under which the group must be recomputed, or None.
        signed: whether the delta must be consolidated first (the sign of single rows matters, not only their sum).
        inserted: the first of `deltas` where every row weighs 1; it may then not read the weight. None: the same text.
    """

    name: str
    whole: str
    deltas: tuple[tuple[str, str], ...]
    merged: str
    initial: str
    stale: str | None = None
    signed: bool = False
    inserted: str | None = None


@dataclass
class Decomposition:
    """The components of one aggregate, and each call's value made of them; `recompute` names calls that have no such
    form."""

    arguments: dict[str, exp.Expr] = field(default_factory=dict)
    components: dict[str, Component] = field(default_factory=dict)
    finals: dict[str, exp.Expr] = field(default_factory=dict)
    recompute: dict[str, str] = field(default_factory=dict)

    def argument(self, value: exp.Expr) -> str:
        """The name of the inner query's column that holds `value`."""
        for name, known in self.arguments.items():
            if known == value:
                return name
        name = f"openivm_arg_{len(self.arguments)}"
        self.arguments[name] = value
        return name

    def add(self, component: Component) -> str:
        self.components.setdefault(component.name, component)
        return component.name


W = f'"{MULTIPLICITY}"'


def additive(name: str, whole: str, delta: str, stale: str | None = None) -> Component:
    """A component whose changes add up; it is never NULL, so new rows change it by what it is for them."""
    return Component(name, whole, ((name, delta),), f'(t."{name}" + d."{name}")', f'd."{name}"', stale, inserted=whole)


def count_star() -> Component:
    return additive(COUNT_STAR, "count(*)", f"CAST(coalesce(sum({W}), 0) AS BIGINT)")


def counted(kind: str, argument: str, condition: str) -> Component:
    """How many rows of the group fulfil a condition."""
    name = f"openivm_{kind}_{argument.removeprefix('openivm_')}"
    whole = f"count(*) FILTER (WHERE {condition})"
    return additive(name, whole, f"CAST(coalesce(sum({W}) FILTER (WHERE {condition}), 0) AS BIGINT)")


def non_null(argument: str) -> Component:
    return replace(counted("count", argument, f'"{argument}" IS NOT NULL'), inserted=f'count("{argument}")')


def exact_sum(argument: str, type_: str) -> Component:
    value = f'"{argument}"' if type_.startswith("DECIMAL") else f'CAST("{argument}" AS HUGEINT)'
    name = f"openivm_sum_{argument.removeprefix('openivm_')}"
    return nullable_sum(name, argument, value)


def nullable_sum(name: str, argument: str, value: str, stale: str | None = None) -> Component:
    """A sum that is NULL over no value: the non-null count says so, since a sum alone could not."""
    seen = f'"openivm_count_{argument.removeprefix("openivm_")}"'
    return Component(
        name,
        f"sum({value})",
        ((name, f"coalesce(sum({value} * {W}), 0)"),),
        f'CASE WHEN t.{seen} + d.{seen} > 0 THEN coalesce(t."{name}", 0) + d."{name}" END',
        f'CASE WHEN d.{seen} > 0 THEN d."{name}" END',
        stale,
        inserted=f"coalesce(sum({value}), 0)",
    )


def magnitude(name: str, value: str) -> Component:
    """Everything that went through a floating sum since the group was last recomputed, signs left out."""
    return additive(name, f"coalesce(sum(abs({value})), 0)", f"coalesce(sum(abs({value}) * abs({W})), 0)")


def float_sum(argument: str) -> tuple[Component, Component]:
    value = f'CAST("{argument}" AS DOUBLE)'
    short = argument.removeprefix("openivm_")
    name, size = f"openivm_sum_{short}", f"openivm_magnitude_{short}"
    new, weight = f'(coalesce(t."{name}", 0) + d."{name}")', f'(t."{size}" + d."{size}")'
    stale = f"(NOT isfinite({new}) OR {weight} > {SUM_CONDITION} * abs({new}))"
    return nullable_sum(name, argument, value, stale), magnitude(size, value)


def exact_total(argument: str) -> Component:
    value = f'CAST("{argument}" AS HUGEINT)'
    name = f"openivm_total_{argument.removeprefix('openivm_')}"
    return additive(name, f"coalesce(sum({value}), 0)", f"coalesce(sum({value} * {W}), 0)")


def float_total(argument: str) -> Component:
    value = f'CAST("{argument}" AS DOUBLE)'
    name = f"openivm_total_{argument.removeprefix('openivm_')}"
    return additive(name, f"coalesce(sum({value}), 0)", f"coalesce(sum({value} * {W}), 0)")


def exact_squares(argument: str) -> Component:
    value = f'CAST("{argument}" AS HUGEINT)'
    name = f"openivm_squares_{argument.removeprefix('openivm_')}"
    return additive(name, f"coalesce(sum({value} * {value}), 0)", f"coalesce(sum({value} * {value} * {W}), 0)")


def float_squares(argument: str) -> tuple[Component, Component]:
    value = f'CAST("{argument}" AS DOUBLE)'
    short = argument.removeprefix("openivm_")
    name, size = f"openivm_squares_{short}", f"openivm_square_magnitude_{short}"
    total, count = (f'(t."openivm_{kind}_{short}" + d."openivm_{kind}_{short}")' for kind in ("total", "count"))
    squares, weight = f'(t."{name}" + d."{name}")', f'(t."{size}" + d."{size}")'
    deviations = f"({squares} - {total} * {total} / {count})"
    stale = f"(NOT isfinite({squares}) OR {weight} > {VARIANCE_CONDITION} * {deviations})"
    whole, delta = f"coalesce(sum({value} * {value}), 0)", f"coalesce(sum({value} * {value} * {W}), 0)"
    return additive(name, whole, delta, stale), magnitude(size, f"({value} * {value})")


def extremum(function: str, argument: str) -> Component:
    """MIN or MAX: inserts move it; deleting it makes the group stale unless an insert is as extreme."""
    sign = "<" if function == "min" else ">"
    name = f"openivm_{function}_{argument.removeprefix('openivm_')}"
    inserted, deleted = f"{name}_in", f"{name}_out"
    deltas = (
        (inserted, f'{function}("{argument}") FILTER (WHERE {W} > 0)'),
        (deleted, f'{function}("{argument}") FILTER (WHERE {W} < 0)'),
    )
    old, new, gone = f't."{name}"', f'd."{inserted}"', f'd."{deleted}"'
    merged = f"CASE WHEN {new} IS NULL THEN {old} WHEN {old} IS NULL OR {new} {sign} {old} THEN {new} ELSE {old} END"
    stale = f"({gone} IS NOT NULL AND {gone} {sign}= {old} AND ({new} IS NULL OR NOT {new} {sign}= {old}))"
    whole = f'{function}("{argument}")'
    return Component(name, whole, deltas, merged, new, stale, signed=True, inserted=whole)


def parse(text: str) -> exp.Expr:
    """The expression of a component's text: a copy, since the few texts there are recur in every view."""
    return _parsed(text).copy()


@lru_cache(maxsize=1024)
def _parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect="duckdb")


def filtered_argument(call: Call) -> exp.Expr:
    """The argument with FILTER folded in: rows that do not count become NULL, which no simple aggregate counts."""
    value = exp.Boolean(this=True) if call.argument is None else call.argument
    if call.condition is None:
        return value
    case = exp.If(this=call.condition.copy(), true=value.copy())
    return exp.Case(ifs=[case])


Rule = Callable[[Decomposition, Call, str | None], str | None]


def count_star_rule(result: Decomposition, call: Call, type_: str | None) -> str | None:
    if call.condition is None:
        return f'"{COUNT_STAR}"'
    return count_rule(result, call, type_)


def count_rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
    return f'"{result.add(non_null(result.argument(filtered_argument(call))))}"'


def count_if_rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
    # DuckDB's count_if is NULL, not 0, where it saw no value
    argument = result.argument(filtered_argument(call))
    seen = result.add(non_null(argument))
    true = result.add(counted("true", argument, f'CAST("{argument}" AS BOOLEAN)'))
    return f'CASE WHEN "{seen}" > 0 THEN "{true}" END'


def bool_and_rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
    argument = result.argument(filtered_argument(call))
    seen = result.add(non_null(argument))
    false = result.add(counted("false", argument, f'NOT CAST("{argument}" AS BOOLEAN)'))
    return f'CASE WHEN "{seen}" > 0 THEN "{false}" = 0 END'


def bool_or_rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
    argument = result.argument(filtered_argument(call))
    seen = result.add(non_null(argument))
    true = result.add(counted("true", argument, f'CAST("{argument}" AS BOOLEAN)'))
    return f'CASE WHEN "{seen}" > 0 THEN "{true}" > 0 END'


def is_exact(type_: str) -> bool:
    return type_ in INTEGERS or type_ == "BOOLEAN" or type_.startswith("DECIMAL")


def summed(result: Decomposition, call: Call, type_: str | None) -> tuple[str, str] | None:
    """Components (non-null count, sum) of an argument that can be summed by addition."""
    if type_ is None or not (is_exact(type_) or type_ in FLOATS):
        return None
    argument = result.argument(filtered_argument(call))
    seen = result.add(non_null(argument))
    if is_exact(type_):
        return seen, result.add(exact_sum(argument, type_))
    total, size = float_sum(argument)
    result.add(size)
    return seen, result.add(total)


def sum_rule(result: Decomposition, call: Call, type_: str | None) -> str | None:
    names = summed(result, call, type_)
    return None if names is None else f'"{names[1]}"'


def avg_rule(result: Decomposition, call: Call, type_: str | None) -> str | None:
    names = summed(result, call, type_)
    return None if names is None else f'CAST("{names[1]}" AS DOUBLE) / "{names[0]}"'


def variance(sample: bool, root: bool) -> Rule:
    """VAR and STDDEV from count, sum and sum of squares: exact integers for small ones, guarded doubles for the
    rest."""

    def rule(result: Decomposition, call: Call, type_: str | None) -> str | None:
        found = deviations_of(result, call, type_)
        if found is None:
            return None
        seen, deviations = found
        divisor = f'("{seen}" - 1)' if sample else f'"{seen}"'
        value = f"greatest({deviations} / {divisor}, 0)"
        return f'CASE WHEN "{seen}" > {int(sample)} THEN {f"sqrt({value})" if root else value} END'

    return rule


def deviations_of(result: Decomposition, call: Call, type_: str | None) -> tuple[str, str] | None:
    """The component of the non-null count, and the sum of squared deviations; None where they do not add up."""
    if type_ is None or not (is_exact(type_) or type_ in FLOATS) or type_ == "BOOLEAN":
        return None
    argument = result.argument(filtered_argument(call))
    seen = result.add(non_null(argument))
    deviations = exact_deviations if type_ in SMALL_INTEGERS else float_deviations
    return seen, deviations(result, argument, seen)


def exact_deviations(result: Decomposition, argument: str, seen: str) -> str:
    """Sum of squared deviations, rounded once: (n * squares - sum * sum) / n in integers up to the division."""
    total, squares = result.add(exact_total(argument)), result.add(exact_squares(argument))
    return f'(CAST(CAST("{seen}" AS HUGEINT) * "{squares}" - "{total}" * "{total}" AS DOUBLE) / "{seen}")'


def float_deviations(result: Decomposition, argument: str, seen: str) -> str:
    # Sums of wider numbers could overflow where DuckDB's own VARIANCE, which works in DOUBLE, does not. The total has
    # no guard of its own: a centred sample's may be near zero without harm to the variance.
    total = result.add(float_total(argument))
    squares, size = float_squares(argument)
    result.add(size)
    return f'("{result.add(squares)}" - "{total}" * "{total}" / "{seen}")'


def extremum_rule(function: str) -> Rule:
    def rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
        return f'"{result.add(extremum(function, result.argument(filtered_argument(call))))}"'

    return rule


RULES: dict[str, Rule] = {
    "count_star": count_star_rule,
    "count": count_rule,
    "count_if": count_if_rule,
    "bool_and": bool_and_rule,
    "bool_or": bool_or_rule,
    "sum": sum_rule,
    "avg": avg_rule,
    "min": extremum_rule("min"),
    "max": extremum_rule("max"),
    "var_pop": variance(sample=False, root=False),
    "var_samp": variance(sample=True, root=False),
    "stddev_pop": variance(sample=False, root=True),
    "stddev_samp": variance(sample=True, root=True),
}

"""Lower ASOF joins: which rows can only meet rows of the same key."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dbt_openivm.compiler.algebra import Asof, Names, Operator, names_of
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.keys import TEXT
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.lower.types import type_of
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import conjunction, conjuncts
from dbt_openivm.errors import UnsupportedError

INTEGERS = frozenset(sign + size + "INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")) | {
    "INTEGER",
    "UINTEGER",
}


def asof(
    join: exp.Join,
    sides: tuple[Operator, Operator],
    names: Names,
    conditions: Sequence[exp.Expr],
    side: str,
    facts: CompileFacts,
    around: Scope | None,
) -> Asof:
    """The operator of an ASOF join.

    Args:
        names: each column of the sides under its own name.
        conditions: of its ON or USING, over these.
        around: the scope around the query.
    """
    on = conjunction(conditions)
    if on is None or on.find(exp.Query):
        raise UnsupportedError(f"this condition of an ASOF JOIN{place(join)}")
    keys: list[tuple[str, exp.Expr, exp.Expr]] = []
    for pair in filter(None, (equality(part, sides) for part in conjuncts(on))):
        values = [
            key_of(value, type_of(operator, value, facts, f"the key of an ASOF JOIN{place(join)}", around).text)
            for value, operator in zip(pair, sides, strict=True)
        ]
        if values[0][1] == values[1][1]:
            keys.append((f"openivm_key_{len(keys)}", values[0][0], values[1][0]))
    return Asof(*sides, on, names, side, tuple(keys))


def equality(part: exp.Expr, sides: tuple[Operator, Operator]) -> tuple[exp.Expr, exp.Expr] | None:
    """(left side, right side) of an equality between the sides."""
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return None
    left, right = (set(operator.columns) for operator in sides)
    for one, other in ((part.this, part.expression), (part.expression, part.this)):
        reads, others = names_of([one]), names_of([other])
        if reads and reads <= left and others and others <= right:
            return one, other
    return None


def key_of(value: exp.Expr, type_: str) -> tuple[exp.Expr, str]:
    """(what equal values have in common, kind of types among which that is so).

    ``1 = '01'`` and ``1 = '1'``: between types of different kinds equal values are no key. Texts may be equal by a
    collation, which no type tells: 'a' = 'A'.
    """
    if type_ in INTEGERS:
        return value, "INTEGER"
    if type_ in TEXT:
        plain = exp.Anonymous(this="strip_accents", expressions=[value.copy()])
        return exp.Lower(this=plain), type_
    return value, type_

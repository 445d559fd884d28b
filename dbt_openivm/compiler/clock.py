"""The clock: functions whose value is the moment of the refresh, and expressions over them at a given instant.

All such functions of one refresh read one instant, as within one transaction of DuckDB. A program is told two of them:
that of the refresh, and the one that the view was brought to before.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from sqlglot import exp

from dbt_openivm.compiler import sql

CLOCK = "clock"
"""The clock's key among the sources of a view."""

_EPOCH = datetime(1970, 1, 1)

NODES: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.CurrentTimestamp, "now()"),
    (exp.CurrentDate, "current_date"),
    (exp.CurrentTime, "current_time"),
    (exp.Localtimestamp, "localtimestamp"),
    (exp.Localtime, "localtime"),
)
"""Functions that the parser has a class for, and how a reader knows them."""

TYPES = {
    "now()": (),
    "current_date": ("DATE",),
    "current_time": ("TIME WITH TIME ZONE",),
    "localtimestamp": ("TIMESTAMP",),
    "localtime": ("TIMESTAMP", "TIME"),
}
"""The casts that make the value of a function of an instant."""

NAMES = {
    "now": "now()",
    "get_current_timestamp": "now()",
    "transaction_timestamp": "now()",
    "today": "current_date",
    "current_localtimestamp": "localtimestamp",
    "current_localtime": "localtime",
    "get_current_time": "current_time",
}


def reading(node: exp.Expr) -> str | None:
    """Which function of the clock `node` is, None if it is none."""
    found = next((name for kind, name in NODES if isinstance(node, kind)), None)
    if found is not None:
        return None if node.args.get("this") else found
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        if name == "ago" and len(node.expressions) == 1:
            return "ago()"
        return NAMES.get(name) if not node.expressions else None
    return None


def readings(expression: exp.Expr) -> Iterator[exp.Expr]:
    """The functions of the clock in an expression."""
    return (node for node in expression.walk() if reading(node) is not None)


def reads_clock(expression: exp.Expr) -> bool:
    return next(readings(expression), None) is not None


def literal(instant: int) -> exp.Expr:
    """An instant as a constant that means the same in every time zone."""
    moment = _EPOCH + timedelta(microseconds=instant)
    return sql.cast(exp.Literal.string(f"{moment.isoformat(sep=' ', timespec='microseconds')}+00"), TIMESTAMPTZ)


TIMESTAMPTZ = "TIMESTAMP WITH TIME ZONE"


def at(expression: exp.Expr, instant: int | None) -> exp.Expr:
    """`expression` with its functions of the clock read at `instant`; None leaves them to DuckDB."""
    if instant is None:
        return expression.copy()

    def read(node: exp.Expr) -> exp.Expr:
        name = reading(node)
        if name is None:
            return node
        value = literal(instant)
        if name == "ago()":
            return exp.Paren(this=exp.Sub(this=value, expression=sql.cast(node.expressions[0].copy(), "INTERVAL")))
        for type_ in TYPES[name]:
            value = sql.cast(value, type_)
        return value

    return sql.transform(expression.copy(), read)

"""Names that break careless SQL writers, and the ways a user may spell a reference to them."""

from __future__ import annotations

from random import Random

from dbt_openivm.names import quote

PLAIN = ("k", "g", "x", "y", "z", "val", "amount", "region", "note", "flag", "qty", "price")
NASTY = (
    "group",
    "order",
    "select",
    "a b",
    "dot.ted",
    'quo"te',
    "apos'trophe",
    "Größe",
    "名前",
    "CamelCase",
    "{{ jinja }}",
    "new\nline",
)
ODD = (
    *NASTY,
    "UPPER",
    "1st",
    "percent%",
    "semi;colon",
    "dash-ed",
    "new",
    "old",
    "count",
    "sum",
    "value",
    "values",
    "source",
    "target",
    "weight",
)
TABLES = ("t", "u", "v", "w", "sales", "items")
ODD_TABLES = ("Order", "my table", "Tab.le", "delta", "tbl'q", 'tbl"q', "T_Große", "data", "table", "left", "old_state")


def distinct_names(rng: Random, count: int, plain: tuple[str, ...], odd: tuple[str, ...], oddness: float) -> list[str]:
    """`count` names that differ without regard to case."""
    names: list[str] = []
    while len(names) < count:
        name = rng.choice(odd if rng.random() < oddness else plain)
        if name.lower() not in (other.lower() for other in names):
            names.append(name)
    return names


def is_bare(name: str) -> bool:
    """Whether the name can stand unquoted everywhere."""
    return name in PLAIN or name in TABLES


def spell(rng: Random, name: str) -> str:
    """One of the spellings of a reference: quoted, or bare in some case."""
    if not is_bare(name):
        return quote(name)
    return rng.choice((name, name, name, quote(name), name.upper(), quote(name.upper())))

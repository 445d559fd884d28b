"""Tables on a PostgreSQL, and a view that the statements of an answer maintain."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from dbt_openivm import compile_with_facts
from dbt_openivm.names import parse_name, quote
from tests.answers import documented_runner, sql

PAGE = Path(__file__).parents[2] / "docs" / "dialects.md"

Row = tuple[Any, ...]

SINGLE = 1e-4
"""How close sums of reals are: PostgreSQL rounds each step to six digits, in an order of its own."""


run = documented_runner(PAGE)


@dataclass
class World:
    """Attributes:
    query: of the view, in PostgreSQL's SQL.
    facts: besides the schemas.
    close: how far floating numbers may differ, relative to their size.
    """

    con: psycopg.Connection
    query: str
    schemas: Mapping[str, Mapping[str, str]]
    facts: Mapping[str, Any] = field(default_factory=dict)
    close: float = 1e-9

    def __post_init__(self) -> None:
        facts = {"target_dialect": "postgres", "schemas": self.schemas, **self.facts}
        self.answer = compile_with_facts(self.query, facts)
        for table, columns in self.schemas.items():
            listed = ", ".join(f"{quote(name)} {type_}" for name, type_ in columns.items())
            self.con.execute(f"CREATE TABLE IF NOT EXISTS {sql(table)} ({listed})")

    @property
    def view(self) -> str:
        return sql(self.answer["view"])

    def build(self) -> None:
        run(self.con, self.answer["setup"])

    def refresh(self) -> int:
        with self.con.transaction():
            self.con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            changed = run(self.con, self.answer["statements"])
        self.check()
        return changed

    def check(self) -> None:
        assert types(self.con, self.view) == types(self.con, f"({self.query}) AS q")
        assert bag_difference(self.con, f"SELECT * FROM {self.view}", self.query, self.close) == ([], [])

    def check_published(self, before: str) -> None:
        """The view's log holds exactly new rows less old rows, told apart by their text.

        Args:
            before: a table of the old rows.
        """
        [name] = [parse_name(self.answer["view"]) or []]
        log = ".".join(map(quote, [*name[:-1], f"openivm_delta_{name[-1]}"]))
        described = self.con.execute(f"SELECT * FROM {self.view} LIMIT 0").description or []
        columns = ", ".join(f'CAST({quote(c.name)} AS text) COLLATE "C" AS {quote(c.name)}' for c in described)
        keys = ", ".join(str(index + 1) for index in range(len(described)))
        logged = f"SELECT {columns}, sum(openivm_multiplicity) AS w FROM {log} GROUP BY {keys}"
        both = f"SELECT *, 1 AS w FROM {self.view} UNION ALL SELECT *, -1 FROM {before}"
        net = f"SELECT {columns}, sum(w) AS w FROM ({both}) AS z GROUP BY {keys} HAVING sum(w) <> 0"
        wrong = f"(({logged}) EXCEPT ALL ({net})) UNION ALL (({net}) EXCEPT ALL ({logged}))"
        assert self.con.execute(wrong).fetchall() == []


def types(con: psycopg.Connection, source: str) -> list[Row]:
    """Name and type, with its modifier, of each column."""
    described = con.execute(f"SELECT * FROM {source} LIMIT 0").description or []
    return [(column.name, column.type_code, column.precision, column.scale) for column in described]


def bag_difference(con: psycopg.Connection, one: str, other: str, close: float) -> tuple[list[Row], list[Row]]:
    """Rows of either that the other has not as often, told apart by their text; floating numbers may be close."""
    # OFFSET 0: what the texts are of is computed as the query would by itself
    sides = [f"SELECT CAST(q AS TEXT) AS t FROM (SELECT * FROM ({query}) AS o OFFSET 0) AS q" for query in (one, other)]
    first, second = (
        [row[0] for row in con.execute(f"{a} EXCEPT ALL {b} ORDER BY 1").fetchall()] for a, b in (sides, sides[::-1])
    )
    if len(first) == len(second) and first:
        described = con.execute(f"SELECT * FROM ({one}) AS q LIMIT 0").description or []
        floats = [column.name for column in described if column.type_code in (700, 701)]
        if any(column.type_code == 700 for column in described):
            close = SINGLE
        if floats and all(near(a, b, close) for a, b in zip(first, second, strict=True)):
            return [], []
    return first, second


def near(one: str, other: str, close: float) -> bool:
    parts = [row.strip("()").split(",") for row in (one, other)]
    return len(parts[0]) == len(parts[1]) and all(same(a, b, close) for a, b in zip(*parts, strict=True))


def same(one: str, other: str, close: float) -> bool:
    if one == other:
        return True
    if not re.search(r"[.eE]|^-?\d{10,}$|^-?0$", one + other):
        return False
    try:
        return math.isclose(float(one), float(other), rel_tol=close)
    except ValueError:
        return False

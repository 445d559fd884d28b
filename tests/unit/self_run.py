"""Run the answers of `compile_with_facts` statement by statement on a DuckDB, as docs/compile-with-facts.md says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from dbt_openivm import compile_with_facts
from dbt_openivm.names import parse_name, quote, split_name
from tests.answers import documented_runner, sql
from tests.bags import bag_difference

PAGE = Path(__file__).parents[2] / "docs" / "compile-with-facts.md"

Row = tuple[Any, ...]


run = documented_runner(PAGE)


@dataclass
class World:
    """A database with the tables of `schemas`, and a view that is maintained by the statements of an answer."""

    query: str
    schemas: Mapping[str, Mapping[str, str]]
    facts: Mapping[str, Any] = field(default_factory=dict)
    con: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)

    def __post_init__(self) -> None:
        self.answer = compile_with_facts(self.query, {"schemas": self.schemas, **self.facts})
        there = {name.lower() for (name,) in self.con.execute("SELECT view_name FROM duckdb_views()").fetchall()}
        for table, columns in self.schemas.items():
            parts = parse_name(table) or []
            if parts[-1].lower() in there:
                continue
            if len(parts) > 1:
                self.con.execute(f"CREATE SCHEMA IF NOT EXISTS {'.'.join(map(quote, parts[:-1]))}")
            listed = ", ".join(f"{quote(name)} {type_}" for name, type_ in columns.items())
            self.con.execute(f"CREATE TABLE IF NOT EXISTS {sql(table)} ({listed})")

    def fill(self, table: str, rows: Iterable[Row]) -> None:
        for row in rows:
            self.con.execute(f"INSERT INTO {sql(table)} VALUES ({', '.join('?' * len(row))})", list(row))

    def build(self) -> None:
        run(self.con, self.answer["setup"])

    def log(self, table: str, row: Row, weight: int) -> None:
        names = ", ".join(map(quote, self.schemas[table]))
        log = sql(self.answer["logs"][table])
        marks = ", ".join("?" * len(row))
        self.con.execute(f"INSERT INTO {log} ({names}, openivm_multiplicity) VALUES ({marks}, ?)", [*row, weight])

    def insert(self, table: str, *rows: Row) -> None:
        self.fill(table, rows)
        for row in rows:
            self.log(table, row, 1)

    def delete(self, table: str, *rows: Row) -> None:
        """One copy of each row."""
        for row in rows:
            same = " AND ".join(f"{quote(name)} IS NOT DISTINCT FROM ?" for name in self.schemas[table])
            [(found,)] = self.con.execute(f"SELECT min(rowid) FROM {sql(table)} WHERE {same}", list(row)).fetchall()
            assert found is not None, f"{row} is not in {table}"
            self.con.execute(f"DELETE FROM {sql(table)} WHERE rowid = ?", [found])
            self.log(table, row, -1)

    def rows(self, table: str) -> list[Row]:
        return self.con.execute(f"FROM {sql(table)} ORDER BY ALL").fetchall()

    def refresh(self) -> int:
        changed = run(self.con, self.answer["statements"])
        self.check()
        return changed

    def check(self) -> None:
        assert bag_difference(self.con, f"SELECT * FROM {sql(self.answer['view'])}", self.query) == ([], [])

    # --- what the statements say of themselves -----------------------------------------------------------------------

    def check_marks(self, phase: str) -> None:
        """Run the statements one by one, all of them, and compare what they touch with what they say.

        What a statement needs must be there, and sqlglot must find no other relations in its SQL.
        """
        for statement in self.answer[phase]:
            for name in statement["needs"]:
                self.con.execute(f"FROM {sql(name)} LIMIT 0")
            tree = sqlglot.parse_one(statement["sql"], dialect="duckdb")
            within = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
            found = {table.name.lower() for table in tree.find_all(exp.Table) if table.name} - within
            assert found == {bare(name) for name in (*statement["needs"], *statement["changes"])}, statement
            if not statement["kind"].startswith("create"):
                assert set(statement["changes"]) <= set(statement["needs"]), statement
            verb = statement["sql"].split(None, 1)[0].lower()
            assert verb == {"count": "select"}.get(statement["kind"], statement["kind"].split()[0]), statement
            self.con.execute(statement["sql"])


def bare(name: str) -> str:
    """A name without its schema and database, or `temp`."""
    return split_name(name)[-1].lower()

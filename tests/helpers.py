"""What tests of the engine share: a small world of tables and views in which every refresh is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb

from dbt_openivm.names import quote
from tests.bags import alike, bag_difference

FULL = "FULL_REFRESH"


def columns_of(connection: Any, relation: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {relation}").fetchall()]


def assert_view_is_exact(connection: Any, view: str, sql: str) -> None:
    """The view holds the rows of its query as a bag, under the names and types of a CTAS of it.

    Args:
        connection: a DuckDB connection.
        view: how the view is written in SQL.
        sql: its query.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE test_truth AS {sql}")
    assert columns_of(connection, view) == columns_of(connection, "test_truth")
    surplus, missing = bag_difference(connection, f"SELECT * FROM {view}", "SELECT * FROM test_truth")
    assert (surplus, missing) == ([], []), f"{view}: surplus {surplus[:10]}, missing {missing[:10]}"


def internal_rows(connection: Any) -> dict[str, tuple[Any, ...]]:
    """A hash of each internal table, to show that nothing was written."""
    tables = connection.execute(
        "SELECT database_name, schema_name, table_name FROM duckdb_tables() "
        "WHERE NOT temporary AND (schema_name = 'openivm' OR starts_with(schema_name, 'openivm_'))"
    ).fetchall()
    state = {}
    for path in tables:
        name = ".".join(map(quote, path))
        [state[name]] = connection.execute(f"SELECT count(*), sum(hash(r)) FROM {name} AS r").fetchall()
    return state


class World:
    """A connection, an engine on it, and its views.

    Every refresh through `refresh` is followed by a comparison with the recompute and by a second refresh, which must
    write nothing.
    """

    def __init__(self, connection: Any, capture: str, captures: Mapping[str, str] | None = None) -> None:
        self.connection = connection
        self.capture = capture
        self.captures = dict(captures or {})
        self.queries: dict[str, str] = {}
        self.ivm = self.new_engine()

    def new_engine(self, connection: Any | None = None) -> Any:
        from dbt_openivm import IvmEngine

        return IvmEngine(connection or self.connection, capture=self.capture, captures=self.captures)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return rows

    def create(self, name: str, sql: str, refresh_type: str | None = None) -> Any:
        """Create a view; with `refresh_type` it must be maintained in that way, without one in any but FULL_REFRESH."""
        info = self.ivm.create_view(name, sql)
        self.queries[name] = sql
        assert_view_is_exact(self.connection, quote(name), sql)
        if refresh_type is None:
            assert info.refresh_type != FULL, info.reason
        else:
            assert info.refresh_type == refresh_type, info.reason
        return info

    def refresh(self, name: str) -> Any:
        result = self.ivm.refresh(name)
        assert_view_is_exact(self.connection, quote(name), self.queries[name])
        before = internal_rows(self.connection)
        again = self.ivm.refresh(name)
        assert again.strategy == "none", again
        assert internal_rows(self.connection) == before
        return result

    def change(self, name: str, *statements: str) -> Any:
        """Statements, then a checked refresh."""
        self.run(*statements)
        return self.refresh(name)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The view's rows in a fixed order, NULL last."""
        found = self.query(f"SELECT * FROM {quote(name)}")
        return sorted(found, key=lambda row: [(value is None, str(type(value)), value) for value in row])

    def assert_rows(self, name: str, *expected: tuple[Any, ...]) -> None:
        assert alike(self.rows(name), list(expected)), self.rows(name)


def connect(database: str = ":memory:") -> Any:
    return duckdb.connect(database)


def has_triggers() -> bool:
    return int(duckdb.__version__.split(".")[0]) >= 2

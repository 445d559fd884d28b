"""The one way the engine talks to DuckDB: SQL text in, rows out.

The engine never sees a driver object. `DuckDBSession` serves notebooks and tests; the dbt adapter has its own, which
sends the same text through dbt's connection so that it appears in dbt's log and runs inside dbt's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]


class Session(Protocol):
    """A connection with at most one open transaction."""

    def execute(self, sql: str) -> list[Row]:
        """Run one statement and return its rows. DML returns one row holding the count of changed rows."""
        ...

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


class DuckDBSession:
    """A session on a `duckdb.DuckDBPyConnection`."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def execute(self, sql: str) -> list[Row]:
        result = self.connection.execute(sql)
        rows: Sequence[Row] = result.fetchall() if result.description else []
        return list(rows)

    def begin(self) -> None:
        self.connection.execute("BEGIN TRANSACTION")

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        self.connection.execute("ROLLBACK")

"""The one way the engine talks to DuckDB: SQL text in, rows out.

The engine never sees a driver object. `DuckDBSession` serves notebooks and tests; the dbt adapter has its own, which
sends the same text through dbt's connection so that it appears in dbt's log and runs inside dbt's transaction.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from dbt_openivm.errors import UnsafeError

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
        self._idle = False

    def execute(self, sql: str) -> list[Row]:
        try:
            result = self.connection.execute(sql)
        except Exception as error:
            if "Current transaction is aborted" in str(error):
                raise UnsafeError(
                    "A statement failed in the transaction that is open on this connection. Nothing was changed. "
                    "Roll it back first."
                ) from error
            raise
        rows: Sequence[Row] = result.fetchall() if result.description else []
        return list(rows)

    def begin(self) -> None:
        if self.in_transaction():
            raise UnsafeError(
                "A transaction is open on this connection, and each call of the engine is a transaction of its own. "
                "Nothing was changed. Commit or roll back first, or use another cursor of the connection."
            )
        self.connection.execute("BEGIN TRANSACTION")

    def in_transaction(self) -> bool:
        """Whether the caller left a transaction open: DuckDB's refusal of a second BEGIN would end it."""
        idle, self._idle = self._idle, False
        if not idle:
            self.current_schema()
            idle, self._idle = self._idle, False
        return not idle and self._transaction() == self._transaction()

    def current_schema(self) -> str:
        """The current schema; a `begin` right after need not ask again whether a transaction is open.

        Where none is, this very statement is one, and so begins after we looked at the clock. Where the clock does not
        say so, it may have been set back: `in_transaction` looks closer.
        """
        before = time.time_ns() // 1000
        [(schema, started)] = self.execute("SELECT current_schema(), epoch_us(now())")
        self._idle = started > before
        return str(schema)

    def _transaction(self) -> int:
        [(identifier,)] = self.execute("SELECT txid_current()")
        return int(identifier)

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        """Roll back; no error if a failed COMMIT already did, which would hide why it failed."""
        try:
            self.connection.execute("ROLLBACK")
        except Exception as error:
            if "no transaction is active" not in str(error):
                raise

"""The engine's session on dbt's connection."""

from __future__ import annotations

from typing import Any

from dbt.adapters.events.types import SQLQuery
from dbt_common.events.contextvars import get_node_info
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import DbtRuntimeError

from dbt_openivm.engine.session import Row


class DbtSession:
    """Sends SQL through dbt's connection of the current thread: in dbt's log, in dbt's transaction, no agate tables.

    dbt's own `add_query` fires three events a statement. That takes longer than most statements of a small refresh, so
    here it is one.
    """

    def __init__(self, connections: Any) -> None:
        self._connections = connections

    def execute(self, sql: str) -> list[Row]:
        connection = self._connections.get_thread_connection()
        fire_event(SQLQuery(conn_name=connection.name, sql=sql, node_info=get_node_info()))
        try:
            # It rolls back and wraps every error in one type; the engine tells a binder error from a conversion error.
            with self._connections.exception_handler(sql):
                cursor = connection.handle.cursor()
                cursor.execute(sql)
                return list(cursor.fetchall()) if cursor.description else []
        except DbtRuntimeError as error:
            raise error.__cause__ or error from None

    def begin(self) -> None:
        self._connections.begin()

    def commit(self) -> None:
        self._connections.commit()

    def rollback(self) -> None:
        """Roll back; no error if a failed statement already did (dbt rolls back on every error)."""
        self._connections.rollback_if_open()

    @property
    def in_transaction(self) -> bool:
        return bool(self._connections.get_thread_connection().transaction_open)

    def ensure_transaction(self) -> None:
        if not self.in_transaction:
            self.begin()

    def end_lookups(self) -> None:
        """Close a transaction in which dbt only looked something up: the next one sees what others wrote."""
        if self.in_transaction:
            self.commit()

"""IvmEngine: incremental views on a DuckDB connection, without dbt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_openivm.engine.clock import Clock
from dbt_openivm.engine.database import check_writable
from dbt_openivm.engine.maintain import Maintainer
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.engine.types import CAPTURES, REFRESH_MODES, RefreshResult, ViewInfo, ViewSpec
from dbt_openivm.errors import ConfigError
from dbt_openivm.names import RelationName, split_name


class IvmEngine:
    """Keeps views of a DuckDB connection equal to their queries.

    Args:
        connection: a `duckdb.DuckDBPyConnection`. Each method runs in a transaction of its own, so none may be open.
        capture: how changes of sources are found by default: "diff" works for every relation, "trigger" (DuckDB 2.0,
            tables of the same database) costs only what changed.
        captures: capture per source, by its name as ``schema.name`` or ``database.schema.name``.
        refresh_mode: "auto", "incremental", "strict" or "full".
        clock: what time it is, for tests of views that read the clock: a refresh takes now(), current_date and their kin
            at the moment that this returns, an aware datetime. None is DuckDB's own time, that of the transaction. What
            is refreshed in full always has DuckDB's own.

    Example:
        >>> import duckdb
        >>> con = duckdb.connect()
        >>> _ = con.execute("CREATE TABLE sales (region VARCHAR, amount INTEGER)")
        >>> ivm = IvmEngine(con)
        >>> ivm.create_view("totals", "SELECT region, sum(amount) AS total FROM sales GROUP BY region").refresh_type
        'AGGREGATE_GROUP'
        >>> _ = con.execute("INSERT INTO sales VALUES ('US', 50)")
        >>> ivm.refresh("totals").strategy
        'incremental'
        >>> con.execute("SELECT * FROM totals").fetchall()
        [('US', 50)]
    """

    def __init__(
        self,
        connection: Any,
        capture: str = "diff",
        captures: Mapping[str, str] | None = None,
        refresh_mode: str = "auto",
        clock: Clock | None = None,
    ) -> None:
        check(capture, captures or {}, refresh_mode)
        self.session = DuckDBSession(connection)
        [(self.database,)] = self.session.execute("SELECT current_database()")
        check_writable(self.session, self.database)
        self.capture = capture
        self.captures = {self.resolve(name).key: kind for name, kind in (captures or {}).items()}
        self.refresh_mode = refresh_mode
        self.maintainer = Maintainer(self.session, self.database, render, clock)
        self.maintainer.setup()

    def create_view(self, name: str, sql: str) -> ViewInfo:
        """Create an incremental view, or replace it by another query.

        Args:
            name: ``view`` or ``schema.view``.
            sql: one SELECT. It may read other incremental views by name.

        Raises:
            QueryError: the query is not valid.
        """
        spec = self.spec(self.view_name(name), sql)
        return self.maintainer.run(spec)[0].info

    def refresh(self, name: str, full: bool = False) -> RefreshResult:
        """Bring a view to exactly what its query says now. Parents are refreshed by their own calls.

        Args:
            full: rebuild it from scratch.
        """
        view = self.view_name(name)
        return self.maintainer.rerun(view, lambda definition: self.spec(view, definition, full), full)

    def explain(self, sql: str) -> str:
        """How a query would be maintained: operator tree, hidden columns, and the program's SQL."""
        name = RelationName(self.database, self._schema(), "new_view")
        return self.maintainer.explain(self.spec(name, sql))

    def drop_view(self, name: str) -> None:
        """Remove a view and everything kept for it."""
        self.maintainer.drop_view(self.view_name(name))

    # -----------------------------------------------------------------------------------------------------------------

    def spec(self, view: RelationName, sql: str, full: bool = False) -> ViewSpec:
        return ViewSpec(view, sql, self.refresh_mode, full, self.capture, self.captures)

    def view_name(self, name: str) -> RelationName:
        """The name of a view.

        Raises:
            ConfigError: it is no name, or lies in another database than this engine's.
        """
        if not 1 <= len(split_name(name)) <= 3:
            raise ConfigError(f"{name!r} is no name of a view. Expected view, schema.view or database.schema.view.")
        view = self.resolve(name, self._schema())
        if view.database.lower() != self.database.lower():
            raise ConfigError(
                f"The view {view} would lie in another database than this engine's, {self.database}. A transaction can "
                "write to one database only. Connect to that database, or USE it, and make an engine there."
            )
        return view

    def resolve(self, name: str, schema: str | None = None) -> RelationName:
        """A name of one to three dotted parts; parts may be quoted. `schema` is the current one, if it is known."""
        parts = split_name(name)
        database = parts[-3] if len(parts) > 2 else self.database
        return RelationName(database, parts[-2] if len(parts) > 1 else schema or self._schema(), parts[-1])

    def _schema(self) -> str:
        return self.session.current_schema()


def check(capture: str, captures: Mapping[str, str], refresh_mode: str) -> None:
    """Refuse settings that do not exist, all at once.

    Raises:
        ConfigError: a capture or refresh mode is unknown.
    """
    problems = [
        f"capture of {name} is {kind!r}, expected one of {', '.join(CAPTURES)}"
        for name, kind in {"every source": capture, **captures}.items()
        if kind not in CAPTURES
    ]
    if refresh_mode not in REFRESH_MODES:
        problems.append(f"refresh_mode is {refresh_mode!r}, expected one of {', '.join(REFRESH_MODES)}")
    if problems:
        raise ConfigError("; ".join(problems))

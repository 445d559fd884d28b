"""IvmEngine: incremental views on a DuckDB connection, without dbt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dbt_openivm.choices import APPLY_STRATEGIES, RETENTION, RETENTION_EXPECTED, is_retention
from dbt_openivm.engine.catalog import ViewRow
from dbt_openivm.engine.clock import Clock
from dbt_openivm.engine.database import check_writable
from dbt_openivm.engine.maintain import Maintainer
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.engine.types import CAPTURES, REFRESH_MODES, Changes, Consumer, RefreshResult, ViewInfo, ViewSpec
from dbt_openivm.errors import ConfigError, QueryError
from dbt_openivm.names import RelationName, literal, parse_name, quote

EXPECTED = "Expected name, schema.name or database.schema.name; a part may be quoted."
SYSTEM_SCHEMAS = ("information_schema", "pg_catalog")


class IvmEngine:
    """Keeps views of a DuckDB connection equal to their queries.

    Args:
        connection: a `duckdb.DuckDBPyConnection`. Each method runs in a transaction of its own, so none may be open.
        capture: how changes of sources are found by default: "diff" works for every relation, "trigger" (DuckDB 2.0,
            tables of the same database) costs only what changed.
        captures: capture per source, by its name as ``schema.name`` or ``database.schema.name``.
        refresh_mode: "auto", "incremental", "strict" or "full".
        apply_strategy: how the states of grouped aggregates take their change, for views that this engine creates:
            "auto", "merge", "update_insert_delete" or "delete_insert".
        clock: what time it is, for tests of views that read the clock: a refresh takes now(), current_date and their
            kin at the moment that this returns, an aware datetime. None is DuckDB's own time, that of the transaction.
            What is refreshed in full always has DuckDB's own. The retention of change feeds goes by it too.
        force_view_delta_cascade: keep the companion rows of every view's last refresh, whether or not a consumer is
            registered.
        skip_empty_deltas: add companion rows up by tuple, so that an unchanged result leaves none.

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
        force_view_delta_cascade: bool = False,
        skip_empty_deltas: bool = False,
        apply_strategy: str = "auto",
    ) -> None:
        switches = {"force_view_delta_cascade": force_view_delta_cascade, "skip_empty_deltas": skip_empty_deltas}
        check(connection, capture, captures, refresh_mode, apply_strategy, switches)
        self.session = DuckDBSession(connection)
        [(self.database,)] = self.session.execute("SELECT current_database()")
        check_writable(self.session, self.database)
        self.capture = capture
        self.captures = {self.resolve(name).key: kind for name, kind in (captures or {}).items()}
        self.refresh_mode = refresh_mode
        self.force_view_delta_cascade = force_view_delta_cascade
        self.skip_empty_deltas = skip_empty_deltas
        self.apply_strategy = apply_strategy
        self.maintainer = Maintainer(self.session, self.database, render, clock)
        self.maintainer.setup()

    def create_view(
        self,
        name: str,
        sql: str,
        apply_strategy: str | None = None,
        change_feed: bool | None = None,
        change_feed_retention: str | None = None,
    ) -> ViewInfo:
        """Create an incremental view, or replace it by another query or apply strategy.

        Args:
            name: ``view`` or ``schema.view``.
            sql: one SELECT. It may read other incremental views by name.
            apply_strategy: of this view, kept with it; None is the engine's. Another one needs no rebuild.
            change_feed: keep the changes of the view readable, net, for each refresh; kept with it. None leaves it as
                it is, and is False for a new view.
            change_feed_retention: for how long at most, such as '7 days' (the default) or 'forever'; with
                `change_feed=True` only.

        Raises:
            QueryError: the query is not valid.
            ConfigError: there is no such schema, strategy or retention, or `captures` names a relation that does not
                exist.
        """
        view = self.view_name(name)
        if apply_strategy is not None and apply_strategy not in APPLY_STRATEGIES:
            raise ConfigError(f"The view {view}: {not_among('apply_strategy', apply_strategy, APPLY_STRATEGIES)}")
        check_feed(view, change_feed, change_feed_retention)
        self.check_schema(view)
        self.check_captures()
        spec = self.spec(view, sql, apply_strategy)
        if change_feed is not None:
            spec = replace(spec, change_feed=change_feed and (change_feed_retention or RETENTION))
        return self.maintainer.run(spec)[0].info

    def refresh(self, name: str, full: bool = False) -> RefreshResult:
        """Bring a view to exactly what its query says now. Parents are refreshed by their own calls.

        Args:
            full: rebuild it from scratch.
        """
        view = self.view_name(name)

        def spec_of(row: ViewRow) -> ViewSpec:
            return self.spec(view, row.definition, row.apply_strategy, full)

        return self.maintainer.rerun(view, spec_of, self.refresh_mode, full)

    def explain(self, sql: str) -> str:
        """How a query would be maintained: operator tree, hidden columns, and the program's SQL."""
        name = RelationName(self.database, self._schema(), "new_view")
        return self.maintainer.explain(self.spec(name, sql))

    def drop_view(self, name: str) -> None:
        """Remove a view and everything kept for it."""
        self.maintainer.drop_view(self.view_name(name))

    def register_consumer(self, view: str, consumer: str, snapshot: bool = False) -> Consumer:
        """Keep companion rows of a view for a reader that says itself how far it has come (`acknowledge`).

        Args:
            consumer: its name, without dots. One that is registered already stays where it is.
            snapshot: whether it reads the whole view first; else it has the view as it is now.

        Raises:
            QueryError: there is no such view.
            ConfigError: the name cannot be a consumer's, or it is one's that has missed changes.
        """
        return self.maintainer.register_consumer(self.view_name(view), consumer, snapshot)

    def changes(self, view: str, consumer: str, after: int | None = None) -> Changes:
        """What a consumer has to read up to now, as SQL. Changes nothing, and may be called inside a transaction.

        Args:
            after: the batch that it has already, where that is kept with its data; None is what it acknowledged, 0
                nothing.

        Raises:
            QueryError: there is no such view.
            ConfigError: there is no such consumer, it has missed rows, or those after this batch are not kept for it.
        """
        return self.maintainer.consumers.changes(self.view_name(view).key, consumer, after)

    def acknowledge(self, view: str, consumer: str, version: int) -> Consumer:
        """Note that a consumer has the companion rows up to a batch; what all have is removed by the next refresh.

        Raises:
            ConfigError: there is no such consumer, it has missed rows, or the batch is not there.
        """
        return self.maintainer.acknowledge(self.view_name(view), consumer, version)

    def consumers(self, view: str) -> list[Consumer]:
        """The registered consumers of a view's companion rows, by name, and how far each is behind."""
        return self.maintainer.consumers.all(self.view_name(view).key)

    def unregister_consumer(self, view: str, consumer: str) -> None:
        """Forget a consumer; with the last one the companion rows go, unless the view has a change feed.

        Raises:
            ConfigError: there is no such consumer.
        """
        self.maintainer.unregister_consumer(self.view_name(view), consumer, self.force_view_delta_cascade)

    # -----------------------------------------------------------------------------------------------------------------

    def spec(self, view: RelationName, sql: str, apply_strategy: str | None = None, full: bool = False) -> ViewSpec:
        if not isinstance(sql, str):
            raise QueryError(f"The query of a view is {sql!r}, expected the text of one SELECT.")
        return ViewSpec(
            view, sql, self.refresh_mode, full, self.capture, self.captures,
            force_view_delta_cascade=self.force_view_delta_cascade, skip_empty_deltas=self.skip_empty_deltas,
            apply_strategy=apply_strategy or self.apply_strategy,
        )  # fmt: skip

    def view_name(self, name: str) -> RelationName:
        """The name of a view.

        Raises:
            ConfigError: it is no name, or lies in another database than this engine's.
        """
        if parse_name(name) is None:
            raise ConfigError(f"{name!r} is no name of a view. {EXPECTED}")
        view = self.resolve(name, self._schema())
        if view.database.lower() != self.database.lower():
            raise ConfigError(
                f"The view {view} would lie in another database than this engine's, {self.database}. A transaction can "
                "write to one database only. Connect to that database, or USE it, and make an engine there."
            )
        return view

    def check_schema(self, view: RelationName) -> None:
        """Refuse a schema that does not exist.

        Raises:
            ConfigError: with what to do.
        """
        here = f"database_name = {literal(self.database)} AND lower(schema_name) = {literal(view.schema.lower())}"
        found = self.session.execute(f"SELECT 1 FROM duckdb_schemas() WHERE {here}")
        if not found or view.schema.lower() in SYSTEM_SCHEMAS:
            raise ConfigError(
                f"The view {view} would lie in the schema {view.schema}, which does not exist. Nothing was changed. "
                f"Create it first: CREATE SCHEMA {quote(self.database)}.{quote(view.schema)}"
            )

    def check_captures(self) -> None:
        """Refuse captures of what does not exist: a misspelt name would do nothing.

        Raises:
            ConfigError: with the names.
        """
        if not self.captures:
            return
        there = "UNION ALL ".join(
            f"SELECT lower(database_name || '.' || schema_name || '.' || {kind}_name) FROM duckdb_{kind}s() "
            for kind in ("table", "view")
        )
        unknown = self.captures.keys() - {key for (key,) in self.session.execute(there)}
        if unknown:
            raise ConfigError(
                f"`captures` names {', '.join(sorted(unknown))}, but there is no such table or view. Nothing was "
                "changed. Correct the name, or create the table first."
            )

    def resolve(self, name: str, schema: str | None = None) -> RelationName:
        """A name of one to three dotted parts; parts may be quoted. `schema` is the current one, if it is known."""
        parts = parse_name(name) or [name]
        database = parts[-3] if len(parts) > 2 else self.database
        return RelationName(database, parts[-2] if len(parts) > 1 else schema or self._schema(), parts[-1])

    def _schema(self) -> str:
        return self.session.current_schema()


def check(
    connection: object,
    capture: object,
    captures: object,
    refresh_mode: object,
    apply_strategy: object,
    switches: Mapping[str, object],
) -> None:
    """Refuse settings that do not exist, all at once.

    Raises:
        ConfigError: what is wrong, what was expected.
    """
    problems = []
    if not hasattr(connection, "execute"):
        problems.append(f"connection is {connection!r}, expected a DuckDBPyConnection, as duckdb.connect() returns it")
    if captures is not None and not isinstance(captures, Mapping):
        problems.append(f"captures is {captures!r}, expected a mapping of source names to captures")
        captures = None
    named = dict(captures or {})
    problems += [f"captures names {name!r}. {EXPECTED}" for name in named if parse_name(name) is None]
    problems += [
        f"capture of {name} is {kind!r}, expected one of {', '.join(CAPTURES)}"
        for name, kind in {"every source": capture, **{str(name): kind for name, kind in named.items()}}.items()
        if kind not in CAPTURES
    ]
    if refresh_mode not in REFRESH_MODES:
        problems.append(not_among("refresh_mode", refresh_mode, REFRESH_MODES))
    if apply_strategy not in APPLY_STRATEGIES:
        problems.append(not_among("apply_strategy", apply_strategy, APPLY_STRATEGIES))
    problems += [
        f"{name} is {value!r}, expected True or False"
        for name, value in switches.items()
        if not isinstance(value, bool)
    ]
    if problems:
        raise ConfigError("; ".join(problems))


def check_feed(view: RelationName, change_feed: object, retention: object) -> None:
    """Raises:
    ConfigError: with everything that is wrong.
    """
    problems = []
    if change_feed is not None and not isinstance(change_feed, bool):
        problems.append(f"change_feed is {change_feed!r}, expected True, False or None")
    if retention is not None and not is_retention(retention):
        problems.append(f"change_feed_retention is {retention!r}, expected {RETENTION_EXPECTED}")
    if retention is not None and not change_feed:
        problems.append("change_feed_retention is set, but change_feed is not True: no changes are kept")
    if problems:
        raise ConfigError(f"The view {view}: {'; '.join(problems)}. Nothing was changed.")


def not_among(setting: str, value: object, allowed: Sequence[str]) -> str:
    return f"{setting} is {value!r}, expected one of {', '.join(allowed)}"

"""What users ask of the catalog: the state of their views, and what happened to them. Read-only; answers are text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from dbt_openivm.engine.session import Session
from dbt_openivm.engine.table import format_table
from dbt_openivm.names import BATCH, CATALOG_SCHEMA, RelationName, literal, quote

NOTHING = "No ivm_view has been built in this database."


@dataclass(frozen=True)
class ViewRow:
    """A maintained view as the catalog knows it."""

    key: str
    name: RelationName
    refresh_type: str
    reason: str | None
    definition: str
    refreshed_at: object


class Reader:
    """The catalog of one database, for reading."""

    def __init__(self, session: Session, database: str) -> None:
        self.session = session
        self.database = database

    def table(self, name: str) -> str:
        return RelationName(self.database, CATALOG_SCHEMA, name).sql

    def exists(self) -> bool:
        return bool(
            self.session.execute(
                "SELECT 1 FROM duckdb_tables() WHERE table_name = 'openivm_views' "
                f"AND schema_name = {literal(CATALOG_SCHEMA)} "
                f"AND lower(database_name) = lower({literal(self.database)})"
            )
        )

    def views(self) -> list[ViewRow]:
        """The views of users, without the internal nodes that belong to them."""
        if not self.exists():
            return []
        rows = self.session.execute(
            "SELECT view_key, view_database, view_schema, view_name, refresh_type, reason, definition, refreshed_at "
            f"FROM {self.table('openivm_views')} WHERE owner IS NULL ORDER BY view_key"
        )
        return [ViewRow(r[0], RelationName(r[1], r[2], r[3]), r[4], r[5], r[6], r[7]) for r in rows]

    def view(self, key: str) -> ViewRow | None:
        return next((view for view in self.views() if view.key == key.lower()), None)

    def cursors(self) -> list[tuple[str, str, str, int]]:
        """(view, source, kind of source, consumed up to batch) of every view, nodes included."""
        rows = self.session.execute(
            f"SELECT view_key, source_key, source_kind, cursor FROM {self.table('openivm_delta_tables')} ORDER BY ALL"
        )
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def owners(self) -> dict[str, str]:
        """The view that each view or internal node belongs to: itself, or its owner."""
        rows = self.session.execute(f"SELECT view_key, coalesce(owner, view_key) FROM {self.table('openivm_views')}")
        return {row[0]: row[1] for row in rows}

    def logs(self) -> dict[str, RelationName]:
        """The change log of each source: a base's, or a view's boundary."""
        logs = {}
        for key, objects in self.session.execute(f"SELECT source_key, objects FROM {self.table('openivm_sources')}"):
            delta = json.loads(objects).get("delta")
            if delta:
                logs[key] = RelationName(*delta)
        published = self.session.execute(
            "SELECT view_key, view_database, internal_schema, delta_table "
            f"FROM {self.table('openivm_views')} WHERE delta_table IS NOT NULL"
        )
        for key, database, schema, delta in published:
            logs[key] = RelationName(database, schema, delta)
        return logs


def status(session: Session, database: str) -> str:
    """One line a view: how it is maintained, what the last refresh did, what waits in its sources, who reads it."""
    reader = Reader(session, database)
    views = reader.views()
    if not views:
        return NOTHING
    last, pending, consumers = _last_refreshes(reader), _pending(reader), _consumers(reader)
    rows = []
    for view in views:
        strategy, ms, count = last.get(view.key, (None, None, None))
        waiting = ", ".join(pending.get(view.key, [])) or "nothing"
        readers = ", ".join(sorted(consumers.get(view.key, []))) or "-"
        when = str(view.refreshed_at)[:19]
        rows.append([_short(view.name), view.refresh_type, when, strategy, ms, count, waiting, readers])
    header = ["view", "refresh type", "refreshed at", "strategy", "ms", "rows", "pending changes", "consumers"]
    notes = [f"{_short(view.name)} refreshes in full: {view.reason}" for view in views if view.reason]
    hint = "Changes in sources with capture `diff` are only known once the next run looks for them."
    return "\n".join([format_table(header, rows), "", *notes, hint])


def history(session: Session, database: str, view: str | None = None, limit: int = 20) -> str:
    """One line a refresh, newest first."""
    reader = Reader(session, database)
    if not reader.exists():
        return NOTHING
    only = "" if view is None else f"WHERE h.view_key = {literal(view.lower())}"
    rows = session.execute(
        f"""SELECT h.started_at, v.view_schema || '.' || v.view_name, h.refresh_type, h.strategy, h.delta_rows,
                   h.changed_rows, h.row_count, h.ms, h.reason, h.steps
            FROM {reader.table("openivm_refresh_history")} h
            JOIN {reader.table("openivm_views")} v ON v.view_key = h.view_key AND v.owner IS NULL
            {only} ORDER BY h.started_at DESC LIMIT {int(limit)}"""
    )
    if not rows:
        return "No refresh is recorded."
    header = [
        "started at",
        "view",
        "refresh type",
        "strategy",
        "changes in",
        "changed",
        "rows",
        "ms",
        "ms a step",
        "why",
    ]
    return format_table(header, [[str(r[0])[:19], *r[1:8], _steps(r[9]), r[8]] for r in rows])


def _steps(steps: str | None) -> str | None:
    if not steps:
        return None
    return ", ".join(f"{name} {ms:.1f}" for name, ms in json.loads(steps)) or None


def _short(name: RelationName) -> str:
    return f"{name.schema}.{name.name}"


def _last_refreshes(reader: Reader) -> dict[str, tuple[str, float, int | None]]:
    rows = reader.session.execute(
        f"""SELECT view_key, strategy, ms,
                   max_by(row_count, started_at) FILTER (row_count IS NOT NULL) OVER (PARTITION BY view_key)
            FROM {reader.table("openivm_refresh_history")}
            QUALIFY row_number() OVER (PARTITION BY view_key ORDER BY started_at DESC) = 1"""
    )
    return {row[0]: (row[1], row[2], row[3]) for row in rows}


def _pending(reader: Reader) -> dict[str, list[str]]:
    """Per view, the rows of its sources' logs that it has not consumed; rows without a number are not captured yet."""
    owners, logs = reader.owners(), reader.logs()
    pending: dict[str, list[str]] = {}
    for view, source, kind, cursor in reader.cursors():
        log = logs.get(source)
        if kind == "node" or log is None or not _is_there(reader.session, log):
            continue
        query = f"SELECT count(*) FROM {log.sql} WHERE {quote(BATCH)} > {cursor} OR {quote(BATCH)} IS NULL"
        count = reader.session.execute(query)[0][0]
        if count:
            pending.setdefault(owners.get(view, view), []).append(f"{source.split('.', 1)[-1]} {count:,}")
    return pending


def _consumers(reader: Reader) -> dict[str, set[str]]:
    owners = reader.owners()
    consumers: dict[str, set[str]] = {}
    for view, source, kind, _ in reader.cursors():
        reader_view = owners.get(view, view)
        if kind == "visible" and reader_view != source:
            consumers.setdefault(source, set()).add(reader_view.split(".", 1)[-1])
    return consumers


def _is_there(session: Session, name: RelationName) -> bool:
    return bool(
        session.execute(
            f"SELECT 1 FROM duckdb_tables() WHERE database_name = {literal(name.database)} "
            f"AND schema_name = {literal(name.schema)} AND table_name = {literal(name.name)}"
        )
    )


def numbered(lines: Iterable[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)

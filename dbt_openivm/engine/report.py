"""What users ask of the catalog: the state of their views, and what happened to them. Read-only; answers are text."""

from __future__ import annotations

import json

from dbt_openivm.engine.catalog import Catalog, ViewRow
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.table import format_table
from dbt_openivm.names import BATCH, RelationName, literal, quote

NOTHING = "No ivm_view has been built in this database."


class Reader(Catalog):
    """The catalog of one database, for reading; it need not exist."""

    def user_views(self) -> list[ViewRow]:
        """The views of users, without the internal nodes that belong to them."""
        return sorted(self.views("owner IS NULL"), key=lambda view: view.key) if self.exists() else []

    def user_view(self, key: str) -> ViewRow | None:
        return next((view for view in self.user_views() if view.key == key.lower()), None)

    def owners(self) -> dict[str, str]:
        """The view that each view or internal node belongs to: itself, or its owner."""
        return {view.key: view.owner or view.key for view in self.views()}

    def logs(self) -> dict[str, RelationName]:
        """The change log of each source: a base's, or a view's boundary."""
        bases = {key: source.objects["delta"] for key, source in self.sources().items()}
        return bases | {view.key: view.log for view in self.views()}

    def refreshed_at(self) -> dict[str, str]:
        """When each view was last brought up to date; a quick refresh may leave it to the history."""
        rows = self.session.execute(
            f"""SELECT view_key, greatest(refreshed_at, (SELECT max(started_at) FROM
                    {self.table("openivm_refresh_history")} AS h WHERE h.view_key = v.view_key))
                FROM {self.table("openivm_views")} AS v"""
        )
        return {row[0]: str(row[1])[:19] for row in rows}


def status(session: Session, database: str) -> str:
    """One line a view: how it is maintained, what the last refresh did, what waits in its sources, who reads it."""
    reader = Reader(session, database)
    views = reader.user_views()
    if not views:
        return NOTHING
    refreshed, last, pending, consumers = reader.refreshed_at(), _last(reader), _pending(reader), _consumers(reader)
    rows = []
    for view in views:
        waiting = ", ".join(pending.get(view.key, [])) or "nothing"
        readers = ", ".join(sorted(consumers.get(view.key, []))) or "-"
        outcome = last.get(view.key, (None, None))
        rows.append(
            [_short(view.name), view.refresh_type, refreshed[view.key], *outcome, view.row_count, waiting, readers]
        )
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


def _last(reader: Reader) -> dict[str, tuple[str, float]]:
    """Strategy and milliseconds of each view's last refresh."""
    rows = reader.session.execute(
        f"""SELECT view_key, strategy, ms FROM {reader.table("openivm_refresh_history")}
            QUALIFY row_number() OVER (PARTITION BY view_key ORDER BY started_at DESC) = 1"""
    )
    return {row[0]: (row[1], row[2]) for row in rows}


def _pending(reader: Reader) -> dict[str, list[str]]:
    """Per view, the rows of its sources' logs that it has not consumed; rows without a number are not captured yet."""
    owners, logs = reader.owners(), reader.logs()
    pending: dict[str, list[str]] = {}
    for cursor in reader.cursors("source_kind <> 'node'"):
        log = logs.get(cursor.source_key)
        if log is None or not _is_there(reader.session, log):
            continue
        late = f"{quote(BATCH)} > {cursor.cursor} OR {quote(BATCH)} IS NULL"
        [(count,)] = reader.session.execute(f"SELECT count(*) FROM {log.sql} WHERE {late}")
        if count:
            view = owners.get(cursor.view_key, cursor.view_key)
            pending.setdefault(view, []).append(f"{_without_database(cursor.source_key)} {count:,}")
    return pending


def _consumers(reader: Reader) -> dict[str, set[str]]:
    owners = reader.owners()
    consumers: dict[str, set[str]] = {}
    for cursor in reader.cursors("source_kind = 'visible'"):
        view = owners.get(cursor.view_key, cursor.view_key)
        consumers.setdefault(cursor.source_key, set()).add(_without_database(view))
    return consumers


def _is_there(session: Session, name: RelationName) -> bool:
    return bool(
        session.execute(
            f"SELECT 1 FROM duckdb_tables() WHERE database_name = {literal(name.database)} "
            f"AND schema_name = {literal(name.schema)} AND table_name = {literal(name.name)}"
        )
    )


def _without_database(key: str) -> str:
    return key.split(".", 1)[-1]

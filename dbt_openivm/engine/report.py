"""What users ask of the catalog: the state of their views, and what happened to them. Read-only; answers are text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta

from dbt_openivm.compiler.layout import WIDTH, wrapped
from dbt_openivm.engine.catalog import IS_OUTSIDE, Catalog, ViewRow
from dbt_openivm.engine.consumers import ANEW
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.table import format_table
from dbt_openivm.engine.types import Consumer
from dbt_openivm.names import BATCH, RelationName, literal, quote

Locate = Callable[[str, str], str]
"""(key of a view, a reason) -> the reason with places in the user's files."""


def unlocated(_view: str, reason: str) -> str:
    return reason


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


def status(session: Session, database: str, locate: Locate = unlocated) -> str:
    """How each view is maintained and what its last refresh did; how each source is captured and what waits in it."""
    reader = Reader(session, database)
    views = reader.user_views()
    if not views:
        return NOTHING
    refreshed, last = reader.refreshed_at(), _last(reader)
    rows = [
        [shown(v.name), v.refresh_type, refreshed[v.key], *last.get(v.key, (None, None)), v.row_count] for v in views
    ]
    lines = [format_table(["view", "refresh type", "refreshed at", "refresh", "ms", "rows"], rows)]
    sources = _sources(reader)
    if sources:
        lines += ["", format_table(["source", "capture", "pending", "read by"], sources, WIDTH)]
    notes = [f"{shown(view.name)} refreshes in full: {locate(view.key, view.reason)}." for view in views if view.reason]
    lines += [""] * bool(notes) + [line for note in notes for line in wrapped(note)]
    if any(capture == "diff" for _, capture, _, _ in sources):
        lines += ["", "What waits in a source with capture diff is known once the next run has compared it."]
    return "\n".join(lines)


def consumers(session: Session, database: str, told: Callable[[str], list[Consumer]]) -> str:
    """Who consumes the changes of each view: what it has acknowledged, and how far it is behind.

    Args:
        told: the consumers of a view, by its key.
    """
    reader = Reader(session, database)
    views = reader.user_views()
    if not views:
        return NOTHING
    known = {view.key: told(view.key) for view in views}
    rows = [_lag(shown(view.name), consumer) for view in views for consumer in known[view.key]]
    header = ["view", "consumer", "has batch", "of", "refreshes behind", "rows", "time", "reads next"]
    lines = [format_table(header, rows)] if rows else ["No consumer is registered."]
    notes = [
        f"{shown(view.name)} keeps its changes for {view.change_feed}, and has no consumer."
        for view in views
        if view.change_feed and not known[view.key]
    ]
    if not all(consumer.complete for found in known.values() for consumer in found):
        notes.append(f"Where changes are missed: {ANEW}")
    return "\n".join([*lines, *([""] * bool(notes)), *(line for note in notes for line in wrapped(note))])


def _lag(view: str, consumer: Consumer) -> list[str | int | None]:
    lag = consumer.lag
    what = "the whole view" if consumer.snapshot else "changes"
    if lag is None:
        return [view, consumer.name, consumer.cursor, consumer.version, None, None, None, "missed changes"]
    age = str(timedelta(seconds=int(lag.seconds))) if lag.batches else None
    return [view, consumer.name, consumer.cursor, consumer.version, lag.batches, lag.rows, age, what]


def history(
    session: Session, database: str, view: str | None = None, limit: int = 20, locate: Locate = unlocated
) -> str:
    """Each refresh, newest first: a line of figures, and below it the refresh type, why, and the time of its steps."""
    reader = Reader(session, database)
    if not reader.exists():
        return NOTHING
    only = "" if view is None else f"WHERE h.view_key = {literal(view.lower())}"
    rows = session.execute(
        f"""SELECT h.started_at, v.view_schema || '.' || v.view_name, h.strategy, h.delta_rows, h.changed_rows,
                   h.row_count, h.ms, h.refresh_type, h.reason, h.steps, h.view_key
            FROM {reader.table("openivm_refresh_history")} h
            JOIN {reader.table("openivm_views")} v ON v.view_key = h.view_key AND v.owner IS NULL
            {only} ORDER BY h.started_at DESC LIMIT {int(limit)}"""
    )
    if not rows:
        return "No refresh is recorded."
    header = ["started at", "view", "refresh", "in", "changed", "rows", "ms"]
    title, *figures = format_table(header, [[str(row[0])[:19], *row[1:7]] for row in rows]).splitlines()
    lines = [title]
    for figure, (refresh_type, reason, steps, key) in zip(figures, (row[7:] for row in rows), strict=True):
        lines += [figure, *_details(refresh_type, reason and locate(key, reason), steps)]
    return "\n".join(lines)


def _details(refresh_type: str, reason: str | None, steps: str | None) -> list[str]:
    lines = wrapped(f"{refresh_type}: {reason}" if reason else refresh_type, "    ")
    times = ", ".join(f"{name} {ms:.1f}" for name, ms in json.loads(steps or "[]"))
    return lines + (wrapped(f"ms per step: {times}", "    ") if times else [])


def shown(name: RelationName) -> str:
    """A view's name for people, who know which database they are in."""
    return f"{name.schema}.{name.name}"


def _sources(reader: Reader) -> list[list[str | int | None]]:
    """(source, capture, changes that wait, the views for which they wait), a row for each number of changes."""
    captures = {key: row.capture for key, row in reader.sources().items()}
    waiting: dict[tuple[str, str, int | None], set[str]] = {}
    for key, view, count in _pending(reader):
        waiting.setdefault((key, captures.get(key, "ivm_view"), count), set()).add(without_database(view))
    for key, consumer, count in _unread(reader):
        waiting.setdefault((key, "companion rows", count), set()).add(consumer)
    ordered = sorted(waiting.items(), key=lambda item: (item[0][0], item[0][1] == "companion rows", -(item[0][2] or 0)))
    return [
        [without_database(key), capture, count, ", ".join(sorted(views))] for (key, capture, count), views in ordered
    ]


def _unread(reader: Reader) -> Iterator[tuple[str, str, int | None]]:
    """(view, consumer, companion rows that it has not acknowledged); None where some are lost."""
    views = {view.key: view for view in reader.views("companion_table IS NOT NULL")}
    for cursor in reader.cursors(IS_OUTSIDE):
        view = views.get(cursor.source_key)
        if view is None or view.companion is None or not _is_there(reader.session, view.companion):
            yield cursor.source_key, cursor.view_key, None
            continue
        unread = f"SELECT count(*) FROM {view.companion.sql} WHERE {quote(BATCH)} > {cursor.cursor}"
        [(count,)] = reader.session.execute(unread)
        yield view.key, cursor.view_key, count if cursor.generation == view.generation else None


def _last(reader: Reader) -> dict[str, tuple[str, float]]:
    """Strategy and milliseconds of each view's last refresh."""
    rows = reader.session.execute(
        f"""SELECT view_key, strategy, ms FROM {reader.table("openivm_refresh_history")}
            QUALIFY row_number() OVER (PARTITION BY view_key ORDER BY started_at DESC) = 1"""
    )
    return {row[0]: (row[1], row[2]) for row in rows}


def _pending(reader: Reader) -> Iterator[tuple[str, str, int | None]]:
    """(source, view, rows of the source's log that the view has not consumed); None where there is no log.

    Rows without a number are not captured yet.
    """
    owners, logs = reader.owners(), reader.logs()
    for cursor in reader.cursors(f"source_kind NOT IN ('node', 'clock') AND NOT {IS_OUTSIDE}"):
        view = owners.get(cursor.view_key, cursor.view_key)
        log = logs.get(cursor.source_key)
        if log is None or not _is_there(reader.session, log):
            yield cursor.source_key, view, None
            continue
        late = f"{quote(BATCH)} > {cursor.cursor} OR {quote(BATCH)} IS NULL"
        [(count,)] = reader.session.execute(f"SELECT count(*) FROM {log.sql} WHERE {late}")
        yield cursor.source_key, view, count


def _is_there(session: Session, name: RelationName) -> bool:
    return bool(
        session.execute(
            f"SELECT 1 FROM duckdb_tables() WHERE database_name = {literal(name.database)} "
            f"AND schema_name = {literal(name.schema)} AND table_name = {literal(name.name)}"
        )
    )


def without_database(key: str) -> str:
    return key.split(".", 1)[-1]

"""What is left over in a database, and how it goes: views without a model, sources without a consumer, stray objects.

Everything is found from our catalog and DuckDB's. Dropped are only names that start with `openivm_` in schemas that
start with `openivm`, and the user-facing view of a view that goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_openivm.engine.report import Reader
from dbt_openivm.engine.session import Session
from dbt_openivm.names import CATALOG_SCHEMA, PREFIX, RelationName, literal, quote, visible_view

if TYPE_CHECKING:
    from dbt_openivm.engine.maintain import Maintainer

NOTHING_LEFT = "Nothing is left over."


@dataclass(frozen=True)
class Scope:
    """Whose views count as left over.

    Args:
        live: keys of the views that models maintain.
        schemas: `database.schema` (lower case) of the project; a view elsewhere may belong to another project.
        all_schemas: also count views of other schemas.
    """

    live: set[str]
    schemas: set[str]
    all_schemas: bool = False

    def holds(self, view: RelationName) -> bool:
        return self.all_schemas or f"{view.database}.{view.schema}".lower() in self.schemas


@dataclass(frozen=True)
class Stray:
    """An object that nothing needs.

    Args:
        kind: TABLE, VIEW, TRIGGER or SCHEMA.
        name: of a schema, its database and schema with an empty name; of a trigger, its table.
        trigger: name of the trigger.
    """

    kind: str
    name: RelationName
    trigger: str | None = None

    @property
    def drop_sql(self) -> str:
        if self.kind == "SCHEMA":
            return f"DROP SCHEMA IF EXISTS {quote(self.name.database)}.{quote(self.name.schema)}"
        if self.kind == "TRIGGER":
            return f"DROP TRIGGER {quote(self.trigger or '')} ON {self.name.sql}"
        return f"DROP {self.kind} IF EXISTS {self.name.sql}"

    def __str__(self) -> str:
        if self.kind == "TRIGGER":
            return f"trigger {self.trigger} on {self.name.schema}.{self.name.name}"
        if self.kind == "SCHEMA":
            return f"schema {self.name.schema}"
        return f"{self.kind.lower()} {self.name.schema}.{self.name.name}"


def collect(session: Session, database: str, scope: Scope, maintainer: Maintainer, dry_run: bool) -> str:
    """Drop what is left over in one database, or only list it.

    A view goes with its state, its change log and its place among the consumers of its sources, whose logs are then no
    longer held for it.
    """
    reader = Reader(session, database)
    gone, foreign = _gone(reader, scope)
    gone, kept = _in_order(reader, gone)
    unused = _unused_sources(reader, {view.key for view in gone})
    strays = _strays(reader)
    lines = [f"view {view} has no model" for view in gone]
    lines += [f"source {key} has no consumer" for key in unused]
    lines += [f"{stray} belongs to nothing" for stray in strays]
    if not dry_run and lines:
        with maintainer.coordinator.locked(), _transaction(session):
            for view in gone:
                maintainer.drop(view)
            maintainer.drop_unread_sources()
            _drop_all(session, strays)
            _drop_all(session, _empty_schemas(session, database))
    notes = [f"kept: view {view} has no model, but is read by {', '.join(readers)}" for view, readers in kept.items()]
    return "\n".join([_text(lines, foreign, dry_run, "dropped"), *notes])


def remove(session: Session, database: str, dry_run: bool) -> str:
    """Drop every maintained view of one database, their state, the captures of their sources and the catalog.

    It asks only DuckDB's catalog, so that it also works where ours is damaged or of another version.
    """
    objects = [*_published(session, database), *_objects(session, database, with_catalog=True)]
    if not dry_run:
        with _transaction(session):
            _drop_all(session, objects)
    return _text([str(stray) for stray in objects], [], dry_run, "removed")


def _published(session: Session, database: str) -> list[Stray]:
    """The views that users query: those over a boundary."""
    rows = session.execute(
        "SELECT database_name, schema_name, view_name FROM duckdb_views() "
        f"WHERE database_name = {literal(database)} AND NOT starts_with(schema_name, {literal(PREFIX)}) "
        f"AND contains(sql, {literal(visible_view(''))}) ORDER BY ALL"
    )
    return [Stray("VIEW", RelationName(*row)) for row in rows]


def _text(lines: list[str], foreign: list[RelationName], dry_run: bool, done: str) -> str:
    text = [f"{'would be ' if dry_run else ''}{done}: {line}" for line in lines] or [NOTHING_LEFT]
    if dry_run and lines:
        text.append("Nothing was changed: this was a dry run. Pass {dry_run: false} to do it.")
    if foreign:
        names = ", ".join(f"{view.schema}.{view.name}" for view in foreign)
        text.append(
            f"Views in schemas that this project does not use: {names}. They may belong to another project or target; "
            "pass {all_schemas: true} to count them as left over."
        )
    return "\n".join(text)


def without_model(session: Session, database: str, scope: Scope) -> list[RelationName]:
    """The views of this project that no model maintains any more."""
    return _gone(Reader(session, database), scope)[0]


def _gone(reader: Reader, scope: Scope) -> tuple[list[RelationName], list[RelationName]]:
    """Views without a model: those that go, and those that may be another project's."""
    gone: list[RelationName] = []
    foreign: list[RelationName] = []
    for view in reader.user_views():
        if view.key in scope.live:
            continue
        ours = scope.holds(view.name) or not _exists(reader.session, view.name)
        (gone if ours else foreign).append(view.name)
    return gone, foreign


def _in_order(reader: Reader, gone: list[RelationName]) -> tuple[list[RelationName], dict[RelationName, list[str]]]:
    """Views to drop, readers before what they read; and those that stay, because a live view reads them."""
    readers = _readers(reader) if gone else {}
    ordered: list[RelationName] = []
    waiting = list(gone)
    while waiting:
        dropped = {view.key for view in ordered}
        free = [view for view in waiting if readers.get(view.key, set()) <= dropped]
        if not free:
            break
        ordered += free
        waiting = [view for view in waiting if view not in free]
    return ordered, {view: sorted(readers[view.key]) for view in waiting}


def _readers(reader: Reader) -> dict[str, set[str]]:
    """The views that read each view."""
    owners = reader.owners()
    readers: dict[str, set[str]] = {}
    for cursor in reader.cursors("true"):
        view = owners.get(cursor.view_key, cursor.view_key)
        if view != owners.get(cursor.source_key):
            readers.setdefault(cursor.source_key, set()).add(view)
    return readers


def _exists(session: Session, name: RelationName) -> bool:
    where = f"lower(database_name || '.' || schema_name) = lower({literal(name.database + '.' + name.schema)})"
    return bool(
        session.execute(
            f"SELECT 1 FROM duckdb_views() WHERE {where} AND lower(view_name) = lower({literal(name.name)}) UNION ALL "
            f"SELECT 1 FROM duckdb_tables() WHERE {where} AND lower(table_name) = lower({literal(name.name)})"
        )
    )


def _unused_sources(reader: Reader, without_views: set[str]) -> list[str]:
    """Captured bases that no view reads, once `without_views` are gone."""
    if not reader.exists():
        return []
    owners = reader.owners()
    read = {c.source_key for c in reader.cursors("true") if owners.get(c.view_key, c.view_key) not in without_views}
    return sorted(key for key in reader.sources() if key not in read)


@contextmanager
def _transaction(session: Session) -> Iterator[None]:
    session.begin()
    try:
        yield
        session.commit()
    except BaseException:
        session.rollback()
        raise


def _strays(reader: Reader) -> list[Stray]:
    """Internal objects that no row of the catalog mentions.

    Those of a view that is about to go are not among them: they go with it.
    """
    if not reader.exists():
        return []
    known = _mentioned(reader)
    strays = [o for o in _objects(reader.session, reader.database, with_catalog=False) if o.kind != "SCHEMA"]
    strays = [o for o in strays if o.kind == "TRIGGER" or o.name.key not in known]
    return [o for o in strays if o.kind != "TRIGGER" or _is_orphan(reader.session, o, known)]


def _is_orphan(session: Session, trigger: Stray, known: set[str]) -> bool:
    """Whether a trigger writes to no log that the catalog knows."""
    text = _trigger_sql(session, trigger).lower()
    return not any(key.rsplit(".", 1)[-1] in text for key in known)


def _trigger_sql(session: Session, trigger: Stray) -> str:
    rows = session.execute(
        f"SELECT sql FROM duckdb_triggers() WHERE trigger_name = {literal(trigger.trigger or '')} "
        f"AND table_name = {literal(trigger.name.name)} AND schema_name = {literal(trigger.name.schema)} "
        f"AND database_name = {literal(trigger.name.database)}"
    )
    return str(rows[0][0]) if rows else ""


def _mentioned(reader: Reader) -> set[str]:
    """Keys of the internal objects that the catalog's rows name."""
    known = {name.key for source in reader.sources().values() for name in source.objects.values()}
    for view in reader.views():
        known |= {view.data.key, view.visible.key, view.log.key}
    return known


def _objects(session: Session, database: str, with_catalog: bool) -> Iterator[Stray]:
    """Every internal object of a database, in an order in which they can be dropped."""
    here = f"database_name = {literal(database)} AND starts_with(schema_name, {literal(PREFIX)})"
    if with_catalog:
        ours = f"starts_with(schema_name, {literal(PREFIX)}) OR schema_name = {literal(CATALOG_SCHEMA)}"
        here = f"database_name = {literal(database)} AND ({ours})"
    mine = f"{here} AND starts_with({{}}, {literal(PREFIX)})"
    yield from triggers(session, database)
    for kind, function, column in (("VIEW", "duckdb_views()", "view_name"), ("TABLE", "duckdb_tables()", "table_name")):
        rows = session.execute(
            f"SELECT database_name, schema_name, {column} FROM {function} WHERE {mine.format(column)} ORDER BY ALL"
        )
        yield from (Stray(kind, RelationName(*row)) for row in rows)
    rows = session.execute(f"SELECT database_name, schema_name FROM duckdb_schemas() WHERE {here} ORDER BY ALL")
    yield from (Stray("SCHEMA", RelationName(row[0], row[1], "")) for row in rows)


def _empty_schemas(session: Session, database: str) -> list[Stray]:
    objects = list(_objects(session, database, with_catalog=False))
    used = {stray.name.schema for stray in objects if stray.kind != "SCHEMA"}
    return [stray for stray in objects if stray.kind == "SCHEMA" and stray.name.schema not in used]


def triggers(session: Session, database: str) -> list[Stray]:
    """The triggers of captures; DuckDB has them from 2.0 on."""
    if not session.execute("SELECT 1 FROM duckdb_functions() WHERE function_name = 'duckdb_triggers'"):
        return []
    rows = session.execute(
        "SELECT database_name, schema_name, table_name, trigger_name FROM duckdb_triggers() "
        f"WHERE database_name = {literal(database)} AND starts_with(trigger_name, {literal(PREFIX)}) ORDER BY ALL"
    )
    return [Stray("TRIGGER", RelationName(*row[:3]), row[3]) for row in rows]


def _drop_all(session: Session, strays: list[Stray]) -> None:
    for stray in strays:
        session.execute(stray.drop_sql)

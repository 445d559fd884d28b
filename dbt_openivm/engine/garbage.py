"""What is left over in a database, and how it goes: views without a model, sources without a consumer, stray objects.

Everything is found from our catalog and DuckDB's. Dropped are only names that start with `openivm_` in schemas that
start with `openivm`, and the user-facing view of a view that goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_openivm.compiler.layout import wrapped
from dbt_openivm.engine.catalog import ViewRow
from dbt_openivm.engine.report import Reader, shown, without_database
from dbt_openivm.engine.session import Session
from dbt_openivm.names import CATALOG_SCHEMA, PREFIX, RelationName, literal, quote, visible_view

if TYPE_CHECKING:
    from dbt_openivm.engine.maintain import Maintainer

NOTHING_LEFT = "Nothing is left over."


@dataclass(frozen=True)
class Scope:
    """Whose views count as left over.

    Args:
        project: the dbt project that asks.
        made: how each of its models is materialized, by the key of its relation.
        schemas: `database.schema` (lower case) of the project; a view elsewhere may belong to another target.
        everywhere: also count views of other schemas and projects.
    """

    project: str
    made: Mapping[str, str]
    schemas: set[str]
    everywhere: bool = False

    def is_live(self, view: ViewRow) -> bool:
        return self.made.get(view.key) == "ivm_view"

    def holds(self, view: ViewRow) -> bool:
        here = f"{view.name.database}.{view.name.schema}".lower() in self.schemas
        return self.everywhere or (here and view.project == self.project)

    def why_gone(self, view: ViewRow) -> str:
        materialized = self.made.get(view.key)
        if materialized is not None:
            return f"its model is materialized as {materialized} now"
        return f"no model of project {self.project} makes it any more"


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
    lines = [f"view {shown(view.name)}: {scope.why_gone(view)}" for view in gone]
    lines += [f"capture of {without_database(key)}: no view reads it" for key in unused]
    lines += [f"{stray}: belongs to nothing" for stray in strays]
    if not dry_run and lines:
        with maintainer.coordinator.locked(), _transaction(session):
            for view in gone:
                maintainer.drop(view.name)
            maintainer.drop_unread_sources()
            _drop_all(session, strays)
            _drop_all(session, _empty_schemas(session, database))
    notes = [f"Kept: view {name} has no model, but is read by {', '.join(readers)}." for name, readers in kept.items()]
    return "\n".join([_text(lines, dry_run, "dropped"), *notes, *_elsewhere(foreign, scope)])


def _elsewhere(foreign: list[ViewRow], scope: Scope) -> list[str]:
    """A note about views that this project does not maintain, but somebody else may."""
    if not foreign:
        return []
    names = ", ".join(f"{shown(view.name)} ({_owner(view, scope)})" for view in foreign)
    return wrapped(
        f"Not counted, as they may be in use elsewhere: {names}. "
        "Pass {all_schemas: true} to count every view that no model of this project maintains."
    )


def _owner(view: ViewRow, scope: Scope) -> str:
    if view.project is None:
        return "made without dbt"
    return "another target" if view.project == scope.project else f"project {view.project}"


def remove(session: Session, database: str, dry_run: bool) -> str:
    """Drop every maintained view of one database, their state, the captures of their sources and the catalog.

    It asks only DuckDB's catalog, so that it also works where ours is damaged or of another version. Schemas that hold
    anything else stay.
    """
    views = _published(session, database)
    inside = list(_objects(session, database, with_catalog=True))
    others = {stray.name.schema: _others(session, stray.name) for stray in inside if stray.kind == "SCHEMA"}
    dropped = [stray for stray in inside if stray.kind != "SCHEMA" or not others[stray.name.schema]]
    if not dry_run:
        with _transaction(session):
            _drop_all(session, [*views, *dropped])
    notes = [
        line
        for schema, names in others.items()
        if names
        for line in wrapped(f"Kept: schema {schema} holds {', '.join(names)}, which dbt-openivm did not make.")
    ]
    return "\n".join([_text(_summary(views, dropped), dry_run, "removed"), *notes])


def _summary(views: list[Stray], objects: list[Stray]) -> list[str]:
    """Few lines for many objects: views, triggers by table, the number of internal objects, schemas."""
    lines = [f"view {shown(view.name)}" for view in views]
    tables = Counter(shown(stray.name) for stray in objects if stray.kind == "TRIGGER")
    lines += [f"{count} trigger{'s' * (count > 1)} on {table}" for table, count in tables.items()]
    schemas = Counter(stray.name.schema for stray in objects if stray.kind in ("TABLE", "VIEW"))
    gone = {stray.name.schema for stray in objects if stray.kind == "SCHEMA"}
    for schema in sorted(gone | schemas.keys()):
        what = f"{schemas[schema]} internal tables and views"
        lines.append(f"schema {schema} with {what}" if schema in gone else f"{what} in schema {schema}")
    return lines


def _others(session: Session, schema: RelationName) -> list[str]:
    """What a schema holds that is not ours."""
    queries = [
        f"SELECT {literal(kind)} || ' ' || {name} AS what FROM {function} WHERE NOT internal AND database_name = "
        f"{literal(schema.database)} AND schema_name = {literal(schema.schema)} AND NOT starts_with({name}, "
        f"{literal(PREFIX)})"
        for kind, function, name in (
            ("table", "duckdb_tables()", "table_name"),
            ("view", "duckdb_views()", "view_name"),
            ("type", "duckdb_types()", "type_name"),
            ("macro", "duckdb_functions()", "function_name"),
        )
    ]
    queries.append(
        f"SELECT 'sequence ' || sequence_name FROM duckdb_sequences() WHERE database_name = {literal(schema.database)} "
        f"AND schema_name = {literal(schema.schema)}"
    )
    return [str(row[0]) for row in session.execute(f"{' UNION ALL '.join(queries)} ORDER BY what")]


def _published(session: Session, database: str) -> list[Stray]:
    """The views that users query: those over a boundary."""
    rows = session.execute(
        "SELECT database_name, schema_name, view_name FROM duckdb_views() "
        f"WHERE database_name = {literal(database)} AND NOT starts_with(schema_name, {literal(PREFIX)}) "
        f"AND contains(sql, {literal(visible_view(''))}) ORDER BY ALL"
    )
    return [Stray("VIEW", RelationName(*row)) for row in rows]


def _text(lines: list[str], dry_run: bool, done: str) -> str:
    if not lines:
        return NOTHING_LEFT
    text = [f"{'would be ' if dry_run else ''}{done}:", *(f"  {line}" for line in lines)]
    if dry_run:
        text.append("Nothing was changed: this was a dry run. Pass {dry_run: false} to do it.")
    return "\n".join(text)


def without_model(session: Session, database: str, scope: Scope) -> list[ViewRow]:
    """The views of this project that no model maintains any more."""
    return _gone(Reader(session, database), scope)[0]


def _gone(reader: Reader, scope: Scope) -> tuple[list[ViewRow], list[ViewRow]]:
    """Views without a model: those that go, and those that may be in use elsewhere."""
    gone: list[ViewRow] = []
    foreign: list[ViewRow] = []
    for view in reader.user_views():
        if not scope.is_live(view):
            ours = scope.holds(view) or not _exists(reader.session, view.name)
            (gone if ours else foreign).append(view)
    return gone, foreign


def _in_order(reader: Reader, gone: list[ViewRow]) -> tuple[list[ViewRow], dict[str, list[str]]]:
    """Views to drop, readers before what they read; and those that stay, because a live view reads them."""
    readers = _readers(reader) if gone else {}
    ordered: list[ViewRow] = []
    waiting = list(gone)
    while waiting:
        dropped = {view.key for view in ordered}
        free = [view for view in waiting if readers.get(view.key, set()) <= dropped]
        if not free:
            break
        ordered += free
        waiting = [view for view in waiting if view not in free]
    return ordered, {shown(view.name): sorted(map(without_database, readers[view.key])) for view in waiting}


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
        known |= {view.companion.key} if view.companion else set()
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

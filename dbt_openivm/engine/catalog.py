"""Read and write the catalog: views, sources, cursors, history. One statement a method, rows as dataclasses."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from dbt_openivm.compiler.facts import Column
from dbt_openivm.engine.catalog_tables import CATALOG_VERSION, TABLES
from dbt_openivm.engine.session import Row, Session
from dbt_openivm.engine.types import RefreshResult
from dbt_openivm.errors import UnsafeError
from dbt_openivm.names import CATALOG_SCHEMA, RelationName, literal, quote

NOW = "now()::TIMESTAMP"


def columns_to_json(columns: Iterable[Column]) -> str:
    return json.dumps([[column.name, column.type] for column in columns])


def columns_from_json(text: str) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_ in json.loads(text))


@dataclass(frozen=True)
class ViewRow:
    """A maintained view or an internal node, as the catalog knows it."""

    key: str
    name: RelationName
    owner: str | None
    definition: str
    fingerprint: str
    refresh_type: str
    reason: str | None
    data: RelationName
    visible: RelationName
    log: RelationName
    columns: tuple[Column, ...]
    version: int
    log_start: int
    generation: int
    row_count: int
    digest: str | None = None
    types: str = "[]"
    sources: str = "[]"
    volatile: bool = False
    project: str | None = None

    @property
    def objects(self) -> tuple[RelationName, ...]:
        """The internal objects that must be there."""
        return (self.data, self.visible, self.log)


@dataclass(frozen=True)
class SourceRow:
    """A captured base, as the catalog knows it."""

    key: str
    from_sql: str
    capture: str
    objects: Mapping[str, RelationName]
    columns: tuple[Column, ...]
    version: int
    log_start: int
    generation: int


@dataclass(frozen=True)
class Cursor:
    """What a view has consumed of a source."""

    view_key: str
    source_key: str
    kind: str
    cursor: int
    generation: int
    columns: tuple[Column, ...]


def create_schema(session: Session, database: str, schema: str) -> None:
    session.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(database)}.{quote(schema)}")


def _values(*values: object) -> str:
    return ", ".join(_value(value) for value in values)


def _value(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value)
    return literal(str(value))


class Catalog:
    """The catalog of one database."""

    def __init__(self, session: Session, database: str) -> None:
        self.session = session
        self.database = database

    def table(self, name: str) -> str:
        return RelationName(self.database, CATALOG_SCHEMA, name).sql

    # --- set-up ------------------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether all its tables are there."""
        return self.has_tables([RelationName(self.database, CATALOG_SCHEMA, name) for name in TABLES])

    def has_tables(self, names: Collection[RelationName]) -> bool:
        """Whether all these tables exist."""
        wanted = " OR ".join(
            f"(schema_name = {literal(name.schema)} AND table_name = {literal(name.name)})" for name in names
        )
        [(found,)] = self.session.execute(
            f"SELECT count(*) FROM duckdb_tables() WHERE database_name = {literal(self.database)} AND ({wanted})"
        )
        return bool(found == len(names))

    def create(self) -> None:
        """Create what is missing: what somebody dropped by hand comes back empty, and views are built anew."""
        create_schema(self.session, self.database, CATALOG_SCHEMA)
        for name, columns in TABLES.items():
            self.session.execute(f"CREATE TABLE IF NOT EXISTS {self.table(name)} ({columns})")
        known = self.table("openivm_catalog")
        self.session.execute(
            f"INSERT INTO {known} SELECT {_values(CATALOG_VERSION, str(uuid.uuid4()))} "
            f"WHERE NOT EXISTS (SELECT 1 FROM {known})"
        )

    def identity(self) -> str:
        """The database's identity.

        Raises:
            UnsafeError: the catalog was written by another version of the layout.
        """
        [(version, identity)] = self.session.execute(f"SELECT version, identity FROM {self.table('openivm_catalog')}")
        if version != CATALOG_VERSION:
            raise UnsafeError(
                f"The catalog in schema {CATALOG_SCHEMA} of {self.database} has layout {version}, and this version of "
                f"dbt-openivm knows layout {CATALOG_VERSION}. Nothing was changed. Remove the old objects with "
                "`dbt run-operation ivm_remove`, then run again: every view is rebuilt."
            )
        return str(identity)

    # --- views -------------------------------------------------------------------------------------------------------

    def views(self, condition: str = "true") -> list[ViewRow]:
        rows = self.session.execute(
            "SELECT view_key, view_database, view_schema, view_name, owner, definition, fingerprint, refresh_type, "
            "reason, internal_schema, data_table, visible_view, delta_table, columns, version, log_start, generation, "
            "row_count, digest, types, sources, volatile, project "
            f"FROM {self.table('openivm_views')} WHERE {condition}"
        )
        return [self._view(row) for row in rows]

    def _view(self, row: Row) -> ViewRow:
        data, visible, log = (RelationName(self.database, row[9], name) for name in row[10:13])
        name = RelationName(row[1], row[2], row[3])
        owner, definition, fingerprint, refresh_type, reason = row[4:9]
        version, log_start, generation, row_count, digest, types, sources, volatile, project = row[14:23]
        return ViewRow(
            row[0], name, owner, definition, fingerprint, refresh_type, reason, data, visible, log,
            columns_from_json(row[13]), version, log_start, generation, row_count,
            digest, types, sources, bool(volatile), project,
        )  # fmt: skip

    def view(self, key: str) -> ViewRow | None:
        found = self.views(f"view_key = {literal(key)}")
        return found[0] if found else None

    def family(self, key: str) -> list[ViewRow]:
        """A view and its internal nodes."""
        return self.views(f"view_key = {literal(key)} OR owner = {literal(key)}")

    def put_view(self, view: ViewRow) -> None:
        self.session.execute(f"DELETE FROM {self.table('openivm_views')} WHERE view_key = {literal(view.key)}")
        name = view.name
        values = _values(
            view.key, name.database, name.schema, name.name, view.owner, view.definition, view.fingerprint,
            view.refresh_type, view.reason, view.data.schema, view.data.name, view.visible.name, view.log.name,
            columns_to_json(view.columns), view.version, view.log_start, view.generation, view.row_count,
            view.digest, view.types, view.sources, view.volatile, view.project,
        )  # fmt: skip
        self.session.execute(f"INSERT INTO {self.table('openivm_views')} VALUES ({values}, {NOW}, {NOW})")

    def count_rows(self, view: ViewRow) -> int:
        """The rows of a view's state."""
        [(count,)] = self.session.execute(f"SELECT count(*) FROM {view.data.sql}")
        return int(count)

    def touch_view(self, view: ViewRow, version: int, log_start: int, count: int) -> ViewRow:
        """Note a refresh that changed a view; returns the view's row as it is now."""
        self.session.execute(
            f"UPDATE {self.table('openivm_views')} SET version = {version}, log_start = {log_start}, "
            f"row_count = {count}, refreshed_at = {NOW} WHERE view_key = {literal(view.key)}"
        )
        return replace(view, version=version, log_start=log_start, row_count=count)

    def delete_views(self, keys: Iterable[str]) -> None:
        listed = ", ".join(map(literal, keys))
        for table in ("openivm_views", "openivm_delta_tables"):
            self.session.execute(f"DELETE FROM {self.table(table)} WHERE view_key IN ({listed})")

    # --- sources -----------------------------------------------------------------------------------------------------

    def sources(self, condition: str = "true") -> dict[str, SourceRow]:
        rows = self.session.execute(
            "SELECT source_key, from_sql, capture, objects, columns, version, log_start, generation "
            f"FROM {self.table('openivm_sources')} WHERE {condition}"
        )
        return {row[0]: _source(row) for row in rows}

    def put_source(self, source: SourceRow) -> None:
        objects = json.dumps({role: [n.database, n.schema, n.name] for role, n in source.objects.items()})
        self.delete_source(source.key)
        values = _values(
            source.key, source.from_sql, source.capture, objects, columns_to_json(source.columns), source.version,
            source.log_start, source.generation,
        )  # fmt: skip
        self.session.execute(f"INSERT INTO {self.table('openivm_sources')} VALUES ({values})")

    def delete_source(self, key: str) -> None:
        self.session.execute(f"DELETE FROM {self.table('openivm_sources')} WHERE source_key = {literal(key)}")

    def advance_source(self, key: str, version: int, log_start: int) -> None:
        self.session.execute(
            f"UPDATE {self.table('openivm_sources')} SET version = {version}, log_start = {log_start} "
            f"WHERE source_key = {literal(key)}"
        )

    # --- cursors -----------------------------------------------------------------------------------------------------

    def cursors(self, condition: str = "true") -> list[Cursor]:
        rows = self.session.execute(
            "SELECT view_key, source_key, source_kind, cursor, generation, columns "
            f"FROM {self.table('openivm_delta_tables')} WHERE {condition}"
        )
        return [
            Cursor(view, source, kind, cursor, generation, columns_from_json(columns))
            for view, source, kind, cursor, generation, columns in rows
        ]

    def put_cursors(self, view_key: str, cursors: Iterable[Cursor]) -> None:
        table = self.table("openivm_delta_tables")
        self.session.execute(f"DELETE FROM {table} WHERE view_key = {literal(view_key)}")
        rows = ", ".join(
            f"({_values(c.view_key, c.source_key, c.kind, c.cursor, c.generation, columns_to_json(c.columns))})"
            for c in cursors
        )
        if rows:
            self.session.execute(f"INSERT INTO {table} VALUES {rows}")

    def move_cursors(self, view_key: str, versions: Mapping[str, int]) -> None:
        if not versions:
            return
        cases = " ".join(f"WHEN {literal(key)} THEN {version}" for key, version in versions.items())
        listed = ", ".join(map(literal, versions))
        self.session.execute(
            f"UPDATE {self.table('openivm_delta_tables')} SET cursor = CASE source_key {cases} END "
            f"WHERE view_key = {literal(view_key)} AND source_key IN ({listed})"
        )

    # --- history -----------------------------------------------------------------------------------------------------

    def record(self, key: str, result: RefreshResult, invocation: str | None, steps: list[tuple[str, float]]) -> None:
        timed = json.dumps([[label, round(ms, 3)] for label, ms in steps])
        values = _values(
            invocation, result.refresh_type, result.strategy, result.reason, result.delta_rows, result.changed_rows,
            result.rows, round(result.ms, 3), timed,
        )  # fmt: skip
        self.session.execute(
            f"INSERT INTO {self.table('openivm_refresh_history')} VALUES ({literal(key)}, {NOW}, {values})"
        )


def passed(cursors: Iterable[Cursor], source_key: str) -> int | None:
    """The batch of a source that all its registered consumers have passed; None if it has none."""
    return min((cursor.cursor for cursor in cursors if cursor.source_key == source_key), default=None)


def _source(row: Row) -> SourceRow:
    objects = {role: RelationName(*parts) for role, parts in json.loads(row[3]).items()}
    return SourceRow(row[0], row[1], row[2], objects, columns_from_json(row[4]), *row[5:8])

"""Read and write the catalog: views, sources, cursors, history. One statement a method, rows as dataclasses."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from dbt_openivm.choices import APPLY_STRATEGIES, AUTO, is_retention
from dbt_openivm.compiler.facts import Column
from dbt_openivm.engine.catalog_tables import CATALOG_VERSION, SHAPES, TABLES
from dbt_openivm.engine.session import Row, Session
from dbt_openivm.engine.types import RefreshResult
from dbt_openivm.errors import UnsafeError
from dbt_openivm.names import CATALOG_SCHEMA, RelationName, literal, quote

NOW = "now()::TIMESTAMP"

ROLES = {"diff": ("copy", "buckets"), "trigger": ()}
"""The objects of each kind of capture, besides its change log."""

COMPANION = "companion"
"""The kind of a cursor that stands in a view's companion rows, not in the change log of its boundary."""

SNAPSHOT = "snapshot"
"""The kind of such a cursor whose consumer has yet to read the whole view, as it was at the cursor or later."""

OUTSIDE = (COMPANION, SNAPSHOT)
"""The kinds of cursors that belong to consumers outside the catalog: companion rows, not the boundary's log."""

IS_OUTSIDE = f"source_kind IN ({', '.join(map(literal, OUTSIDE))})"

ALL = 2**63 - 1
"""A batch after all batches."""

MISSED = -1
"""The generation of a cursor whose consumer cannot follow any more."""


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
    state: tuple[Column, ...]
    version: int
    log_start: int
    generation: int
    row_count: int
    digest: str | None = None
    types: str = "[]"
    sources: str = "[]"
    volatile: bool = False
    project: str | None = None
    apply_strategy: str = AUTO
    companion: RelationName | None = None
    change_feed: str | None = None

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
        """Whether all its tables are there, as we make them."""
        return self.shapes() == SHAPES and len(self.identities()) == 1

    def shapes(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """(name, type) of the columns of each table of the catalog that is there."""
        rows = self.session.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            f"WHERE database_name = {literal(self.database)} AND schema_name = {literal(CATALOG_SCHEMA)} "
            "ORDER BY table_name, column_index"
        )
        found: dict[str, tuple[tuple[str, str], ...]] = {}
        for table, column, type_ in rows:
            found[table] = (*found.get(table, ()), (column, type_))
        return {name: columns for name, columns in found.items() if name in TABLES}

    def identities(self) -> list[tuple[int, str]]:
        """(layout, identity) as the catalog says; one, unless somebody edited it."""
        rows = self.session.execute(f"SELECT version, identity FROM {self.table('openivm_catalog')}")
        return [(version, identity) for version, identity in rows if None not in (version, identity)]

    def create(self) -> None:
        """Create what is missing or was altered: it comes back empty, and views are built anew.

        Raises:
            UnsafeError: the catalog was written by another version of the layout.
        """
        create_schema(self.session, self.database, CATALOG_SCHEMA)
        found, known = self.shapes(), self.table("openivm_catalog")
        identities = self.identities() if found.get("openivm_catalog") == SHAPES["openivm_catalog"] else []
        for version, _ in identities:
            self.check_version(version)
        for name, columns in TABLES.items():
            if found.get(name, SHAPES[name]) != SHAPES[name]:
                self.session.execute(f"DROP TABLE {self.table(name)}")
            self.session.execute(f"CREATE TABLE IF NOT EXISTS {self.table(name)} ({columns})")
        if len(identities) != 1:
            _, identity = identities[0] if identities else (CATALOG_VERSION, str(uuid.uuid4()))
            self.session.execute(f"DELETE FROM {known}")
            self.session.execute(f"INSERT INTO {known} VALUES ({_values(CATALOG_VERSION, identity)})")

    def identity(self) -> str:
        """The database's identity.

        Raises:
            UnsafeError: the catalog was written by another version of the layout.
        """
        [(version, identity)] = self.identities()
        self.check_version(version)
        return identity

    def check_version(self, version: int) -> None:
        if version != CATALOG_VERSION:
            raise UnsafeError(
                f"The catalog in schema {CATALOG_SCHEMA} of {self.database} has layout {version}, and this version of "
                f"dbt-openivm knows layout {CATALOG_VERSION}. Nothing was changed. Remove the old objects with "
                "`dbt run-operation ivm_remove`, then run again: every view is rebuilt."
            )

    def columns_of(self, names: Collection[RelationName]) -> dict[str, tuple[Column, ...]]:
        """The columns of those of these tables and views that exist, by key."""
        wanted = ", ".join(f"({literal(name.schema.lower())}, {literal(name.name.lower())})" for name in names)
        rows = self.session.execute(
            "SELECT database_name, schema_name, table_name, column_name, data_type FROM duckdb_columns() "
            f"WHERE database_name = {literal(self.database)} AND (lower(schema_name), lower(table_name)) IN ({wanted}) "
            "ORDER BY table_name, column_index"
        )
        found: dict[str, tuple[Column, ...]] = {}
        for database, schema, table, column, type_ in rows:
            key = RelationName(database, schema, table).key
            found[key] = (*found.get(key, ()), Column(column, type_))
        return found

    # --- views -------------------------------------------------------------------------------------------------------

    def views(self, condition: str = "true") -> list[ViewRow]:
        rows = self.session.execute(
            "SELECT view_key, view_database, view_schema, view_name, owner, definition, fingerprint, refresh_type, "
            "reason, internal_schema, data_table, visible_view, delta_table, columns, state, version, log_start, "
            "generation, row_count, digest, types, sources, volatile, project, companion_table, apply_strategy, "
            "change_feed "
            f"FROM {self.table('openivm_views')} WHERE {condition}"
        )
        return [view for view in map(self._view, rows) if view is not None]

    def _view(self, row: Row) -> ViewRow | None:
        """A row as it was written; None for one that somebody edited beyond reading, as if it had been deleted."""
        owner, reason, digest = row[4], row[8], row[19]
        if None in (*row[:4], *row[5:8], *row[9:19], *row[20:23]) or row[25] not in APPLY_STRATEGIES:
            return None
        if row[26] is not None and not is_retention(row[26]):
            return None
        data, visible, log = (RelationName(self.database, row[9], name) for name in row[10:13])
        companion = RelationName(self.database, row[9], row[24]) if row[24] else None
        try:
            columns, state = columns_from_json(row[13]), columns_from_json(row[14])
            json.loads(row[21])
        except (ValueError, TypeError):
            return None
        definition, fingerprint, refresh_type = row[5:8]
        version, log_start, generation, row_count = row[15:19]
        return ViewRow(
            row[0], RelationName(row[1], row[2], row[3]), owner, definition, fingerprint, refresh_type, reason, data,
            visible, log, columns, state, version, log_start, generation, row_count, digest, row[20], row[21],
            bool(row[22]), row[23], row[25], companion, row[26],
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
            columns_to_json(view.columns), columns_to_json(view.state), view.version, view.log_start, view.generation,
            view.row_count, view.digest, view.types, view.sources, view.volatile, view.project,
            view.companion and view.companion.name,
            view.apply_strategy, view.change_feed,
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

    def set_apply_strategy(self, key: str, apply_strategy: str) -> None:
        """Of a view and its internal nodes."""
        self.session.execute(
            f"UPDATE {self.table('openivm_views')} SET apply_strategy = {literal(apply_strategy)} "
            f"WHERE {literal(key)} IN (view_key, owner)"
        )

    def set_change_feed(self, key: str, change_feed: str | None) -> None:
        """How long the changes of a view are kept; None for no change feed."""
        self.session.execute(
            f"UPDATE {self.table('openivm_views')} SET change_feed = {_value(change_feed)} "
            f"WHERE view_key = {literal(key)}"
        )

    def delete_views(self, keys: Iterable[str]) -> None:
        listed = ", ".join(map(literal, keys))
        for table in ("openivm_views", "openivm_delta_tables"):
            self.session.execute(f"DELETE FROM {self.table(table)} WHERE view_key IN ({listed})")

    def set_companion(self, view_key: str, table: str | None) -> None:
        """Note the name of a view's companion table, None if it has none."""
        self.session.execute(
            f"UPDATE {self.table('openivm_views')} SET companion_table = {_value(table)} "
            f"WHERE view_key = {literal(view_key)}"
        )

    # --- sources -----------------------------------------------------------------------------------------------------

    def sources(self, condition: str = "true") -> dict[str, SourceRow]:
        rows = self.session.execute(
            "SELECT source_key, from_sql, capture, objects, columns, version, log_start, generation "
            f"FROM {self.table('openivm_sources')} WHERE {condition}"
        )
        return {source.key: source for source in map(_source, rows) if source is not None}

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
        return [cursor for cursor in map(_cursor, rows) if cursor is not None]

    def consumers(self, view_key: str) -> list[Cursor]:
        """The registered consumers of a view's companion rows."""
        return self.cursors(f"{IS_OUTSIDE} AND source_key = {literal(view_key)} ORDER BY view_key")

    def put_consumer(self, cursor: Cursor) -> None:
        """Register a consumer, or where it is now; one that cannot follow any more has the generation `MISSED`."""
        self.delete_consumer(cursor.view_key, cursor.source_key)
        values = _values(
            cursor.view_key, cursor.source_key, cursor.kind, cursor.cursor, cursor.generation,
            columns_to_json(cursor.columns),
        )  # fmt: skip
        self.session.execute(f"INSERT INTO {self.table('openivm_delta_tables')} VALUES ({values})")

    def delete_consumer(self, name: str, view_key: str) -> None:
        self.session.execute(
            f"DELETE FROM {self.table('openivm_delta_tables')} WHERE view_key = {literal(name)} "
            f"AND source_key = {literal(view_key)} AND {IS_OUTSIDE}"
        )

    def leave_consumers_behind(self, view_key: str, batch: int = ALL) -> None:
        """Tell the consumers that have not acknowledged a batch of a view's companion rows that it is lost."""
        self.session.execute(
            f"UPDATE {self.table('openivm_delta_tables')} SET generation = {MISSED} "
            f"WHERE source_key = {literal(view_key)} AND {IS_OUTSIDE} AND cursor < {batch}"
        )

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
        """Note a refresh: its time is that of the open transaction."""
        row = {
            "view_key": key,
            "invocation": invocation,
            "refresh_type": result.refresh_type,
            "strategy": result.strategy,
            "reason": result.reason,
            "delta_rows": result.delta_rows,
            "changed_rows": result.changed_rows,
            "row_count": result.rows,
            "ms": round(result.ms, 3),
            "steps": json.dumps([[label, round(ms, 3)] for label, ms in steps]),
        }
        # DuckDB's time for this statement goes with the number of columns that it names
        known = {name: value for name, value in row.items() if value is not None}
        self.session.execute(
            f"INSERT INTO {self.table('openivm_refresh_history')} (started_at, {', '.join(known)}) "
            f"SELECT {NOW}, {_values(*known.values())}"
        )


def passed(cursors: Iterable[Cursor], source_key: str) -> int | None:
    """The batch of a source that all views which read it have passed; None if none reads it."""
    found = (c.cursor for c in cursors if c.source_key == source_key and c.kind not in OUTSIDE)
    return min(found, default=None)


def companion_passed(cursors: Iterable[Cursor], view_key: str) -> int | None:
    """The batch of a view's companion rows that all registered consumers have passed; None if there are none.

    One that cannot follow any more holds back nothing: it starts anew from the view.
    """
    consumers = [c for c in cursors if c.source_key == view_key and c.kind in OUTSIDE]
    return min((ALL if c.generation == MISSED else c.cursor for c in consumers), default=None)


def _source(row: Row) -> SourceRow | None:
    """A row as it was written; None for one that somebody edited beyond reading, as if it had been deleted."""
    try:
        objects = {role: RelationName(*parts) for role, parts in json.loads(row[3]).items()}
        columns = columns_from_json(row[4])
    except (ValueError, TypeError, AttributeError):
        return None
    if None in row or row[2] not in ROLES or objects.keys() != {"delta", *ROLES[row[2]]}:
        return None
    return SourceRow(row[0], row[1], row[2], objects, columns, *row[5:8])


def _cursor(row: Row) -> Cursor | None:
    """Likewise."""
    try:
        columns = columns_from_json(row[5])
    except (ValueError, TypeError):
        return None
    view, source, kind, cursor, generation, _ = row
    return None if None in row else Cursor(view, source, kind, cursor, generation, columns)

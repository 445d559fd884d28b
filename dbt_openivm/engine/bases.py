"""Keep the captures of bases in step with what views need: install, widen, collect, clean, replace what broke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbt_openivm.compiler.facts import Column
from dbt_openivm.engine.capture.base import Base, Capture
from dbt_openivm.engine.capture.registry import KINDS
from dbt_openivm.engine.catalog import Catalog, SourceRow, create_schema
from dbt_openivm.engine.coordinate import Coordinator
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.session import Session
from dbt_openivm.errors import ConfigError
from dbt_openivm.names import RelationName, buckets_table, copy_table, delta_table, internal_schema, literal

PROPOSALS = {"delta": delta_table, "copy": copy_table, "buckets": buckets_table}


@dataclass(frozen=True)
class Need:
    """What a view needs of a base.

    Attributes:
        key, from_sql, relation: see `Base`.
        columns: the columns that the view uses.
        present: the columns that the base has now.
        wanted: the capture configured for this very base, None if none is.
        default: the capture for a base that has none yet.
        invocation: what was captured in it is not captured again; None captures every time.
        passed: the batch that all consumers of the base have passed, None without consumers.
        generation: of a new capture: one that no consumer has seen, should there have been a capture before.
    """

    key: str
    from_sql: str
    relation: RelationName | None
    columns: tuple[Column, ...]
    present: tuple[Column, ...]
    wanted: str | None
    default: str
    invocation: str | None
    passed: int | None
    generation: int


class Bases:
    """The captured bases of one database. Every method needs the coordinator's lock and an open transaction."""

    def __init__(self, session: Session, catalog: Catalog, render: Renderer, coordinator: Coordinator) -> None:
        self.session = session
        self.catalog = catalog
        self.render = render
        self.coordinator = coordinator
        self.begin()

    def begin(self) -> None:
        """Forget what captures have read of the catalog: a transaction begins."""
        self._captures: dict[str, Capture] = {}

    def capture(self, kind: str) -> Capture:
        if kind not in self._captures:
            self._captures[kind] = KINDS[kind](self.session, self.render)
        return self._captures[kind]

    def ready(self, row: SourceRow | None, need: Need) -> SourceRow:
        """The source, captured up to now, with at least the columns that are needed.

        Args:
            row: the source as the catalog holds it, None if it does not.

        Raises:
            ConfigError: the configured capture cannot serve the base.
        """
        if row is None:
            return self.install(need, need.columns, need.generation)
        base = base_of(row, need.relation)
        gone = next((column for column in row.columns if column not in need.present), None)
        if gone is not None:
            return self.reinstall(row, need, lost_column(need, gone))
        if row.from_sql != need.from_sql:
            return self.reinstall(row, need, f"the row of {row.key} in the catalog was edited")
        probe = self.capture(row.capture).probe(base)
        if probe.broken:
            return self.reinstall(row, need, probe.broken)
        if need.wanted is not None and need.wanted != row.capture:
            return self.reinstall(row, need, f"the capture of {row.key} was {row.capture} and is {need.wanted} now")
        missing = [column for column in need.columns if column not in row.columns]
        due = missing or need.invocation is None or need.key not in self.coordinator.captured[need.invocation]
        if due and probe.pending:
            row = self.collect(row, base, need.passed)
        if missing:
            row = self.widen(row, base, missing)
        return row

    def install(self, need: Need, columns: Sequence[Column], generation: int) -> SourceRow:
        kind, base = self.choose(need, columns)
        create_schema(self.session, base.schema.database, base.schema.schema)
        self.capture(kind).install(base)
        row = SourceRow(need.key, need.from_sql, kind, base.objects, tuple(columns), 0, 0, generation)
        self.catalog.put_source(row)
        return row

    def choose(self, need: Need, columns: Sequence[Column]) -> tuple[str, Base]:
        """The capture to use, and the base with names for its objects."""
        kind = need.wanted or need.default
        base = self.named(need, columns, kind)
        refusal = self.capture(kind).refusal(base)
        if refusal is None:
            return kind, base
        if need.wanted is not None:
            raise ConfigError(refusal)
        return "diff", self.named(need, columns, "diff")

    def named(self, need: Need, columns: Sequence[Column], kind: str) -> Base:
        schema = internal_schema(need.relation.schema if need.relation else "main")
        name = need.relation.name if need.relation else slug(need.key)
        taken = self.taken(schema)
        objects = {
            role: RelationName(self.catalog.database, schema, free_name(PROPOSALS[role](name), taken))
            for role in ("delta", *KINDS[kind].roles)
        }
        home = RelationName(self.catalog.database, schema, "")
        return Base(need.key, need.from_sql, tuple(columns), home, objects, 0, need.relation)

    def taken(self, schema: str) -> set[str]:
        rows = self.session.execute(
            f"SELECT lower(table_name) FROM duckdb_tables() WHERE lower(schema_name) = {literal(schema.lower())} "
            f"AND database_name = {literal(self.catalog.database)}"
        )
        return {row[0] for row in rows}

    def reinstall(self, row: SourceRow, need: Need, why: str) -> SourceRow:
        """Start a capture anew: consumers cannot follow by delta, which the generation tells them."""
        self.coordinator.causes[row.key] = (row.generation + 1, why)
        self.remove(row, need.relation)
        names = {column.name for column in (*row.columns, *need.columns)}
        columns = [column for column in need.present if column.name in names]
        again = need if need.wanted else replace(need, default=row.capture)
        return self.install(again, columns, row.generation + 1)

    def collect(self, row: SourceRow, base: Base, passed: int | None) -> SourceRow:
        version = row.version + 1
        if not self.capture(row.capture).collect(base, version):
            return row
        log_start = self.clean(row, passed)
        self.catalog.advance_source(row.key, version, log_start)
        return replace(row, version=version, log_start=log_start)

    def widen(self, row: SourceRow, base: Base, missing: Sequence[Column]) -> SourceRow:
        wider = replace(base, columns=(*base.columns, *missing))
        self.capture(row.capture).widen(base, wider)
        row = replace(row, columns=wider.columns)
        self.catalog.put_source(row)
        return row

    def clean(self, row: SourceRow, passed: int | None) -> int:
        """Remove log rows that every consumer and refresh under way has passed; returns where the log now starts."""
        pinned = self.coordinator.lowest_pin(row.key)
        known = [value for value in (passed, pinned) if value is not None]
        if not known or min(known) <= row.log_start:
            return row.log_start
        passed = min(known)
        self.session.execute(f"DELETE FROM {row.objects['delta'].sql} WHERE openivm_batch <= {passed}")
        return passed

    def remove(self, row: SourceRow, relation: RelationName | None) -> None:
        self.capture(row.capture).uninstall(base_of(row, relation))
        self.catalog.delete_source(row.key)

    def current(self, row: SourceRow, relation: RelationName | None) -> str:
        return self.capture(row.capture).current(base_of(row, relation))


def lost_column(need: Need, column: Column) -> str:
    now = next((other.type for other in need.present if other.name == column.name), None)
    name = f"the column {need.key}.{column.name}"
    return f"{name} was dropped" if now is None else f"{name} changed its type from {column.type} to {now}"


def base_of(row: SourceRow, relation: RelationName | None) -> Base:
    schema = row.objects["delta"]
    return Base(
        row.key,
        row.from_sql,
        row.columns,
        RelationName(schema.database, schema.schema, ""),
        dict(row.objects),
        row.version,
        relation,
    )


def slug(text: str) -> str:
    """A name for a base that has none, such as a file reader.

    Example:
        >>> slug("READ_PARQUET('data/x-*.parquet')")
        'read_parquet_data_x_parquet'
    """
    words = "".join(char.lower() if char.isalnum() else " " for char in text).split()
    return "_".join(words)[:60] or "source"


def free_name(name: str, taken: set[str]) -> str:
    """`name`, with a number if an object of that name exists."""
    candidate, number = name, 1
    while candidate.lower() in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate

"""Random tables, and the relations that queries read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from dbt_openivm.names import quote
from tests.property.case import CreateTable, Insert
from tests.property.datatypes import Pool, key_pool, random_pool
from tests.property.identifiers import ODD, ODD_TABLES, PLAIN, TABLES, distinct_names


@dataclass(frozen=True)
class Column:
    """A column as a query sees it.

    Args:
        name: its name, unquoted.
        pool: type, kind and sample values.
        fuzzy: a floating sum within this query: differs by rounding, so nothing may compare it for equality.
        unique: no value occurs twice (so that arg_min has one answer).
        rendered: an expression without an alias; its name is how DuckDB writes it.
    """

    name: str
    pool: Pool
    fuzzy: bool = False
    unique: bool = False
    rendered: bool = False


@dataclass(frozen=True)
class Relation:
    """Something that can stand in FROM under a name: a table, a view, a CTE."""

    sql: str
    columns: tuple[Column, ...]
    rows: int
    supported: bool = True


@dataclass
class Table:
    """A base table with what is needed to write DML for it; `key` is its full name, quoted."""

    name: str
    sql: str
    columns: tuple[Column, ...]
    key: str
    triggers: bool = True
    serial: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def relation(self) -> Relation:
        return Relation(self.sql, self.columns, 24)

    def create(self) -> CreateTable:
        return CreateTable(self.sql, tuple((column.name, column.pool.type) for column in self.columns))

    def row(self, rng: Random) -> tuple[str, ...]:
        return tuple(self.value(rng, column) for column in self.columns)

    def value(self, rng: Random, column: Column) -> str:
        if column.unique:
            return str(next(self.serial))
        return "NULL" if rng.random() < 0.12 else rng.choice(column.pool.values)

    def insert(self, rng: Random, count: int) -> Insert:
        rows = tuple(self.row(rng) for _ in range(count))
        return Insert(self.sql, tuple(column.name for column in self.columns), rows)


def _columns(rng: Random, shared: list[tuple[str, Pool]], risky: bool) -> tuple[Column, ...]:
    oddness = rng.choice((0.0, 0.0, 0.3, 0.8))
    names = distinct_names(rng, rng.randint(2, 6), PLAIN, ODD, oddness)
    columns = [Column(name, random_pool(rng, risky=risky)) for name in names]
    for name, pool in shared:
        # the same domain everywhere, often under the same name: equi-joins, USING and NATURAL need it
        as_named = name if rng.random() < 0.6 else names[0]
        columns = [column for column in columns if column.name.lower() != as_named.lower()]
        columns.insert(rng.randint(0, len(columns)), Column(as_named, pool))
    if rng.random() < 0.4:
        columns = [column for column in columns if column.name != "id"]
        columns.append(Column("id", Pool("BIGINT", "int", ("1", "5", "17"), magnitude=1000), unique=True))
    return tuple(columns)


def random_tables(rng: Random, *, risky: bool, attached: str | None) -> list[Table]:
    """One to four tables that share a key domain, some in another schema or an attached database."""
    shared = [("k", key_pool(rng))]
    if rng.random() < 0.3:
        shared.append(("g", key_pool(rng)))
    names = distinct_names(rng, rng.choice((1, 2, 2, 3, 3, 4)), TABLES, ODD_TABLES, rng.choice((0.0, 0.5)))
    tables = []
    for name in names:
        columns = _columns(rng, shared, risky)
        path, triggers = [name], True
        if attached and rng.random() < 0.4:
            path, triggers = [attached, "main", name], False
            # user types live in the main database only
            columns = tuple(column for column in columns if column.pool.kind != "enum")
        elif rng.random() < 0.1:
            path = ["side", name]
        if len(columns) < 2:
            columns = (*columns, Column("extra", Pool("INTEGER", "int", ("1", "2"))))
        full = path if len(path) == 3 else ["memory", *(["main"] if len(path) == 1 else []), *path]
        tables.append(Table(name, ".".join(map(quote, path)), columns, ".".join(map(quote, full)), triggers))
    return tables


def rename(columns: tuple[Column, ...], fresh: Callable[[str], str]) -> tuple[Column, ...]:
    """All columns under new names."""
    return tuple(replace(column, name=fresh("c"), rendered=False) for column in columns)


def rename_rendered(columns: tuple[Column, ...], fresh: Callable[[str], str]) -> tuple[Column, ...]:
    """New names for the columns that only DuckDB could name: a reference to one is not always resolved."""
    return tuple(replace(column, name=fresh("c"), rendered=False) if column.rendered else column for column in columns)


def column_list(columns: Sequence[Column]) -> str:
    return ", ".join(quote(column.name) for column in columns)

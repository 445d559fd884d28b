"""The names of hidden columns and internal objects, and how identifiers are quoted.

Everything internal starts with ``openivm_``; a user's column may not. The catalog, never the spelling, maps a relation
to its objects: the functions here only propose a name, and the engine appends a numeric suffix where one is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PREFIX = "openivm_"
CATALOG_SCHEMA = "openivm"

MULTIPLICITY = "openivm_multiplicity"
TIMESTAMP = "openivm_timestamp"
BATCH = "openivm_batch"
COUNT_STAR = "openivm_count_star"
HAVING = "openivm_having"


def quote(identifier: str) -> str:
    """Quote one identifier for DuckDB.

    Example:
        >>> quote('a "b" c')
        '"a ""b"" c"'
    """
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote one string literal.

    Example:
        >>> literal("it's")
        "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, order=True)
class RelationName:
    """A fully qualified relation: database (DuckDB calls it catalog), schema, name."""

    database: str
    schema: str
    name: str

    @property
    def sql(self) -> str:
        """The quoted, qualified name.

        Example:
            >>> RelationName("hyphen-cat", "main", "t").sql
            '"hyphen-cat"."main"."t"'
        """
        return ".".join(quote(part) for part in (self.database, self.schema, self.name))

    @property
    def key(self) -> str:
        """The name as the catalog compares it: without case."""
        return f"{self.database}.{self.schema}.{self.name}".lower()

    def __str__(self) -> str:
        return f"{self.database}.{self.schema}.{self.name}"


def split_name(text: str) -> list[str]:
    """The parts of a dotted name; a part in double quotes may hold dots.

    Example:
        >>> split_name('main."my.view"')
        ['main', 'my.view']
    """
    parts = re.findall(r'"(?:[^"]|"")*"|[^.]+', text)
    return [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]


def parse_name(text: object) -> list[str] | None:
    """The one to three parts of a dotted name, None if it is no such name.

    Example:
        >>> parse_name('main."my.view"'), parse_name('"unclosed'), parse_name("main.")
        (['main', 'my.view'], None, None)
    """
    part = r'(?:"(?:[^"]|"")+"|[^".\s][^".]*)'
    if not isinstance(text, str) or not re.fullmatch(rf"{part}(?:\.{part}){{0,2}}", text.strip()):
        return None
    return split_name(text.strip())


def dotted(parts: Iterable[str]) -> str:
    """A dotted name that `parse_name` reads back; a part is quoted where it must be.

    Example:
        >>> dotted(["main", "my.view"])
        'main."my.view"'
    """
    return ".".join(part if re.fullmatch(r"[^\W\d]\w*", part) else quote(part) for part in parts)


def internal_schema(schema: str) -> str:
    """The schema that holds the internals of the relations of `schema`."""
    return PREFIX + schema


def data_table(view: str) -> str:
    return f"{PREFIX}data_{view}"


def visible_view(view: str) -> str:
    return f"{PREFIX}visible_{view}"


def delta_table(name: str) -> str:
    return f"{PREFIX}delta_{name}"


def old_table(view: str) -> str:
    return f"{PREFIX}old_{view}"


def old_affected_table(view: str) -> str:
    return f"{PREFIX}old_affected_{view}"


def old_snapshot_table(view: str) -> str:
    return f"{PREFIX}old_snapshot_{view}"


def copy_table(name: str) -> str:
    return f"{PREFIX}copy_{name}"


def buckets_table(name: str) -> str:
    return f"{PREFIX}buckets_{name}"


def node_view(view: str, number: int) -> str:
    return f"{PREFIX}node_{view}_{number}"

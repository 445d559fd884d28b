"""What the compiler knows about the database: data, no connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BASE = "base"
VISIBLE = "visible"
SQL_VIEW = "sql_view"
NODE = "node"
RECURSION = "recursion"
ANY_ROW = "scalar_subquery_error_on_multiple_rows = false"
"""Among the settings where a scalar subquery with several rows means any of them."""


@dataclass(frozen=True)
class Column:
    """A column: its name as the relation spells it, its type as DuckDB's DESCRIBE spells it."""

    name: str
    type: str


@dataclass(frozen=True)
class ForeignKey:
    """Each row's `columns` are in one row of `parent` its `parent_columns`, or one of them is NULL.

    Attributes:
        parent: `Relation.key` of the relation that it refers to, in which `parent_columns` are unique.
    """

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(frozen=True)
class Relation:
    """A relation that a query may read.

    Attributes:
        key: its identity, lower case ``database.schema.name`` (or the text of a table function).
        sql: the text that reads it live in FROM.
        columns: all its columns, in order.
        kind: `BASE`, `VISIBLE` (another ivm_view), `SQL_VIEW` (a plain view, inlined), `NODE` (an internal view) or
            `RECURSION` (what a recursive CTE reads of itself).
        definition: the SELECT of a plain view, else None.
        context: (database, schema) in which the names of `definition` are looked up first.
        unique_keys: sets of columns, spelled as in `columns`, in which no two rows are equal; a NULL equals a NULL.
        foreign_keys: to relations that a query may read beside this one.
    """

    key: str
    sql: str
    columns: tuple[Column, ...]
    kind: str = BASE
    definition: str | None = None
    context: tuple[str, str] | None = None
    unique_keys: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()


@dataclass(frozen=True)
class Macro:
    """A user's scalar or table macro, or one overload of it.

    Attributes:
        parameters: their names.
        body: its SQL.
        home: ``database.schema`` that it lies in.
        types: of the parameters, None for one without; empty if none has one.
        defaults: of the parameters as SQL, None for one without; None if they are not known.
    """

    name: str
    parameters: tuple[str, ...]
    body: str
    is_table: bool
    home: str = ""
    types: tuple[str | None, ...] = ()
    defaults: tuple[str | None, ...] | None = None

    @property
    def text(self) -> str:
        """Everything that a call of it depends on, wherever it lies."""
        return f"macro {self.name}{self.parameters}{self.types}{self.defaults}: {self.body}"


@dataclass(frozen=True)
class CompileFacts:
    """Everything `compile` may use besides the query.

    Attributes:
        relations: by `Relation.key`.
        search_path: (database, schema) pairs in which unqualified names are looked up, in order.
        databases: names of the attached databases, lower case, to tell ``database.name`` from ``schema.name``.
        volatile_functions: names (lower case) of functions whose value may change without a change of data.
        aggregate_functions: names (lower case) of aggregate functions.
        settings: values of the session's settings that change what expressions mean.
        macros: the overloads of each macro of the user, by lower-case name.
        names: what DuckDB calls the column of an unaliased expression, by the expression's text.
        types: DESCRIBE answers, by the text of the probe query that `Lowered.probes` asked for.
        old_rows: whether DuckDB is older than 2.0, where a row with a NULL in it is in no set and not in no set.
        output: names and types of the query's result as a CTAS would create it; empty where unknown.
        dialect: the engine whose SQL the query is, written in the compiler's notation; see `compiler.dialects`.
    """

    relations: Mapping[str, Relation] = field(default_factory=dict)
    search_path: tuple[tuple[str, str], ...] = (("memory", "main"),)
    databases: frozenset[str] = frozenset()
    volatile_functions: frozenset[str] = frozenset()
    aggregate_functions: frozenset[str] = frozenset()
    settings: tuple[str, ...] = ()
    macros: Mapping[str, tuple[Macro, ...]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    output: tuple[Column, ...] = ()
    old_rows: bool = False
    dialect: str = "duckdb"

    def resolve(self, parts: tuple[str, ...], context: tuple[str, str] | None = None) -> Relation | None:
        """Find the relation that a name of one to three parts means, as DuckDB would; None if there is none."""
        for key in self.candidates(parts, context):
            if key in self.relations:
                return self.relations[key]
        return None

    def candidates(self, parts: tuple[str, ...], context: tuple[str, str] | None = None) -> list[str]:
        """The keys a name may stand for, best first."""
        lowered = [part.lower() for part in parts]
        path = ([context] if context else []) + list(self.search_path)
        if len(lowered) == 3:
            return [".".join(lowered)]
        if len(lowered) == 2:
            keys = [f"{database}.{lowered[0]}.{lowered[1]}".lower() for database, _ in path]
            if lowered[0] in self.databases:
                keys.append(f"{lowered[0]}.main.{lowered[1]}")
            return list(dict.fromkeys(keys))
        return list(dict.fromkeys(f"{database}.{schema}.{lowered[0]}".lower() for database, schema in path))

"""The facts that a caller of `compile_with_facts` gives, checked: every error names its field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dbt_openivm.compiler.dialects.language import LANGUAGES
from dbt_openivm.errors import ConfigError
from dbt_openivm.names import PREFIX, parse_name

SCHEMA_VERSION = 1
DUCKDB = "duckdb"
DIALECTS = tuple(LANGUAGES)
EMPTY, INSERT_ONLY, MIXED = "empty", "insert_only", "mixed"
SHAPES = (EMPTY, INSERT_ONLY, MIXED)

FIELDS = (
    "schema_version", "target_dialect", "view", "compile_only", "force_view_delta_cascade", "assume_insert_only",
    "schemas", "delta_shape", "unique_keys", "fk_relations", "table_stats", "column_stats", "delta_stats",
)  # fmt: skip
KEY_FIELDS = ("child_table", "child_columns", "parent_table", "parent_columns", "rely")
"""Of an entry of `fk_relations`; all but the last must be there."""

Name = tuple[str, ...]
"""A relation's name: one to three parts, as the caller spells them."""


@dataclass(frozen=True)
class GivenForeignKey:
    """A foreign key whose columns are spelled as in `schemas`; `parent` is the key of a table there."""

    columns: Name
    parent: Name
    parent_columns: Name


@dataclass(frozen=True)
class GivenTable:
    """What is said of one table.

    Attributes:
        label: its name as `schemas` has it.
        name: the parts of this name.
        columns: type by column.
        shape: of its delta; one of `SHAPES`.
        rows, changes: how many rows it and its delta have; None where unknown.
    """

    label: str
    name: Name
    columns: Mapping[str, str]
    shape: str = MIXED
    unique_keys: tuple[Name, ...] = ()
    foreign_keys: tuple[GivenForeignKey, ...] = ()
    rows: int | None = None
    changes: int | None = None


@dataclass(frozen=True)
class GivenFacts:
    """Attributes:
    view: parts of the view's name.
    tables: by name in lower case.
    cascade: whether the view's own delta is published.
    dialect: of the query and of the statements.
    """

    view: Name
    tables: Mapping[Name, GivenTable]
    cascade: bool
    dialect: str = DUCKDB


def check(facts: Mapping[str, Any]) -> GivenFacts:
    """Raises:
    ConfigError: something is wrong; the text names the field of every problem, one a line.
    """
    checker = _Checker(an_object(facts))
    given = checker.facts()
    if checker.problems:
        raise ConfigError("\n".join(f"facts{problem}" for problem in checker.problems))
    return given


def an_object(facts: object) -> Mapping[str, Any]:
    """Raises:
    ConfigError: they are none.
    """
    if isinstance(facts, Mapping):
        return facts
    raise ConfigError(f"facts: expected an object, got {shown(facts)}")


def shown(value: object) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def key_of(name: Sequence[str]) -> Name:
    return tuple(part.lower() for part in name)


@dataclass
class _Checker:
    """Reads the fields one after another; a value that is wrong is noted and counts as missing.

    Attributes:
        given: the facts.
        problems: a path within the facts and what is wrong there, one an entry.
        tables: what was read so far of each, by name in lower case.
    """

    given: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)
    tables: dict[Name, GivenTable] = field(default_factory=dict)

    def facts(self) -> GivenFacts:
        self.unknown("", self.given, FIELDS)
        self.version()
        dialect = self.given.get("target_dialect", DUCKDB)
        if dialect not in DIALECTS:
            self.wrong(".target_dialect", dialect, " or ".join(DIALECTS))
            dialect = DUCKDB
        view = self.view()
        kept, inserts_only = self.flag("compile_only"), self.flag("assume_insert_only")
        self.schemas(INSERT_ONLY if inserts_only else MIXED)
        self.keys()
        self.references()
        self.shapes(kept, inserts_only)
        self.statistics(kept)
        return GivenFacts(view, self.tables, self.flag("force_view_delta_cascade"), dialect)

    # --- saying what is wrong ----------------------------------------------------------------------------------------

    def wrong(self, path: str, value: object, expected: str) -> None:
        self.problems.append(f"{path}: got {shown(value)}, expected {expected}")

    def unknown(self, path: str, value: Mapping[str, Any], known: Sequence[str]) -> None:
        names = [name for name in value if name not in known]
        self.problems += [f"{path}.{name}: unknown field; there are {', '.join(known)}" for name in names]

    # --- single values -----------------------------------------------------------------------------------------------

    def version(self) -> None:
        version = self.given.get("schema_version", SCHEMA_VERSION)
        if type(version) is not int or version < 1:
            self.wrong(".schema_version", version, f"the number {SCHEMA_VERSION}")
        elif version > SCHEMA_VERSION:
            self.problems.append(
                f".schema_version: {version} is of a later dbt-openivm; this one knows {SCHEMA_VERSION}"
            )

    def flag(self, name: str) -> bool:
        value = self.given.get(name, False)
        if type(value) is not bool:
            self.wrong(f".{name}", value, "true or false")
        return value is True

    def view(self) -> Name:
        return self.name(".view", self.given.get("view", "view")) or ("view",)

    def name(self, path: str, value: object) -> Name | None:
        """The parts of a relation's name, which is none of ours."""
        parts = parse_name(value)
        if parts is None or parts[-1].lower().startswith(PREFIX):
            expected = f"a name of one to three parts that does not start with {PREFIX}; quote a part that has a dot"
            self.wrong(path, value, expected)
            return None
        return tuple(parts)

    def number(self, path: str, value: object) -> int | None:
        if type(value) is int and value >= 0:
            return value
        self.wrong(path, value, "a whole number from 0 on")
        return None

    # --- structures --------------------------------------------------------------------------------------------------

    def entries(self, path: str, value: object, expected: str) -> list[tuple[str, Any]]:
        if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
            return list(value.items())
        self.wrong(path, value, expected)
        return []

    def by_table(self, name: str, expected: str) -> Iterator[tuple[str, Name, Any]]:
        """(path, table, value) of the entries of a field that is an object by table."""
        for label, value in self.entries(f".{name}", self.given.get(name, {}), f"an object {{table: {expected}}}"):
            path = f".{name}.{label}"
            table = self.table(path, label)
            if table is not None:
                yield path, table, value

    def table(self, path: str, label: object) -> Name | None:
        """The table of a name, of which the first parts may be missing where only one table has the others."""
        parts = key_of(parse_name(label) or ())
        if parts in self.tables:
            return parts
        found = [name for name in self.tables if parts and name[-len(parts) :] == parts]
        if len(found) == 1:
            return found[0]
        labels = " or ".join(self.tables[name].label for name in found)
        problem = f"may be {labels}" if found else "a table that is not in facts.schemas"
        self.problems.append(f"{path}: {problem}")
        return None

    def columns(self, path: str, table: Name | None, value: object) -> Name | None:
        """Columns of a table as `schemas` spells them."""
        if not isinstance(value, list | tuple) or not value or not all(isinstance(name, str) for name in value):
            self.wrong(path, value, "a list of columns")
            return None
        if table is None:
            return None
        known = {name.lower(): name for name in self.tables[table].columns}
        label = self.tables[table].label
        missing = [name for name in value if name.lower() not in known]
        self.problems += [f"{path}: {name} is no column of facts.schemas.{label}" for name in missing]
        names = tuple(known[name.lower()] for name in value if name.lower() in known)
        if len(set(names)) != len(names):
            self.problems.append(f"{path}: a column twice")
        return None if missing else names

    def counts(self, path: str, value: object, names: Sequence[str]) -> dict[str, int]:
        entries = self.entries(path, value, f"an object with {' and '.join(names)}")
        self.unknown(path, dict(entries), names)
        numbers = {name: self.number(f"{path}.{name}", number) for name, number in entries if name in names}
        return {name: number for name, number in numbers.items() if number is not None}

    # --- the fields about tables -------------------------------------------------------------------------------------

    def schemas(self, shape: str) -> None:
        """Names and texts only: what the types are is left to DuckDB. `shape`: of a delta of which no more is said."""
        expected = "an object {table: {column: type}}"
        for label, columns in self.entries(".schemas", self.given.get("schemas", {}), expected):
            path = f".schemas.{label}"
            types = self.types(path, columns)
            name = self.name(path, label)
            if name is None:
                continue
            if key_of(name) in self.tables:
                self.problems.append(f"{path}: the same table as {self.tables[key_of(name)].label}")
                continue
            self.tables[key_of(name)] = GivenTable(label, name, types, shape)

    def types(self, path: str, columns: object) -> dict[str, str]:
        types: dict[str, str] = {}
        if columns == {}:
            self.wrong(path, columns, "at least one column")
        for name, type_ in self.entries(path, columns, "an object {column: type}"):
            if not name or name.lower().startswith(PREFIX):
                self.problems.append(f"{path}.{name}: expected a name that does not start with {PREFIX}")
            elif name.lower() in map(str.lower, types):
                self.problems.append(f"{path}.{name}: a column twice")
            elif not isinstance(type_, str) or not type_.strip():
                self.wrong(f"{path}.{name}", type_, "the name of a type")
            else:
                types[name] = type_
        return types

    def shapes(self, kept: bool, inserts_only: bool) -> None:
        """Args:
        kept: whether the statements are for more deltas than one, so that an empty one changes nothing.
        """
        for path, table, shape in self.by_table("delta_shape", "shape"):
            if shape not in SHAPES:
                self.wrong(path, shape, " or ".join(SHAPES))
            elif shape == MIXED and inserts_only:
                self.problems.append(f"{path}: {MIXED}, but facts.assume_insert_only is true")
            elif not (shape == EMPTY and kept):
                self.tables[table] = replace(self.tables[table], shape=shape)

    def keys(self) -> None:
        for path, table, keys in self.by_table("unique_keys", "[[column, ..], ..]"):
            if not isinstance(keys, list | tuple):
                self.wrong(path, keys, "a list of keys, each a list of columns")
                continue
            found = [self.columns(f"{path}[{index}]", table, key) for index, key in enumerate(keys)]
            known = (*self.tables[table].unique_keys, *(key for key in found if key is not None))
            self.tables[table] = replace(self.tables[table], unique_keys=known)

    def references(self) -> None:
        relations = self.given.get("fk_relations", [])
        if not isinstance(relations, list | tuple):
            self.wrong(".fk_relations", relations, "a list of objects")
            return
        for index, relation in enumerate(relations):
            path = f".fk_relations[{index}]"
            if isinstance(relation, Mapping):
                self.reference(path, relation)
            else:
                self.wrong(path, relation, f"an object with {', '.join(KEY_FIELDS)}")

    def reference(self, path: str, given: Mapping[str, Any]) -> None:
        self.unknown(path, given, KEY_FIELDS)
        missing = [name for name in KEY_FIELDS[:-1] if name not in given]
        self.problems += [f"{path}.{name}: missing" for name in missing]
        rely = given.get("rely", False)
        if type(rely) is not bool:
            self.wrong(f"{path}.rely", rely, "true or false")
        if missing:
            return
        child = self.table(f"{path}.child_table", given["child_table"])
        parent = self.table(f"{path}.parent_table", given["parent_table"])
        columns = self.columns(f"{path}.child_columns", child, given["child_columns"])
        others = self.columns(f"{path}.parent_columns", parent, given["parent_columns"])
        if child is None or parent is None or columns is None or others is None:
            return
        if len(columns) != len(others):
            self.wrong(f"{path}.parent_columns", given["parent_columns"], f"{len(columns)} columns")
        elif rely is True:
            known = (*self.tables[child].foreign_keys, GivenForeignKey(columns, parent, others))
            self.tables[child] = replace(self.tables[child], foreign_keys=known)

    def statistics(self, kept: bool) -> None:
        for path, table, stats in self.by_table("table_stats", '{"rows": number}'):
            self.tables[table] = replace(self.tables[table], rows=self.counts(path, stats, ("rows",)).get("rows"))
        for path, table, stats in self.by_table("delta_stats", '{"inserts": number, "deletes": number}'):
            counts = self.counts(path, stats, ("inserts", "deletes"))
            shape = self.tables[table].shape
            for name in {EMPTY: ("inserts", "deletes"), INSERT_ONLY: ("deletes",)}.get(shape, ()):
                if counts.get(name):
                    self.problems.append(f"{path}.{name}: {counts[name]}, but the delta is said to be {shape}")
            if counts and not kept:
                self.tables[table] = replace(self.tables[table], changes=sum(counts.values()))
        for path, table, columns in self.by_table("column_stats", '{column: {"distinct": number, "nulls": number}}'):
            for column, stats in self.entries(path, columns, "an object {column: statistics}"):
                self.columns(f"{path}.{column}", table, [column])
                self.counts(f"{path}.{column}", stats, ("distinct", "nulls"))

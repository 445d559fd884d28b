"""The facts that a caller of `compile_with_facts` gives, checked: every error names its field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt_openivm.errors import ConfigError
from dbt_openivm.names import PREFIX, parse_name

SCHEMA_VERSION = 1
DIALECTS = ("duckdb",)
EMPTY, INSERT_ONLY, MIXED = "empty", "insert_only", "mixed"
SHAPES = (EMPTY, INSERT_ONLY, MIXED)

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
        name: its parts.
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
    """

    view: Name
    tables: Mapping[Name, GivenTable]
    cascade: bool


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
        columns: what `schemas` says, by table: lower-case name -> (label, lower-case column -> column).
    """

    given: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)
    columns: dict[Name, tuple[str, dict[str, str]]] = field(default_factory=dict)

    FIELDS = (
        "schema_version", "target_dialect", "view", "compile_only", "force_view_delta_cascade", "assume_insert_only",
        "schemas", "delta_shape", "unique_keys", "fk_relations", "table_stats", "column_stats", "delta_stats",
    )  # fmt: skip

    def facts(self) -> GivenFacts:
        self.unknown("", self.given, self.FIELDS)
        self.version()
        dialect = self.given.get("target_dialect", "duckdb")
        if dialect not in DIALECTS:
            self.wrong(".target_dialect", dialect, f"{' or '.join(DIALECTS)}, the only one that is built yet")
        view = self.view()
        tables = self.schemas()
        kept, inserts_only = self.flag("compile_only"), self.flag("assume_insert_only")
        self.keys(tables)
        self.references(tables)
        self.shapes(tables, kept, inserts_only)
        self.statistics(tables, kept)
        given = {name: GivenTable(**values) for name, values in tables.items()}
        if key_of(view) in given:
            self.problems.append(".view: the name of a table in facts.schemas")
        return GivenFacts(view, given, self.flag("force_view_delta_cascade"))

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
        value = self.given.get("view", "view")
        parts = parse_name(value)
        if parts is None or parts[-1].lower().startswith(PREFIX):
            self.wrong(".view", value, f"a name of one to three parts that does not start with {PREFIX}")
        return tuple(parts or ("view",))

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
        if parts in self.columns:
            return parts
        found = [name for name in self.columns if parts and name[-len(parts) :] == parts]
        if len(found) == 1:
            return found[0]
        labels = " or ".join(self.columns[name][0] for name in found)
        problem = f"may be {labels}" if found else "a table that is not in facts.schemas"
        self.problems.append(f"{path}: {problem}")
        return None

    def listed_columns(self, path: str, table: Name | None, value: object) -> Name | None:
        """Columns of a table as `schemas` spells them."""
        if not isinstance(value, list | tuple) or not value or not all(isinstance(name, str) for name in value):
            self.wrong(path, value, "a list of columns")
            return None
        if table is None:
            return None
        label, columns = self.columns[table]
        missing = [name for name in value if name.lower() not in columns]
        self.problems += [f"{path}: {name} is no column of facts.schemas.{label}" for name in missing]
        names = tuple(columns[name.lower()] for name in value if name.lower() in columns)
        if len(set(names)) != len(names):
            self.problems.append(f"{path}: a column twice")
        return None if missing else names

    # --- the fields about tables -------------------------------------------------------------------------------------

    def schemas(self) -> dict[Name, dict[str, Any]]:
        """Names and texts only: what the types are is left to DuckDB."""
        tables: dict[Name, dict[str, Any]] = {}
        expected = "an object {table: {column: type}}"
        for label, columns in self.entries(".schemas", self.given.get("schemas", {}), expected):
            path = f".schemas.{label}"
            parts = parse_name(label)
            if parts is None:
                self.problems.append(f"{path}: expected a name of one to three parts; quote a part that has a dot")
                continue
            if key_of(parts) in tables:
                self.problems.append(f"{path}: the same table as {tables[key_of(parts)]['label']}")
                continue
            types = self.types(path, columns)
            tables[key_of(parts)] = {"label": label, "name": tuple(parts), "columns": types}
            self.columns[key_of(parts)] = (label, {name.lower(): name for name in types})
        return tables

    def types(self, path: str, columns: object) -> dict[str, str]:
        types: dict[str, str] = {}
        entries = self.entries(path, columns, "an object {column: type}")
        if not entries and isinstance(columns, Mapping) and not columns:
            self.wrong(path, columns, "at least one column")
        for name, type_ in entries:
            if not name or name.lower().startswith(PREFIX):
                self.problems.append(f"{path}.{name}: expected a name that does not start with {PREFIX}")
            elif name.lower() in map(str.lower, types):
                self.problems.append(f"{path}.{name}: a column twice")
            elif not isinstance(type_, str) or not type_.strip():
                self.wrong(f"{path}.{name}", type_, "the name of a type")
            else:
                types[name] = type_
        return types

    def shapes(self, tables: dict[Name, dict[str, Any]], kept: bool, inserts_only: bool) -> None:
        """Args:
        kept: whether the statements are for more deltas than one, so that an empty one changes nothing.
        """
        default = INSERT_ONLY if inserts_only else MIXED
        for values in tables.values():
            values["shape"] = default
        for path, table, shape in self.by_table("delta_shape", "shape"):
            if shape not in SHAPES:
                self.wrong(path, shape, " or ".join(SHAPES))
            elif shape == MIXED and inserts_only:
                self.problems.append(f"{path}: {MIXED}, but facts.assume_insert_only is true")
            elif not (shape == EMPTY and kept):
                tables[table]["shape"] = shape

    def keys(self, tables: dict[Name, dict[str, Any]]) -> None:
        for path, table, keys in self.by_table("unique_keys", "[[column, ..], ..]"):
            if not isinstance(keys, list | tuple):
                self.wrong(path, keys, "a list of keys, each a list of columns")
                continue
            found = [self.listed_columns(f"{path}[{index}]", table, key) for index, key in enumerate(keys)]
            tables[table]["unique_keys"] = tuple(key for key in found if key is not None)

    def references(self, tables: dict[Name, dict[str, Any]]) -> None:
        relations = self.given.get("fk_relations", [])
        if not isinstance(relations, list | tuple):
            self.wrong(".fk_relations", relations, "a list of objects")
            return
        names = ("child_table", "child_columns", "parent_table", "parent_columns", "rely")
        for index, relation in enumerate(relations):
            path = f".fk_relations[{index}]"
            given = dict(self.entries(path, relation, f"an object with {', '.join(names)}"))
            if not given:
                continue
            self.unknown(path, given, names)
            missing = [name for name in names[:-1] if name not in given]
            self.problems += [f"{path}.{name}: missing" for name in missing]
            if type(given.get("rely", False)) is not bool:
                self.wrong(f"{path}.rely", given["rely"], "true or false")
            if missing:
                continue
            child = self.table(f"{path}.child_table", given["child_table"])
            parent = self.table(f"{path}.parent_table", given["parent_table"])
            columns = self.listed_columns(f"{path}.child_columns", child, given["child_columns"])
            others = self.listed_columns(f"{path}.parent_columns", parent, given["parent_columns"])
            if columns is None or others is None or child is None or parent is None:
                continue
            if len(columns) != len(others):
                self.wrong(f"{path}.parent_columns", given["parent_columns"], f"{len(columns)} columns")
            elif given.get("rely", False) is True:
                key = GivenForeignKey(columns, parent, others)
                tables[child]["foreign_keys"] = (*tables[child].get("foreign_keys", ()), key)

    def statistics(self, tables: dict[Name, dict[str, Any]], kept: bool) -> None:
        for path, table, stats in self.by_table("table_stats", '{"rows": number}'):
            tables[table]["rows"] = self.counts(path, stats, ("rows",)).get("rows")
        for path, table, stats in self.by_table("delta_stats", '{"inserts": number, "deletes": number}'):
            counts = self.counts(path, stats, ("inserts", "deletes"))
            shape = tables[table]["shape"]
            for name in {EMPTY: ("inserts", "deletes"), INSERT_ONLY: ("deletes",)}.get(shape, ()):
                if counts.get(name):
                    self.problems.append(f"{path}.{name}: {counts[name]}, but the delta is said to be {shape}")
            if counts and not kept:
                tables[table]["changes"] = sum(counts.values())
        for path, table, columns in self.by_table("column_stats", '{column: {"distinct": number, "nulls": number}}'):
            label, known = self.columns[table]
            for column, stats in self.entries(path, columns, "an object {column: statistics}"):
                if column.lower() not in known:
                    self.problems.append(f"{path}.{column}: no column of facts.schemas.{label}")
                self.counts(f"{path}.{column}", stats, ("distinct", "nulls"))

    def counts(self, path: str, value: object, names: Sequence[str]) -> dict[str, int]:
        entries = self.entries(path, value, f"an object with {' and '.join(names)}")
        self.unknown(path, dict(entries), names)
        numbers = {name: self.number(f"{path}.{name}", number) for name, number in entries if name in names}
        return {name: number for name, number in numbers.items() if number is not None}

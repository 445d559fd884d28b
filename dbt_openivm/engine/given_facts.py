"""The facts that a caller of `compile_with_facts` gives, checked: every error names its field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_openivm.errors import ConfigError

VERSION = 1
DIALECTS = ("duckdb",)
SHAPES = {"empty": (0, 0), "insert-only": (1, 0), "mixed": (1, 1)}
FLAGS = ("compile_only", "force_view_delta_cascade", "assume_insert_only")
TABLES = ("unique_keys", "fk_relations", "table_statistics", "column_statistics", "delta_statistics")
FIELDS = ("version", "target_dialect", "view", *FLAGS, "delta_shape", "schemas", *TABLES)


@dataclass(frozen=True)
class GivenFacts:
    """Facts of a caller, by table; a source that `delta_shape` does not name is `shape`."""

    view: str
    schemas: Mapping[str, Mapping[str, str]]
    delta_shape: Mapping[str, str]
    shape: str
    publish: bool


def check(facts: Mapping[str, Any]) -> GivenFacts:
    """Raises:
    ConfigError: a field is unknown or has a wrong value; all problems at once.
    """
    problems = [f"facts.{name}: unknown field" for name in facts if name not in FIELDS]
    version = facts.get("version")
    if type(version) is not int or version != VERSION:
        problems.append(f"facts.version: got {version!r}, supported is {VERSION}")
    dialect = facts.get("target_dialect", "duckdb")
    if dialect not in DIALECTS:
        problems.append(f"facts.target_dialect: got {dialect!r}, supported today: {', '.join(DIALECTS)}")
    problems += [f"facts.{name}: expected true or false" for name in FLAGS if type(facts.get(name, False)) is not bool]
    if not isinstance(facts.get("view", "view"), str) or not facts.get("view", "view"):
        problems.append("facts.view: expected a name")
    maps = ("schemas", "delta_shape", *TABLES)
    problems += [f"facts.{name}: expected an object by table" for name in maps if not is_map(facts.get(name, {}))]
    if not problems:
        problems = [*schema_problems(facts), *table_problems(facts)]
    if problems:
        raise ConfigError("\n".join(problems))
    shape = "insert-only" if facts.get("assume_insert_only") else "mixed"
    publish = bool(facts.get("force_view_delta_cascade", False))
    return GivenFacts(facts.get("view", "view"), facts["schemas"], facts.get("delta_shape", {}), shape, publish)


def is_map(value: object) -> bool:
    return isinstance(value, Mapping)


def schema_problems(facts: Mapping[str, Any]) -> list[str]:
    if not facts.get("schemas"):
        return ["facts.schemas: expected {table: {column: type}} for the tables that the query reads"]
    return [
        f"facts.schemas.{table}: expected {{column: type}}"
        for table, columns in facts["schemas"].items()
        if not (is_map(columns) and columns and all(isinstance(name, str) for name in columns.values()))
    ]


def table_problems(facts: Mapping[str, Any]) -> list[str]:
    found = [
        f"facts.{field}.{table}: a table that is not in facts.schemas"
        for field in ("delta_shape", *TABLES)
        for table in facts.get(field, {})
        if table not in facts["schemas"]
    ]
    shapes = facts.get("delta_shape", {})
    known = " or ".join(SHAPES)
    found += [f"facts.delta_shape.{t}: got {s!r}, expected {known}" for t, s in shapes.items() if s not in list(SHAPES)]
    if facts.get("assume_insert_only"):
        found += [f"facts.delta_shape.{t}: mixed, but assume_insert_only" for t, s in shapes.items() if s == "mixed"]
    return found

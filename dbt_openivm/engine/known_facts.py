"""What a database itself says of the relations that a query reads, in the form of `compile_with_facts`."""

from __future__ import annotations

from typing import Any

from dbt_openivm.compiler.facts import Relation
from dbt_openivm.compiler.keys import EXACT
from dbt_openivm.compiler.volatile import closure
from dbt_openivm.engine.gather import IsView, gather
from dbt_openivm.engine.given_facts import KEY_FIELDS, SCHEMA_VERSION
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.errors import UnsupportedError
from dbt_openivm.names import dotted, literal, split_name


def known_facts(session: Session, spec: ViewSpec, is_view: IsView) -> dict[str, Any]:
    """Schemas, sizes, and the keys that DuckDB enforces.

    Raises:
        QueryError: the query is no single SELECT.
        UnsupportedError: it reads files.
    """
    facts = gather(session, spec.sql, is_view).facts
    relations = {key: facts.relations[key] for key in closure(spec.sql, facts).bases}
    labels = {key: label_of(relation) for key, relation in sorted(relations.items())}
    view = spec.name
    return {
        "schema_version": SCHEMA_VERSION,
        "view": dotted((view.database, view.schema, view.name)),
        "schemas": {label: {c.name: c.type for c in relations[key].columns} for key, label in labels.items()},
        "unique_keys": unique_keys(session, labels),
        "fk_relations": foreign_keys(session, labels, relations),
        "table_stats": table_sizes(session, labels),
    }


def label_of(relation: Relation) -> str:
    parts = split_name(relation.sql)
    if ".".join(parts).lower() != relation.key or not relation.sql.startswith('"'):
        raise UnsupportedError(
            f"The query reads {relation.sql}, which is no table that a log of changes could be kept for. Nothing was "
            "changed. Load it into a table first, and read that."
        )
    return dotted(parts)


KEY = "lower(database_name || '.' || schema_name || '.' || table_name)"


def within(labels: dict[str, str]) -> str:
    return f"{KEY} IN ({', '.join(map(literal, labels)) or 'NULL'})"


def unique_keys(session: Session, labels: dict[str, str]) -> dict[str, list[list[str]]]:
    """Primary keys, and UNIQUE over columns that are NOT NULL: two rows with NULL break no UNIQUE."""
    rows = session.execute(
        f"SELECT {KEY}, constraint_type, constraint_column_names FROM duckdb_constraints() WHERE {within(labels)} "
        "AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'NOT NULL') ORDER BY 1, constraint_index"
    )
    filled = {(key, column) for key, kind, columns in rows if kind == "NOT NULL" for column in columns}
    found: dict[str, list[list[str]]] = {}
    for key, kind, columns in rows:
        if kind == "PRIMARY KEY" or (kind == "UNIQUE" and all((key, column) in filled for column in columns)):
            found.setdefault(labels[key], []).append(list(columns))
    return found


def foreign_keys(session: Session, labels: dict[str, str], relations: dict[str, Relation]) -> list[dict[str, Any]]:
    """Those between columns of a type whose equality is the one that DuckDB enforces: text may have a collation."""
    parent_key = "lower(database_name || '.' || schema_name || '.' || referenced_table)"
    rows = session.execute(
        f"SELECT {KEY}, constraint_column_names, {parent_key}, referenced_column_names FROM duckdb_constraints() "
        f"WHERE {within(labels)} AND constraint_type = 'FOREIGN KEY' ORDER BY 1, constraint_index"
    )
    found = []
    for child, columns, parent, others in rows:
        types = {column.name: column.type for column in relations[child].columns}
        if parent in labels and all(EXACT.fullmatch(types[name]) for name in columns):
            values = (labels[child], list(columns), labels[parent], list(others), True)
            found.append(dict(zip(KEY_FIELDS, values, strict=True)))
    return found


def table_sizes(session: Session, labels: dict[str, str]) -> dict[str, dict[str, int]]:
    rows = session.execute(f"SELECT {KEY}, estimated_size FROM duckdb_tables() WHERE {within(labels)} ORDER BY 1")
    return {labels[key]: {"rows": int(size)} for key, size in rows}

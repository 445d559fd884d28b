"""Tables without rows, made of `facts.schemas`: they answer what the compiler asks DuckDB about types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dbt_openivm.engine.gather import databases
from dbt_openivm.engine.given_facts import GivenTable, Name
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.syntax import type_name
from dbt_openivm.errors import ConfigError
from dbt_openivm.names import RelationName, quote

HOME = ("memory", "main")
"""Where a name of one part lies in an in-memory database."""


def create_tables(session: Session, tables: Iterable[GivenTable]) -> dict[str, GivenTable]:
    """Create the tables; returns them by the key that the compiler knows them by.

    Raises:
        ConfigError: a name or a type is none for DuckDB; the text names every field.
    """
    made: dict[str, GivenTable] = {}
    problems: list[str] = []
    for table in tables:
        problems += list(create(session, table, made))
    if problems:
        raise ConfigError("\n".join(problems))
    return made


def create(session: Session, table: GivenTable, made: dict[str, GivenTable]) -> Iterator[str]:
    name = full_name(table.name)
    path = f"facts.schemas.{table.label}"
    if name.key in made:
        yield f"{path}: the same table as {made[name.key].label}"
        return
    types = {column: type_name(session, text) for column, text in table.columns.items()}
    wrong = [column for column, type_ in types.items() if type_ is None]
    for column in wrong:
        yield f"{path}.{column}: DuckDB has no type {table.columns[column]}"
    if wrong:
        return
    listed = ", ".join(f"{quote(column)} {type_}" for column, type_ in types.items())
    try:
        if name.database.lower() not in databases(session):
            session.execute(f"ATTACH ':memory:' AS {quote(name.database)}")
        session.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(name.database)}.{quote(name.schema)}")
        session.execute(f"CREATE TABLE {name.sql} ({listed})")
    except Exception as error:  # DuckDB's errors have no common class that the engine may import
        yield f"{path}: {str(error).splitlines()[0]}"
        return
    made[name.key] = table


def full_name(parts: Name) -> RelationName:
    return RelationName(*(*HOME, *parts)[-3:]) if len(parts) != 2 else RelationName(HOME[0], *parts)

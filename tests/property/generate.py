"""From a seed to a case. The same seed gives the same case on every machine."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import duckdb

from dbt_openivm.names import quote
from tests.property.batches import Batches
from tests.property.case import Case, Statement, Step, ViewDef, text
from tests.property.datatypes import SETUP_TYPES
from tests.property.identifiers import ODD_TABLES
from tests.property.queries import Queries, Query
from tests.property.schema import Relation, Table, random_tables
from tests.property.sources import Rejected

ATTACHED = "hyphen-cat"
MACROS = {
    "add_one({})": "CREATE MACRO add_one(n) AS n + 1",
    "times({}, 3)": "CREATE MACRO times(n, factor := 2) AS n * factor",
    "or_zero({})": "CREATE MACRO or_zero(n) AS CASE WHEN n IS NULL THEN 0 ELSE n END",
}
"""Calls, with {} for a number, and how each macro is made. All arguments are given: a default means a full refresh."""
VIEW_NAMES = ("mv", "daily", "Top View", "totals", "Ärger", "mv.dotted", "SELECT", 'q"uoted')


def generate(seed: int, *, capture: str | None = None) -> Case:
    """Draw the case of `seed`; `capture` overrides the drawn capture."""
    rng = Random(seed)
    risky = rng.random() < 0.08
    attached = ATTACHED if rng.random() < 0.08 else None
    tables = random_tables(rng, risky=risky, attached=attached)
    macros = rng.sample(tuple(MACROS), rng.choice((0, 0, 1, 2)))
    setup = _setup(rng, tables, macros, attached)
    with duckdb.connect(config={"threads": 1}) as connection:
        for statement in setup:
            connection.execute(text(statement))
        views = _views(rng, connection, tables, macros, risky)
    steps = _steps(rng, tables, [view.name for view in views if view.kind == "ivm"])
    drawn, captures = _captures(rng, tables)
    if capture is not None:
        drawn = capture
        captures = {table.key: "diff" for table in tables if not table.triggers}
    return Case(seed, setup, tuple(views), steps, drawn, captures, risky)


def _setup(rng: Random, tables: list[Table], macros: list[str], attached: str | None) -> tuple[Statement, ...]:
    setup: list[Statement] = [SETUP_TYPES, "CREATE SCHEMA side"]
    if attached:
        setup.append(f"ATTACH ':memory:' AS {quote(attached)}")
    setup += [MACROS[call] for call in macros]
    for table in tables:
        setup.append(table.create())
        if count := rng.choice((0, 3, 8, 14, 20, 30)):
            setup.append(table.insert(rng, count))
    return tuple(setup)


def _captures(rng: Random, tables: list[Table]) -> tuple[str, dict[str, str]]:
    choice = rng.random()
    untriggered = {table.key: "diff" for table in tables if not table.triggers}
    if choice < 0.45:
        return "diff", {}
    if choice < 0.85:
        return "trigger", untriggered
    return "diff", {table.key: "trigger" for table in tables if table.triggers and rng.random() < 0.5}


def _steps(rng: Random, tables: list[Table], names: list[str]) -> tuple[Step, ...]:
    batches = Batches(rng, tables, replaces=rng.random() < 0.15)
    steps = []
    for _ in range(rng.choice((2, 4, 6, 9, 13))):  # a view costs more to build than to refresh
        refresh = list(names)
        if rng.random() < 0.3:
            refresh = rng.sample(names, rng.randint(1, len(names)))
        steps.append(Step(batches.draw(), tuple(refresh), restart=rng.random() < 0.05))
    steps.append(Step(batches.draw(), tuple(names)))
    return tuple(steps)


# -- views ----------------------------------------------------------------------------------------------------------


def _views(rng: Random, connection: Any, tables: list[Table], macros: list[str], risky: bool) -> list[ViewDef]:
    """One to four views; later ones may read earlier ones, so that chains and diamonds come up."""
    bases = [table.relation for table in tables]
    readable: list[Relation] = []
    views: list[ViewDef] = []
    count = rng.choice((1, 1, 2, 2, 3, 4))
    while sum(view.kind == "ivm" for view in views) < count:
        relations = bases + readable * rng.choice((0, 2, 4)) if readable else bases
        queries = Queries(rng, connection, relations, macros, risky=risky)
        unsupported = not risky and rng.random() < 0.12
        depth = 0 if risky else rng.choice((0, 1, 1, 2, 2, 3))
        try:
            query = queries.draw(depth=depth, unsupported=unsupported)
        except Rejected:
            continue
        if not _lively(rng, connection, query):
            continue
        plain = rng.random() < 0.15 and len(views) < 4
        view = _named(rng, views, tables, query, plain)
        readable.append(_create(connection, view, query))
        views.append(view)
    return views


def _lively(rng: Random, connection: Any, query: Query) -> bool:
    """Whether the view is worth keeping: not empty, unless by chance, and not huge."""
    try:
        [[rows]] = connection.execute(f"SELECT count(*) FROM ({query.sql}\n)").fetchall()
    except duckdb.Error:
        return True  # the query fails on the data: only drawn where the case may
    return (rows > 0 or rng.random() < 0.1) and rows <= 600


def _named(rng: Random, views: list[ViewDef], tables: list[Table], query: Query, plain: bool) -> ViewDef:
    taken = {view.name.lower() for view in views} | {table.name.lower() for table in tables}
    pool = VIEW_NAMES if rng.random() < 0.25 else tuple(f"v{number}" for number in range(1, 10))
    name = next(name for name in (*pool, *ODD_TABLES, *map(str, range(20))) if name.lower() not in taken)
    return ViewDef(name, query.sql, "plain" if plain else "ivm", query.supported, query.features)


def _create(connection: Any, view: ViewDef, query: Query) -> Relation:
    """Let later queries bind against the view: a stand-in of the same columns."""
    name = quote(view.name)
    if view.kind == "plain":
        connection.execute(f"CREATE VIEW {name} AS {view.sql}")
    else:
        try:
            connection.execute(f"CREATE TABLE {name} AS {view.sql}")
        except duckdb.Error:
            connection.execute(f"CREATE TABLE {name} AS {view.sql} WITH NO DATA")
    described = connection.execute(f"DESCRIBE {name}").fetchall()
    # a view that is kept is what it is: its sums are values like others to those who read it
    columns = tuple(
        replace(
            column,
            name=row[0],
            fuzzy=column.fuzzy and view.kind == "plain",
            rendered=False,
            pool=replace(column.pool, type=row[1], summable=_stored(column.pool.summable)),
        )
        for column, row in zip(query.columns, described, strict=True)
    )
    return Relation(name, columns, query.rows, query.supported or view.kind == "ivm")


def _stored(summable: str) -> str:
    return "mild" if summable == "exact" else summable

"""Whole programs on a real PostgreSQL: state, triggers, refresh, boundary, logs; after each round the view is compared
with its query."""

from __future__ import annotations

import random
from collections.abc import Mapping

import psycopg
import pytest

from tests.postgres.world import World

T = {"t": {"k": "integer", "x": "integer"}}

VIEWS: dict[str, tuple[str, str, Mapping[str, Mapping[str, str]]]] = {
    "groups": ("AGGREGATE_GROUP", "SELECT k, sum(x) AS s, count(x) AS c, count(*) AS n, avg(x) AS a FROM t GROUP BY k", T),
}


def change(world: World, chance: random.Random) -> None:
    """Insert, update and delete in each table by statements of many rows; groups vanish, keys become NULL."""
    for table in world.schemas:
        for _ in range(chance.randrange(3)):
            world.con.execute(statement(table, list(world.schemas[table]), chance))


def statement(table: str, columns: list[str], chance: random.Random) -> str:
    key, value = columns
    fate = chance.random()
    if fate < 0.45:
        rows = ", ".join(f"({number(chance)}, {number(chance)})" for _ in range(chance.randint(1, 4)))
        return f"INSERT INTO {table} VALUES {rows}"
    if fate < 0.6:
        return f"UPDATE {table} SET {value} = {value} + 1 WHERE {key} = {chance.randrange(4)}"
    if fate < 0.75:
        return f"UPDATE {table} SET {key} = {number(chance)} WHERE {value} > {chance.randrange(4)}"
    if fate < 0.95:
        return f"DELETE FROM {table} WHERE {key} IS NOT DISTINCT FROM {number(chance)}"
    return f"TRUNCATE {table}" if fate < 0.97 else f"DELETE FROM {table}"


def number(chance: random.Random) -> str:
    return chance.choice(["0", "1", "2", "3", "3", "NULL"])


@pytest.mark.parametrize("name", VIEWS)
def test_views_follow_their_tables(con: psycopg.Connection, name: str) -> None:
    type_, query, schemas = VIEWS[name]
    chance = random.Random(name)
    world = World(con, query, schemas)
    assert (world.answer["refresh_type"]["name"], world.answer["reason"]) == (type_, None)
    for table in schemas:
        for _ in range(4):
            con.execute(statement(table, list(schemas[table]), chance))
    world.build()
    world.check()
    for _ in range(12):
        change(world, chance)
        world.refresh()

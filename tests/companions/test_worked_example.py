"""The worked example of companion rows, and their table "Effect on downstream views"."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import World, connect

MV1 = "SELECT region, SUM(amount) AS total FROM sales GROUP BY region"


@pytest.fixture
def world() -> World:
    world = World(connect(), "diff")
    world.run(
        "CREATE TABLE sales (region VARCHAR, amount INTEGER)", "INSERT INTO sales VALUES ('US', 100), ('EU', 200)"
    )
    world.create("mv1", MV1, "AGGREGATE_GROUP")
    return world


def companion(world: World, view: str, since: int) -> list[tuple[Any, ...]]:
    table = f"openivm_main.openivm_delta_{view}"
    return sorted(
        world.query(f"SELECT * EXCLUDE (openivm_timestamp, openivm_batch) FROM {table} WHERE openivm_batch > {since}"),
        key=str,
    )


def test_an_existing_group_is_no_new_one(world: World) -> None:
    consumer = world.ivm.register_consumer("mv1", "reader")
    world.change("mv1", "INSERT INTO sales VALUES ('US', 50)")
    assert companion(world, "mv1", consumer.cursor) == [("US", 100, -1), ("US", 150, 1)]

"""Each golden query: its file says what the compiler makes of it, and DuckDB says that this is right."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tests.golden.cases import Case, cases, schema
from tests.golden.compiled import assert_state_is_exact, compiled, node_name
from tests.golden.data import change, insert
from tests.golden.show import show
from tests.helpers import World, assert_view_is_exact

CASES = [pytest.param(case, id=case.title) for case in cases()]

#: Queries whose result is not a function of the tables: they cannot be compared with a recompute.
UNREPEATABLE = ("random", "nextval", "sample", "volatile_view", "now_in_the_result")

SEED = 20260


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    """A database with data, for tests that leave no object behind."""
    with database() as opened:
        insert(opened, random.Random(SEED), 12)
        yield opened


def database() -> Any:
    opened = duckdb.connect()
    for statement in schema():
        opened.execute(statement)
    return opened


@pytest.mark.skipif(not duckdb.__version__.startswith("2."), reason="DuckDB 1 types some results differently")
@pytest.mark.parametrize("case", CASES)
def test_the_plan_is_the_golden_one(connection: Any, case: Case) -> None:
    expected = case.path.read_text(encoding="utf-8") if case.path.exists() else "(no golden file)"
    found = show(case, compiled(connection, case.sql))
    assert found == expected, "if this is meant, run `python -m tests.golden.update` and read the difference"


@pytest.mark.parametrize("case", CASES)
def test_the_state_holds_the_rows_of_the_query(connection: Any, case: Case) -> None:
    assert_state_is_exact(connection, case.sql, rows=case.name not in UNREPEATABLE)


@pytest.mark.parametrize("case", CASES)
def test_refreshes_equal_a_recompute(case: Case) -> None:
    """Insert-only and mixed changes, first without a consumer, then with one that follows by delta."""
    rng = random.Random(f"{SEED} {case.title}")
    with database() as opened:
        insert(opened, rng, 8)
        world = World(opened, "diff")
        if case.name in UNREPEATABLE:
            world.ivm.create_view("mv", case.sql)
            insert(opened, rng, 3)
            assert world.ivm.refresh("mv").strategy == "full"
            return
        world.ivm.create_view("mv", case.sql, case.apply)
        refresh_all(world, rng, case.sql)
        world.ivm.create_view("child", "SELECT * FROM mv")
        refresh_all(world, rng, case.sql, "child")


def refresh_all(world: World, rng: random.Random, sql: str, child: str | None = None) -> None:
    for changes in (insert_some, change):
        changes(world.connection, rng)
        full = world.ivm.refresh("mv").refresh_type == "FULL_REFRESH"
        assert_view_is_exact(world.connection, "mv", sql)
        if child:
            result = world.ivm.refresh(child)
            assert result.strategy in ("incremental", "none"), (full, result)
            assert_view_is_exact(world.connection, child, sql)


def insert_some(connection: Any, rng: random.Random) -> None:
    insert(connection, rng, 3)


def test_nodes_have_names_of_their_own() -> None:
    """The stand-ins of the golden files do not collide."""
    with database() as opened:
        plan = compiled(opened, next(c.sql for c in cases() if c.name == "union_of_aggregates")).plan
    assert [node_name(node) for node in plan.nodes] == ["node_1", "node_2", "view"]

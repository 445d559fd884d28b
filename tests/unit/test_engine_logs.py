"""Change logs hold what some consumer still needs, and nothing else."""

from __future__ import annotations

import pytest

from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.names import RelationName
from tests.helpers import World, has_triggers
from tests.unit.engines import log_rows, new_world

TABLE = "CREATE TABLE t (k INTEGER, x INTEGER)"
SUM = "SELECT k, sum(x) AS s FROM t GROUP BY k"


@pytest.fixture(params=["diff", "trigger"])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "trigger" and not has_triggers():
        pytest.skip("triggers need DuckDB 2")
    return new_world(request.param, TABLE, "INSERT INTO t VALUES (1, 1), (2, 2)")


def test_rows_go_once_all_consumers_have_passed(world: World) -> None:
    world.create("a", SUM)
    world.create("b", "SELECT count(*) AS n, max(k) AS m, max(x) AS x FROM t")
    for i in range(3):
        world.change("a", f"INSERT INTO t VALUES (1, {i})")
    assert log_rows(world, "t") == 3  # b has seen none of them
    world.refresh("b")
    world.change("a", "INSERT INTO t VALUES (1, 9)")
    assert log_rows(world, "t") == 1  # the next capture has removed what both have passed
    world.change("b")
    world.assert_rows("b", (6, 2, 9))


def test_a_late_consumer_starts_from_now(world: World) -> None:
    world.create("a", SUM)
    world.change("a", "INSERT INTO t VALUES (1, 5)")
    world.create("late", "SELECT sum(x) AS s FROM t")
    world.assert_rows("late", (8,))
    assert world.ivm.refresh("late").strategy == "none"
    assert world.change("late", "INSERT INTO t VALUES (1, 1)").strategy == "incremental"
    world.assert_rows("late", (9,))


def test_a_late_consumer_is_not_handed_changes_that_it_was_built_with(world: World) -> None:
    """A change that was captured but not applied by the first view is part of the second one's first state."""
    world.create("a", SUM)
    world.create("b", "SELECT k, count(*) AS n FROM t GROUP BY k")
    world.change("a", "INSERT INTO t VALUES (1, 5)")
    world.create("c", "SELECT k FROM t")
    assert world.ivm.refresh("c").strategy == "none"
    world.refresh("b")
    world.assert_rows("b", (1, 2), (2, 1))


def test_a_refresh_under_way_pins_what_it_will_read(world: World) -> None:
    world.create("a", SUM)
    world.create("b", "SELECT count(x) AS n, count(k) AS m FROM t")
    world.run("INSERT INTO t VALUES (3, 3)")
    maintainer = world.ivm.maintainer
    name = RelationName("memory", "main", "b")
    spec = ViewSpec(name, world.queries["b"], capture=world.capture)
    prepared = maintainer.prepare(spec)
    try:
        world.run("INSERT INTO t VALUES (4, 4), (5, 5)")
        world.refresh("a")
        assert log_rows(world, "t") == 3
        maintainer.transaction(lambda: maintainer.apply(prepared))
    finally:
        maintainer.release(prepared)
    world.assert_rows("b", (3, 3))  # as of its own capture
    world.refresh("b")
    world.assert_rows("b", (5, 5))


def test_a_view_without_consumers_publishes_nothing(world: World) -> None:
    world.create("a", SUM)
    world.change("a", "INSERT INTO t VALUES (1, 5)", "DELETE FROM t WHERE k = 2")
    assert log_rows(world, "a") == 0


def test_a_parent_keeps_what_its_slowest_child_needs(world: World) -> None:
    world.create("a", SUM)
    world.create("fast", "SELECT s FROM a")
    world.create("slow", "SELECT count(*) AS n, sum(s) AS s FROM a")
    for i in range(3):
        world.change("a", f"UPDATE t SET x = x + {i + 1} WHERE k = 1")
        world.refresh("fast")
    assert log_rows(world, "a") == 6  # one row out and one in, three times
    world.refresh("slow")
    world.assert_rows("slow", (2, 9))
    world.refresh("fast")
    world.change("a", "UPDATE t SET x = 0")
    assert log_rows(world, "a") == 4


def test_a_dropped_consumer_holds_nothing(world: World) -> None:
    world.create("a", SUM)
    world.create("b", "SELECT max(x) AS m, max(k) AS n FROM t")
    for i in range(3):
        world.change("a", f"INSERT INTO t VALUES (1, {i})")
    world.ivm.drop_view("b")
    world.change("a", "INSERT INTO t VALUES (1, 7)")
    assert log_rows(world, "t") == 1


def test_the_last_consumer_takes_the_capture_with_it(world: World) -> None:
    world.create("a", SUM)
    world.ivm.drop_view("a")
    assert not world.query("SELECT * FROM openivm.openivm_sources")
    assert not world.query("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'openivm_main'")
    if has_triggers():
        assert not world.query("SELECT * FROM duckdb_triggers()")
    world.run("INSERT INTO t VALUES (1, 1)")


def test_many_small_refreshes_leave_no_trail(world: World) -> None:
    world.create("a", SUM)
    world.create("b", "SELECT s FROM a")
    for i in range(12):
        world.run(f"INSERT INTO t VALUES (1, {i})")
        world.ivm.refresh("a")
        world.ivm.refresh("b")
    world.refresh("a")
    world.refresh("b")
    assert log_rows(world, "t") <= 1
    assert log_rows(world, "a") <= 2

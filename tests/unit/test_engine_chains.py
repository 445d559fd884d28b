"""Views that read views: a child follows its parent by delta, whatever happens to the parent."""

from __future__ import annotations

import pytest

from dbt_openivm.errors import UnsafeError
from tests.helpers import World, columns_of
from tests.unit.engines import history, log_rows, new_world, refused

PARENT = "SELECT k, sum(x) AS s FROM t GROUP BY k"


@pytest.fixture
def world() -> World:
    made = new_world("diff", "CREATE TABLE t (k INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    made.create("parent", PARENT)
    made.create("child", "SELECT count(*) AS n, sum(s) AS total FROM parent")
    return made


def test_a_parent_that_is_read_cannot_be_dropped(world: World) -> None:
    with refused(world, UnsafeError, "parent", "child", "Nothing was changed"):
        world.ivm.drop_view("parent")
    world.ivm.drop_view("child")
    world.ivm.drop_view("parent")


def test_a_rebuilt_parent_publishes_its_difference(world: World) -> None:
    world.run("INSERT INTO t VALUES (1, 10)")
    assert world.ivm.refresh("parent", full=True).strategy == "rebuild"
    assert log_rows(world, "parent") == 2  # one row out, one in: not the whole parent
    result = world.refresh("child")
    assert (result.strategy, result.delta_rows) == ("incremental", 2)


def test_a_parent_with_another_query_and_the_same_columns(world: World) -> None:
    world.create("parent", "SELECT k, sum(x) AS s FROM t WHERE k > 1 GROUP BY k")
    result = world.refresh("child")
    assert (result.strategy, result.delta_rows) == ("incremental", 1)
    world.assert_rows("child", (2, 5))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, sum(x)::DOUBLE AS s FROM t GROUP BY k",
        "SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k",
        "SELECT sum(x) AS s, k FROM t GROUP BY k",
    ],
)
def test_a_parent_with_other_columns_makes_its_child_rebuild(world: World, query: str) -> None:
    world.create("parent", query)
    assert world.refresh("child").strategy == "rebuild"
    world.change("parent", "INSERT INTO t VALUES (9, 9)")
    assert world.refresh("child").strategy == "incremental"


def test_a_parent_changes_its_kind(world: World) -> None:
    """From an aggregate to a full refresh and on to a bag: the child follows by delta all the time."""
    world.create("parent", "SELECT k, sum(x) OVER (ORDER BY k) AS s FROM t LIMIT 1000", "FULL_REFRESH")
    assert world.refresh("child").strategy == "incremental"
    world.change("parent", "INSERT INTO t VALUES (1, 4)", "DELETE FROM t WHERE k = 3")
    assert world.refresh("child").strategy == "incremental"
    world.create("parent", "SELECT k, x::HUGEINT AS s FROM t", "SIMPLE_PROJECTION")
    assert world.refresh("child").strategy == "incremental"


def test_a_full_refresh_publishes_a_net_difference(world: World) -> None:
    world.create("parent", "SELECT k, x::HUGEINT AS s FROM t, repeat(1, 1) ORDER BY k LIMIT 2", "FULL_REFRESH")
    world.refresh("child")
    world.change("parent", "INSERT INTO t VALUES (0, 7)")
    result = world.refresh("child")
    assert (result.strategy, result.delta_rows) == ("incremental", 2)
    world.change("parent", "INSERT INTO t VALUES (99, 7)")
    assert world.ivm.refresh("child").strategy == "none"


def test_a_parent_edited_by_hand_makes_its_child_rebuild(world: World) -> None:
    """Nobody knows what the child has seen."""
    world.run("DELETE FROM openivm_main.openivm_data_parent WHERE k = 2")
    assert world.refresh("parent").strategy == "rebuild"
    assert world.refresh("child").strategy == "rebuild"
    world.assert_rows("child", (3, 6))


def test_a_parent_dropped_and_created_again(world: World) -> None:
    """Not through drop_view, which refuses, but with the internals gone."""
    world.run("DROP VIEW openivm_main.openivm_visible_parent", "DROP TABLE openivm_main.openivm_data_parent")
    assert world.refresh("parent").strategy == "rebuild"
    assert world.refresh("child").strategy == "rebuild"


def test_a_view_of_its_parent_and_of_the_parents_source(world: World) -> None:
    world.create("both", "SELECT t.x, p.s FROM t JOIN parent AS p ON t.k = p.k")
    world.run("UPDATE t SET x = x + 1 WHERE k = 1", "INSERT INTO t VALUES (4, 4)")
    world.refresh("both")  # the parent is older than the source: exact for what it reads
    world.refresh("parent")
    world.refresh("both")
    world.assert_rows("both", (2, 2), (2, 2), (3, 3), (4, 4))


def test_a_child_with_internal_nodes(world: World) -> None:
    world.create(
        "deep", "SELECT s, count(*) AS n FROM (SELECT k % 2 AS odd, sum(s) AS s FROM parent GROUP BY odd) GROUP BY s"
    )
    world.change("parent", "INSERT INTO t VALUES (2, 2)")
    assert world.refresh("deep").strategy == "incremental"
    world.ivm.drop_view("deep")
    assert not world.query("SELECT * FROM duckdb_tables() WHERE table_name LIKE '%node%'")


def test_a_plain_view_over_a_parent(world: World) -> None:
    world.run("CREATE VIEW middle AS SELECT s FROM parent WHERE s > 1")
    world.create("above", "SELECT sum(s) AS total FROM middle")
    world.change("parent", "INSERT INTO t VALUES (2, 5)")
    assert world.refresh("above").strategy == "incremental"


def test_rows_in_and_rows_changed_are_recorded(world: World) -> None:
    world.change("parent", "INSERT INTO t VALUES (1, 5), (4, 4)")
    world.refresh("child")
    [built, refreshed] = history(world, "parent")
    assert built == ("build", None, 0, None)
    assert refreshed[:3] == ("incremental", None, 2)
    assert history(world, "child")[-1][:3] == ("incremental", None, 3)


def test_changed_rows_do_not_depend_on_who_reads_them(world: World) -> None:
    world.create("alone", PARENT)
    world.run("INSERT INTO t VALUES (1, 5), (4, 4)", "DELETE FROM t WHERE k = 2")
    assert world.ivm.refresh("parent").changed_rows == world.ivm.refresh("alone").changed_rows


def test_types_go_down_the_chain(world: World) -> None:
    world.create("grandchild", "SELECT total FROM child")
    assert columns_of(world.connection, "grandchild") == [("total", "HUGEINT")]

"""Cases 45 to 48: views on views."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import World, assert_view_is_exact


def published(world: World, view: str, since: int) -> list[tuple[Any, ...]]:
    """The boundary's delta after batch `since`: the view's columns and the weight."""
    log = f"openivm_main.openivm_delta_openivm_visible_{view}"
    return sorted(
        world.query(f"SELECT * EXCLUDE (openivm_timestamp, openivm_batch) FROM {log} WHERE openivm_batch > {since}"),
        key=lambda row: [(value is None, value) for value in row],
    )


def version(world: World, view: str) -> int:
    return int(world.query(f"SELECT version FROM openivm.openivm_views WHERE view_name = '{view}'")[0][0])


def test_case_45_a_count_of_groups(world: World) -> None:
    """A group's value changes, the number of groups does not."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 100), (2, 200)")
    world.create("a", "SELECT g, SUM(x) AS s FROM t GROUP BY g", "AGGREGATE_GROUP")
    world.create("b", "SELECT COUNT(*) AS n, SUM(s) AS s FROM a", "SIMPLE_AGGREGATE")
    since = version(world, "a")
    world.run("INSERT INTO t VALUES (1, 50)")
    world.refresh("a")
    assert published(world, "a", since) == [(1, 100, -1), (1, 150, 1)]
    assert world.refresh("b").strategy == "incremental"
    world.assert_rows("b", (2, 350))


def test_case_46_a_projection_over_a_global_aggregate(world: World) -> None:
    """NULL -> 30 -> NULL goes down as exact pairs of old and new."""
    world.run("CREATE TABLE t (x INTEGER)")
    world.create("a", "SELECT SUM(x) AS s FROM t", "SIMPLE_AGGREGATE")
    world.create("b", "SELECT s, s IS NULL AS empty FROM a", "SIMPLE_PROJECTION")
    since = version(world, "a")
    world.run("INSERT INTO t VALUES (10), (20)")
    world.refresh("a")
    assert published(world, "a", since) == [(30, 1), (None, -1)]
    assert world.refresh("b").strategy == "incremental"
    world.assert_rows("b", (30, False))
    since = version(world, "a")
    world.run("DELETE FROM t")
    world.refresh("a")
    assert published(world, "a", since) == [(30, -1), (None, 1)]
    world.refresh("b")
    world.assert_rows("b", (None, True))


DIAMOND = {
    "a": "SELECT g, SUM(x) AS s FROM s GROUP BY g",
    "b": "SELECT g, COUNT(*) AS n FROM s WHERE x > 1 GROUP BY g",
    "c": "SELECT a.g, a.s, b.n, s.x FROM a JOIN b ON a.g = b.g JOIN s ON s.g = a.g",
}


@pytest.fixture
def diamond(world: World) -> World:
    world.run("CREATE TABLE s (g INTEGER, x INTEGER)", "INSERT INTO s VALUES (1, 1), (1, 2), (2, 5), (3, 0)")
    for name, sql in DIAMOND.items():
        world.create(name, sql)
    return world


def test_case_47_a_diamond(diamond: World) -> None:
    """s feeds a and b, and c reads all three: one consistent cut, whatever changes."""
    for statement in (
        "INSERT INTO s VALUES (1, 7), (4, 4)",
        "DELETE FROM s WHERE g = 2",
        "UPDATE s SET x = x + 1",
        "TRUNCATE s",
    ):
        diamond.run(statement)
        for name in DIAMOND:
            assert diamond.refresh(name).strategy in ("incremental", "none", "full")
        for name, sql in DIAMOND.items():
            assert_view_is_exact(diamond.connection, name, sql)


@pytest.mark.parametrize("selected", ["c", "ac", "bc", "ca", "cb", "cab", "a", "b", "ab"])
def test_case_47_parts_of_a_diamond(diamond: World, selected: str) -> None:
    """Some of the views in any order: each equals its query over what it reads at that moment."""
    for statement in ("INSERT INTO s VALUES (1, 7), (4, 4)", "DELETE FROM s WHERE g = 2", "UPDATE s SET x = x + 1"):
        diamond.run(statement)
        for name in selected:
            diamond.refresh(name)
    for name in DIAMOND:
        diamond.refresh(name)


@pytest.fixture
def chain(world: World) -> World:
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 100), (2, 200), (3, 1)")
    world.create("parent", "SELECT g, SUM(x) AS s FROM t GROUP BY g")
    world.create("child", "SELECT COUNT(*) AS n, SUM(s) AS s FROM parent")
    world.create("grandchild", "SELECT s - n AS d FROM child")
    return world


def settle(world: World) -> None:
    for name in ("child", "grandchild"):
        world.refresh(name)
    world.run("INSERT INTO t VALUES (1, 1), (9, 9)")
    for name in ("parent", "child", "grandchild"):
        world.refresh(name)


def test_case_48_a_forced_rebuild_of_the_parent(chain: World) -> None:
    """The parent is rebuilt while its child is not selected; the child catches up by what really changed."""
    chain.run("INSERT INTO t VALUES (2, 5)")
    since = version(chain, "parent")
    chain.ivm.refresh("parent", full=True)
    assert published(chain, "parent", since) == [(2, 200, -1), (2, 205, 1)]
    settle(chain)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, SUM(x) + 1 AS s FROM t GROUP BY g",
        "SELECT g, SUM(x) AS s FROM t WHERE g > 1 GROUP BY g",
        "SELECT g, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY g",
        "SELECT SUM(x) AS s, g FROM t GROUP BY g",
        "SELECT g, x AS s FROM t",
        "SELECT SUM(x) AS s FROM t",
    ],
)
def test_case_48_the_parent_gets_another_definition(chain: World, sql: str) -> None:
    """Other rows, more columns, another order, another type: the child is right once it runs."""
    chain.run("INSERT INTO t VALUES (2, 5)")
    chain.ivm.create_view("parent", sql)
    chain.queries["parent"] = sql
    assert_view_is_exact(chain.connection, "parent", sql)
    settle(chain)


def test_case_48_two_rebuilds_before_the_child_runs(chain: World) -> None:
    """Two definitions later, back to the first one."""
    first = chain.queries["parent"]
    chain.ivm.create_view("parent", "SELECT g, MAX(x) AS s FROM t GROUP BY g")
    chain.run("DELETE FROM t WHERE g = 1")
    chain.ivm.create_view("parent", first)
    settle(chain)


def test_a_child_may_run_before_its_parent(chain: World) -> None:
    """A child whose parent did not run sees the parent as it is, and nothing else."""
    chain.run("INSERT INTO t VALUES (2, 5)")
    assert chain.refresh("child").strategy == "none"
    chain.refresh("parent")
    assert chain.refresh("grandchild").strategy == "none"
    settle(chain)


def test_a_plain_view_between(world: World) -> None:
    """A SQL view between two views is read through; its base tables are the sources."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    world.create("a", "SELECT g, SUM(x) AS s FROM t GROUP BY g")
    world.run(
        "CREATE VIEW between_ AS SELECT g, s * 2 AS d FROM a WHERE s > 0",
        "CREATE VIEW higher AS SELECT d FROM between_",
    )
    world.create("b", "SELECT COUNT(*) AS n, SUM(d) AS d FROM higher")
    world.run("INSERT INTO t VALUES (1, 5), (3, -1)")
    world.refresh("a")
    assert world.refresh("b").strategy == "incremental"
    world.assert_rows("b", (2, 16))


def test_a_view_without_consumers_keeps_no_log(world: World) -> None:
    """Only a view that somebody reads pays for a change log; the log is emptied once it was read."""
    world.run("CREATE TABLE t (g INTEGER)", "INSERT INTO t VALUES (1)")
    world.create("a", "SELECT g, COUNT(*) AS n FROM t GROUP BY g")
    world.change("a", "INSERT INTO t VALUES (2)")
    assert not _log_rows(world, "a")
    world.create("b", "SELECT SUM(n) AS n FROM a")
    for i in range(5):
        world.run(f"INSERT INTO t VALUES ({i})")
        world.refresh("a")
        world.refresh("b")
    assert _log_rows(world, "a") <= 4


def _log_rows(world: World, view: str) -> int:
    table = f"openivm_delta_openivm_visible_{view}"
    if not world.query(f"SELECT 1 FROM duckdb_tables() WHERE table_name = '{table}'"):
        return 0
    return int(world.query(f"SELECT COUNT(*) FROM openivm_main.{table}")[0][0])

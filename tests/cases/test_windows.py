"""Cases 31 to 33: windows, top-k and time."""

from __future__ import annotations

import time

import pytest

from tests.helpers import World


def test_case_31_ties_on_the_order_key(world: World) -> None:
    """ROW_NUMBER() = 1 with ties that arrive in one batch: one row a partition (here told apart by id)."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER, id INTEGER)", "INSERT INTO t VALUES (1, 5, 1), (2, 5, 2)")
    world.create_of_a_later_issue(
        "mv",
        "SELECT g, x, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x, id) AS n FROM t) WHERE n = 1",
        construct="window",
    )
    world.change("mv", "INSERT INTO t VALUES (1, 3, 4), (1, 3, 3), (2, 5, 6)")
    world.assert_rows("mv", (1, 3, 3), (2, 5, 2))
    world.change("mv", "DELETE FROM t WHERE id IN (2, 3)")
    world.assert_rows("mv", (1, 3, 4), (2, 5, 6))


def test_case_31_identical_ties(world: World) -> None:
    """Rows that nothing tells apart: still exactly one."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 5)")
    world.create_of_a_later_issue(
        "mv",
        "SELECT g, x FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) = 1",
        construct="window",
    )
    world.change("mv", "INSERT INTO t VALUES (1, 2), (1, 2), (1, 2)")
    world.assert_rows("mv", (1, 2))


TOPS = {
    "limit": "SELECT g, x FROM t ORDER BY x DESC LIMIT 2",
    "distinct on": "SELECT DISTINCT ON (g) g, x FROM t ORDER BY g, x DESC",
    "window": "SELECT g, x FROM (SELECT *, RANK() OVER (PARTITION BY g ORDER BY x DESC) AS r FROM t) WHERE r <= 2",
}


@pytest.mark.parametrize("construct", TOPS)
def test_case_32_the_next_one_comes_up(world: World, construct: str) -> None:
    """A row inside a top-k goes, and the next one takes its place; a better one comes, and the last one leaves."""
    world.run(
        "CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 10), (1, 20), (1, 30), (2, 5), (2, 25)"
    )
    world.create_of_a_later_issue("mv", TOPS[construct], construct=construct)
    world.change("mv", "DELETE FROM t WHERE x = 30")
    world.change("mv", "INSERT INTO t VALUES (1, 40), (2, 50)")
    world.change("mv", "UPDATE t SET x = 0 WHERE x >= 40")
    world.change("mv", "DELETE FROM t")


def test_case_32_qualify(world: World) -> None:
    """The same with QUALIFY."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 10), (1, 20), (2, 5)")
    sql = "SELECT g, x FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC) = 1"
    world.create_of_a_later_issue("mv", sql, construct="window")
    world.change("mv", "DELETE FROM t WHERE x = 20")
    world.assert_rows("mv", (1, 10), (2, 5))


def test_case_33_rows_leave_as_time_passes(world: World) -> None:
    """A filter on now(): an hour later, with no change of any table, rows are gone. No delta is no reason to skip."""
    world.run("CREATE TABLE t (ts TIMESTAMPTZ, x INTEGER)")
    world.run("INSERT INTO t VALUES (now(), 1), (now() - INTERVAL 2 HOUR, 2), (now() + INTERVAL 1 DAY, 3)")
    info = world.ivm.create_view("mv", "SELECT x FROM t WHERE ts > now() - INTERVAL 400 MILLISECOND")
    if info.refresh_type == "FULL_REFRESH":
        assert "now" in info.reason
    world.assert_rows("mv", (1,), (3,))
    time.sleep(0.6)
    world.ivm.refresh("mv")
    world.assert_rows("mv", (3,))


@pytest.mark.parametrize("call", ["random()", "uuid()", "nextval('s')", "now()", "current_timestamp", "current_date"])
def test_volatile_functions_are_recomputed_every_time(world: World, call: str) -> None:
    """Such a query says why it refreshes in full, and does so although nothing changed."""
    world.run("CREATE SEQUENCE s", "CREATE TABLE t (x INTEGER)", "INSERT INTO t VALUES (1)")
    info = world.ivm.create_view("mv", f"SELECT x, {call} AS v FROM t")
    assert info.refresh_type == "FULL_REFRESH"
    name = call.split("(", maxsplit=1)[0]
    assert name in info.reason.lower() or ("now" in info.reason and name == "current_timestamp")
    assert world.ivm.refresh("mv").strategy == "full"
    world.run("INSERT INTO t VALUES (2)")
    world.ivm.refresh("mv")
    assert world.query("SELECT x FROM mv ORDER BY x") == [(1,), (2,)]

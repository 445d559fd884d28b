"""Cases 14 to 17: DISTINCT, bags, set operations."""

from __future__ import annotations

import pytest

from tests.helpers import World


@pytest.mark.parametrize("aggregate", ["COUNT", "SUM", "AVG"])
def test_case_14_distinct_aggregates(world: World, aggregate: str) -> None:
    """A value that is there already adds nothing, a new one does, and one goes with its last row only."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 10), (1, 20), (1, 30), (2, 10)")
    world.create("mv", f"SELECT g, {aggregate}(DISTINCT x) AS d FROM t GROUP BY g")
    world.create("some", f"SELECT g, {aggregate}(DISTINCT x) FILTER (WHERE x > 10) AS d FROM t GROUP BY g")
    for statement in (
        "INSERT INTO t VALUES (1, 10), (1, 40)",
        "DELETE FROM t WHERE rowid = (SELECT MIN(rowid) FROM t WHERE x = 10 AND g = 1)",
        "DELETE FROM t WHERE x = 10",
        "UPDATE t SET x = NULL WHERE x = 20",
    ):
        world.run(statement)
        assert world.refresh("mv").strategy != "full"
        world.refresh("some")


def test_case_14_the_count_itself(world: World) -> None:
    """{10, 20, 30} and new rows 10 and 40 make four."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 10), (1, 20), (1, 30)")
    world.create("mv", "SELECT g, COUNT(DISTINCT x) AS d FROM t GROUP BY g", "AGGREGATE_GROUP")
    world.change("mv", "INSERT INTO t VALUES (1, 10), (1, 40)")
    world.assert_rows("mv", (1, 4))


def test_case_15_a_table_united_with_itself(world: World) -> None:
    """Three new rows appear six times."""
    world.run("CREATE TABLE t (x INTEGER)", "INSERT INTO t VALUES (1)")
    world.create("mv", "SELECT * FROM t UNION ALL SELECT * FROM t")
    world.change("mv", "INSERT INTO t VALUES (2), (2), (3)")
    world.assert_rows("mv", (1,), (1,), (2,), (2,), (2,), (2,), (3,), (3,))
    world.change("mv", "DELETE FROM t WHERE x = 2")
    world.assert_rows("mv", (1,), (1,), (3,), (3,))


def test_case_16_exists_over_duplicates(world: World) -> None:
    """Three equal rows on the left, their first match arrives: three rows. Its second match changes nothing."""
    world.run("CREATE TABLE t (k INTEGER)", "CREATE TABLE u (k INTEGER)", "INSERT INTO t VALUES (1), (1), (1), (2)")
    world.create("mv", "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)")
    world.change("mv", "INSERT INTO u VALUES (1)")
    world.assert_rows("mv", (1,), (1,), (1,))
    world.change("mv", "INSERT INTO u VALUES (1)")
    world.assert_rows("mv", (1,), (1,), (1,))
    world.change("mv", "DELETE FROM u")
    world.assert_rows("mv")


def test_case_17_one_of_two_identical_rows(world: World) -> None:
    """A projection without a key: of two identical rows one is deleted, one is left."""
    world.run("CREATE TABLE t (x INTEGER, y VARCHAR)", "INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, NULL), (2, NULL)")
    world.create("mv", "SELECT x, y FROM t", "SIMPLE_PROJECTION")
    world.create("once", "SELECT DISTINCT x, y FROM t", "DISTINCT_INCREMENTAL")
    world.run("DELETE FROM t WHERE rowid IN (SELECT MIN(rowid) FROM t GROUP BY x)")
    world.refresh("mv")
    world.refresh("once")
    world.assert_rows("mv", (1, "a"), (2, None))
    world.assert_rows("once", (1, "a"), (2, None))
    world.run("DELETE FROM t WHERE x = 2")
    world.refresh("mv")
    world.refresh("once")
    world.assert_rows("once", (1, "a"))

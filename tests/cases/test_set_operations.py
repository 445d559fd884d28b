"""UNION, INTERSECT, EXCEPT, with and without ALL: duplicates, NULLs, types, branches that are aggregates."""

from __future__ import annotations

import pytest

from tests.helpers import World

TABLES = (
    "CREATE TABLE t (k INTEGER, v VARCHAR)",
    "CREATE TABLE u (v VARCHAR, k BIGINT)",
    "INSERT INTO t VALUES (1, 'a'), (1, 'a'), (1, 'a'), (2, 'b'), (NULL, NULL), (NULL, NULL)",
    "INSERT INTO u VALUES ('a', 1), ('c', 3), (NULL, NULL)",
)
CHANGES = (
    ("INSERT INTO u VALUES ('a', 1), ('b', 2)", "DELETE FROM t WHERE k = 2"),
    ("INSERT INTO t VALUES (NULL, NULL), (2, 'b')",),
    ("DELETE FROM u WHERE rowid = (SELECT min(rowid) FROM u WHERE k = 1)",),
    ("UPDATE t SET v = 'c', k = 3 WHERE k = 1", "INSERT INTO t VALUES (1, 'a')"),
    ("DELETE FROM u",),
    ("DELETE FROM t", "INSERT INTO u VALUES ('a', 1), ('a', 1)"),
    ("INSERT INTO t SELECT k, v FROM u",),
)


@pytest.mark.parametrize("words", ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
def test_every_operation(world: World, words: str) -> None:
    """Over rows of either side that come, go and cross, duplicates and NULLs among them; the type is that of both."""
    world.run(*TABLES)
    world.create("rows", f"SELECT k, v FROM t {words} SELECT k, v FROM u")
    world.create("swapped", f"SELECT k FROM u {words} SELECT k FROM t")
    world.create(
        "counted",
        f"SELECT v, count(*) AS n, sum(k) AS s FROM (SELECT k, v FROM t {words} SELECT k, v FROM u) GROUP BY v",
    )
    swapped = "SELECT n, k FROM (SELECT count(*) AS n, k FROM u GROUP BY k)"
    world.create("grouped", f"SELECT k, count(*) AS n FROM t GROUP BY k {words} {swapped}")
    for statements in CHANGES:
        world.run(*statements)
        for name in ("rows", "swapped", "counted", "grouped"):
            world.refresh(name)


def test_by_name(world: World) -> None:
    """Columns go by name, in any order and case; a branch without one has NULL, of the other's type."""
    world.run(*TABLES)
    world.create("rows", "SELECT k, v FROM t UNION ALL BY NAME SELECT V, k FROM u")
    world.create("more", "SELECT k FROM t UNION BY NAME SELECT v, k, k + 1 AS next FROM u")
    for statements in CHANGES:
        world.run(*statements)
        world.refresh("rows")
        world.refresh("more")


def test_intersect_binds_more_tightly(world: World) -> None:
    """``a UNION b INTERSECT c`` is ``a UNION (b INTERSECT c)``, the others go from left to right."""
    world.run(*TABLES)
    world.create("mixed", "SELECT k FROM t UNION SELECT k FROM u INTERSECT SELECT 1")
    world.create("chain", "SELECT k FROM t EXCEPT ALL SELECT k FROM u UNION ALL SELECT 7 EXCEPT SELECT 8")
    world.create(
        "nested", "(SELECT k FROM t EXCEPT ALL SELECT k FROM u) INTERSECT ALL (SELECT k FROM u UNION ALL SELECT 2)"
    )
    for statements in CHANGES:
        world.run(*statements)
        for name in ("mixed", "chain", "nested"):
            world.refresh(name)


def test_a_copy_of_many(world: World) -> None:
    """EXCEPT ALL leaves as many copies as the left has more, INTERSECT ALL the fewer of both."""
    world.run("CREATE TABLE t (k INTEGER)", "CREATE TABLE u (k INTEGER)")
    world.run("INSERT INTO t SELECT 1 FROM range(5)", "INSERT INTO u VALUES (1), (1)")
    world.create("left_over", "SELECT k FROM t EXCEPT ALL SELECT k FROM u")
    world.create("common", "SELECT k FROM t INTERSECT ALL SELECT k FROM u")
    world.assert_rows("left_over", (1,), (1,), (1,))
    world.run("INSERT INTO u SELECT 1 FROM range(2)")
    world.refresh("left_over")
    world.refresh("common")
    world.assert_rows("left_over", (1,))
    world.assert_rows("common", (1,), (1,), (1,), (1,))


def test_a_chain(world: World) -> None:
    """A view that reads the view gets the net change."""
    world.run(*TABLES)
    world.create("lower_view", "SELECT k FROM t EXCEPT ALL SELECT k FROM u")
    world.create("upper_view", "SELECT k, count(*) AS n FROM lower_view GROUP BY k")
    for statements in CHANGES:
        world.run(*statements)
        world.refresh("lower_view")
        assert world.refresh("upper_view").strategy != "full"

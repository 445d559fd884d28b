"""ROLLUP, CUBE, GROUPING SETS: NULL keys beside keys that are not grouped by, empty tables, equal sets."""

from __future__ import annotations

import pytest

from tests.helpers import World

TABLE = "CREATE TABLE t (a INTEGER, b VARCHAR, x INTEGER, d DATE)"
CHANGES = (
    ("INSERT INTO t VALUES (1, 'p', 5, '2026-01-01'), (1, NULL, 7, NULL), (NULL, 'p', 2, '2026-01-03')",),
    ("INSERT INTO t VALUES (2, 'q', 1, NULL), (1, 'p', 9, '2026-02-01')", "DELETE FROM t WHERE a IS NULL"),
    ("UPDATE t SET a = NULL, b = NULL WHERE x = 7", "UPDATE t SET x = NULL WHERE x = 9"),
    ("DELETE FROM t",),
    ("INSERT INTO t VALUES (NULL, NULL, NULL, NULL)",),
    ("DELETE FROM t", "INSERT INTO t VALUES (1, 'p', 5, NULL), (2, 'p', 6, NULL)"),
)
QUERIES = {
    "rollup": "SELECT a, b, count(*) AS n, sum(x) AS s, grouping(a, b) AS g FROM t GROUP BY ROLLUP (a, b)",
    "cube": "SELECT a, b, min(x) AS low, max(d) AS high, avg(x) AS mean FROM t GROUP BY CUBE (a, b)",
    "sets": "SELECT a, b, count(x) AS n FROM t GROUP BY GROUPING SETS ((a, b), (b), (b), ())",
    "beside a key": "SELECT a, b, count(*) AS n FROM t GROUP BY a, ROLLUP (b)",
    "crossed": "SELECT a, b, d, count(*) AS n FROM t GROUP BY ROLLUP (a), CUBE (b, d)",
    "composite": "SELECT a, b, d, count(*) AS n FROM t GROUP BY ROLLUP ((a, b), d)",
    "nested": "SELECT a, b, count(*) AS n FROM t GROUP BY GROUPING SETS ((a), ROLLUP (a, b), CUBE (b))",
    "of expressions": "SELECT a + 1 AS k, (a + 1) * 2 AS l, upper(b) AS u, count(*) AS n FROM t GROUP BY ROLLUP (k, 3)",
    "having": "SELECT a, count(*) AS n FROM t GROUP BY ROLLUP (a) HAVING grouping(a) = 1 OR sum(x) > 5 ORDER BY a",
    "no key shown": "SELECT count(*) AS n, grouping_id(b) AS g FROM t GROUP BY CUBE (a, b)",
    "coalesced": "SELECT coalesce(b, 'all') AS b, count(*) AS n FROM t GROUP BY ROLLUP (b)",
    "distinct": "SELECT a, count(DISTINCT b) AS n, count(*) AS m FROM t GROUP BY ROLLUP (a)",
    "recomputed": "SELECT a, list(x ORDER BY x) AS l, string_agg(b, ',' ORDER BY b) AS s FROM t GROUP BY CUBE (a)",
    "filtered": "SELECT a, count(*) FILTER (WHERE x > 1) AS n FROM t WHERE d IS NULL GROUP BY ROLLUP (a)",
    "nothing": "SELECT count(*) AS n, sum(x) AS s FROM t GROUP BY ()",
    "nothing twice": "SELECT count(*) AS n FROM t GROUP BY GROUPING SETS ((), ())",
    "one row": "SELECT 1 AS one FROM t GROUP BY ()",
    "ordinal in parentheses": "SELECT 1 AS one, a FROM t GROUP BY GROUPING SETS ((2), (2))",
    "tuple": "SELECT a, b, count(*) AS n FROM t GROUP BY (a, b)",
    "plain": "SELECT a, grouping(a) AS g FROM t GROUP BY a",
    "counted": "SELECT count(*) AS n FROM (SELECT a FROM t GROUP BY ROLLUP (a)) AS q",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_grouping_sets(world: World, query: str) -> None:
    """From an empty table, through changes of all kinds, to an empty one and back."""
    world.run(TABLE)
    world.create("mv", query)
    for statements in CHANGES:
        world.run(*statements)
        world.refresh("mv")


def test_a_chain(world: World) -> None:
    """Equal rows of two sets are two rows of the published change."""
    world.run(TABLE)
    world.create("totals", "SELECT a, sum(x) AS s FROM t GROUP BY GROUPING SETS ((a), (a), ())")
    world.create("above", "SELECT s, count(*) AS n FROM totals GROUP BY s")
    for statements in CHANGES:
        world.run(*statements)
        world.refresh("totals")
        assert world.refresh("above").strategy != "full"


def test_a_row_that_nobody_looks_into(world: World) -> None:
    """One row of an ungrouped aggregate is joined though none of its columns is read."""
    world.run(TABLE, "CREATE TABLE u (k INTEGER)")
    world.create("one", "SELECT u.k FROM u, (SELECT count(DISTINCT x) AS n, sum(x) AS s FROM t) AS q")
    world.create("none", "SELECT count(*) AS n FROM (SELECT 1 FROM t GROUP BY ()) AS q, u")
    for statements in CHANGES:
        world.run(*statements, "INSERT INTO u VALUES (1)")
        world.refresh("one")
        world.refresh("none")


def test_two_ordinals_of_one_expression_are_two_keys(world: World) -> None:
    """Each item is NULL where its own ordinal is left out of the set."""
    world.run("CREATE TABLE t (g INTEGER)", "INSERT INTO t VALUES (1)")
    world.create("mv", "SELECT g AS a, g AS b, count(*) AS n FROM t GROUP BY GROUPING SETS (2, 1, ROLLUP (1, 2))")
    world.change("mv", "INSERT INTO t VALUES (2), (NULL)", "DELETE FROM t WHERE g = 1")

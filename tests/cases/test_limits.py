"""ORDER BY, LIMIT and OFFSET: what is ordered by, and numbers of rows that subqueries give."""

from __future__ import annotations

import pytest

from tests.helpers import World

TABLES = (
    "CREATE TABLE t (k INTEGER, x INTEGER)",
    "CREATE TABLE u (k INTEGER, y INTEGER)",
    "INSERT INTO t VALUES (1, 2), (1, 3), (2, 3), (NULL, 4), (3, NULL)",
    "INSERT INTO u VALUES (1, 1), (2, 3)",
)

QUERIES = {
    "distinct by a qualified name": "SELECT DISTINCT k AS z, x FROM t AS a ORDER BY -a.k DESC, a.x LIMIT 2",
    "an offset": "SELECT k, x FROM t ORDER BY k, x OFFSET (SELECT max(y) - 1 FROM u)",
    "both": "SELECT * FROM (SELECT k, x FROM t ORDER BY k, x LIMIT 1 + (SELECT min(y) FROM u WHERE k > 0) OFFSET "
    "(SELECT count(*) // 3 FROM u)) AS s JOIN u ON s.k = u.k",
    "a number that is no integer": "SELECT k, x FROM t ORDER BY k, x LIMIT (SELECT max('2.6') FROM u WHERE y = 3)",
    "inside": "SELECT k, (SELECT list(y ORDER BY y) FROM (SELECT y FROM u ORDER BY y, k LIMIT (SELECT min(k) FROM t))) "
    "AS l FROM t",
    "an aggregate in an order": "SELECT 1 AS one, (SELECT max(y) FROM u) AS m FROM t ORDER BY sum(x)",
    "a subquery in an order": "SELECT k FROM t ORDER BY (SELECT max(y) FROM u WHERE u.k = t.k)",
}


@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES.keys())
def test_which_rows_are_first(world: World, sql: str) -> None:
    """A limit of NULL, or of a subquery without rows, is no limit."""
    world.run(*TABLES)
    world.create("mv", sql)
    world.change("mv", "INSERT INTO u VALUES (1, 2), (NULL, 3), (3, NULL)", "INSERT INTO t VALUES (2, 1)")
    world.change("mv", "UPDATE u SET y = 2", "DELETE FROM t WHERE x = 3")
    world.change("mv", "DELETE FROM u", "UPDATE t SET k = k + 1")
    world.change("mv", "INSERT INTO u VALUES (1, 4), (1, 4), (2, 5)", "INSERT INTO t VALUES (2, 7), (3, 8)")


def test_rows_that_the_order_of_a_moving_limit_leaves_tied(world: World) -> None:
    """As with a constant limit, those whose other columns come first are shown, however often they are numbered."""
    world.run(*TABLES)
    sql = "SELECT k, x FROM t WHERE k = 1 ORDER BY k LIMIT (SELECT min(y) FROM u)"
    world.ivm.create_view("mv", sql)
    for statement in (
        "INSERT INTO t VALUES (1, 9), (1, 1)",
        "DELETE FROM t WHERE x = 9",
        "INSERT INTO t VALUES (1, 5)",
    ):
        world.run(statement)
        world.ivm.refresh("mv")
        world.assert_rows("mv", (1, 1))
    world.run("UPDATE u SET y = 3")
    world.ivm.refresh("mv")
    world.assert_rows("mv", (1, 1), (1, 2), (1, 3))

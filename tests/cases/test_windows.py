"""Cases 31 and 32: windows and top-k."""

from __future__ import annotations

import re

import pytest

from tests.helpers import World


def test_case_31_ties_on_the_order_key(world: World) -> None:
    """ROW_NUMBER() = 1 with ties that arrive in one batch: one row a partition (here told apart by id)."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER, id INTEGER)", "INSERT INTO t VALUES (1, 5, 1), (2, 5, 2)")
    world.create(
        "mv",
        "SELECT g, x, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x, id) AS n FROM t) WHERE n = 1",
        "WINDOW_PARTITION",
    )
    world.change("mv", "INSERT INTO t VALUES (1, 3, 4), (1, 3, 3), (2, 5, 6)")
    world.assert_rows("mv", (1, 3, 3), (2, 5, 2))
    world.change("mv", "DELETE FROM t WHERE id IN (2, 3)")
    world.assert_rows("mv", (1, 3, 4), (2, 5, 6))


def test_case_31_identical_ties(world: World) -> None:
    """Rows that nothing tells apart: still exactly one."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 5)")
    world.create("mv", "SELECT g, x FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) = 1")
    world.change("mv", "INSERT INTO t VALUES (1, 2), (1, 2), (1, 2)")
    world.assert_rows("mv", (1, 2))


def test_case_31_any_of_the_ties(world: World) -> None:
    """Ties that the query leaves open: one row a partition, one of the right ones, and those who read it see the same.

    What was shown before is taken from the state: another computation might have chosen another row.
    """
    world.run(
        "CREATE TABLE t (g INTEGER, x INTEGER, id INTEGER)", "INSERT INTO t SELECT i % 3, 0, i FROM range(30) r(i)"
    )
    world.ivm.create_view("mv", "SELECT g, id FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) = 1")
    world.ivm.create_view("child", "SELECT * FROM mv")
    for number in range(8):
        world.run(f"INSERT INTO t VALUES ({number % 3}, 0, {100 + number}), (1, 1, {200 + number})")
        world.run(f"DELETE FROM t WHERE id IN (SELECT id FROM mv WHERE g = {number % 3})")
        world.ivm.refresh("mv")
        world.ivm.refresh("child")
        assert world.query("SELECT g, count(*) FROM mv GROUP BY g ORDER BY g") == [(0, 1), (1, 1), (2, 1)]
        assert world.query("SELECT count(*) FROM mv JOIN t USING (g, id) WHERE x = 0") == [(3,)]
        assert world.rows("child") == world.rows("mv")


TOPS = {
    "limit": ("SELECT g, x FROM t ORDER BY x DESC LIMIT 2", "TOP_K"),
    "offset": ("SELECT g, x FROM t ORDER BY x LIMIT 2 OFFSET 1", "TOP_K"),
    "percent": ("SELECT g, x FROM t ORDER BY x LIMIT 40%", "TOP_K"),
    "distinct on": ("SELECT DISTINCT ON (g) g, x FROM t ORDER BY g, x DESC", "WINDOW_PARTITION"),
    "rank": (
        "SELECT g, x FROM (SELECT *, RANK() OVER (PARTITION BY g ORDER BY x DESC) AS r FROM t) WHERE r <= 2",
        "WINDOW_PARTITION",
    ),
    "qualify": ("SELECT g, x FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY x) = 1", "WINDOW_PARTITION"),
    "below": (
        "SELECT g, count(*) AS n FROM (SELECT g, x FROM t ORDER BY x DESC LIMIT 2) GROUP BY g",
        "AGGREGATE_GROUP",
    ),
}


@pytest.mark.parametrize("construct", TOPS)
def test_case_32_the_next_one_comes_up(world: World, construct: str) -> None:
    """A row inside a top-k goes, and the next one takes its place; a better one comes, and the last one leaves."""
    world.run(
        "CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 10), (1, 20), (1, 30), (2, 5), (2, 25)"
    )
    world.create("mv", *TOPS[construct])
    world.create("child", "SELECT * FROM mv")
    world.queries["child"] = TOPS[construct][0]
    for change in (
        "DELETE FROM t WHERE x = 30",
        "INSERT INTO t VALUES (1, 40), (2, 50)",
        "UPDATE t SET x = 0 WHERE x = 50",
        "INSERT INTO t VALUES (NULL, 60), (NULL, NULL), (3, NULL)",
        "DELETE FROM t",
    ):
        world.change("mv", change)
        world.refresh("child")


def test_case_32_qualify(world: World) -> None:
    """The same with QUALIFY."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 10), (1, 20), (2, 5)")
    world.create("mv", "SELECT g, x FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC) = 1")
    world.change("mv", "DELETE FROM t WHERE x = 20")
    world.assert_rows("mv", (1, 10), (2, 5))


def test_a_limit_with_ties_shows_the_same_rows_to_everyone(world: World) -> None:
    """Any two of five tied rows are right; the view, its readers and the next refresh agree on which."""
    world.run("CREATE TABLE t (x INTEGER, id INTEGER)", "INSERT INTO t SELECT 0, i FROM range(5) r(i)")
    world.ivm.create_view("mv", "SELECT id FROM t ORDER BY x LIMIT 2")
    world.ivm.create_view("child", "SELECT * FROM mv")
    for number in range(6):
        world.run(f"INSERT INTO t VALUES (0, {-number})", f"DELETE FROM t WHERE id = {number}")
        world.ivm.refresh("mv")
        world.ivm.refresh("child")
        assert len(world.rows("mv")) == 2
        assert world.rows("child") == world.rows("mv") == world.rows("mv")


def test_a_limit_of_equal_but_different_values(world: World) -> None:
    """DuckDB orders 0.0 and -0.0, one month and 30 days as equal: what the boundary shows does not change by itself."""
    world.run("CREATE TABLE t (x DOUBLE, i INTERVAL)")
    world.run(
        "INSERT INTO t SELECT -0.0, INTERVAL 30 DAYS FROM range(3)",
        "INSERT INTO t SELECT 0.0, INTERVAL 1 MONTH FROM range(3)",
    )
    world.ivm.create_view("mv", "SELECT x, i FROM t ORDER BY x, i LIMIT 3")
    world.ivm.create_view("child", "SELECT CAST(x AS VARCHAR) AS x, CAST(i AS VARCHAR) AS i FROM mv")
    for _ in range(3):
        world.run("INSERT INTO t VALUES (1, INTERVAL 0 DAYS)")
        world.ivm.refresh("mv")
        world.ivm.refresh("child")
        assert world.rows("child") == world.query("SELECT CAST(x AS VARCHAR), CAST(i AS VARCHAR) FROM mv ORDER BY ALL")


WINDOWS = {
    "several partitions": "SELECT g, x, sum(x) OVER (PARTITION BY g) AS s, count(*) OVER (PARTITION BY x) AS n, "
    "count(*) OVER () AS a FROM t",
    "a common partition": "SELECT g, x, sum(x) OVER (PARTITION BY g, x) AS s, max(x) OVER (PARTITION BY g) AS m FROM t",
    "hidden partition": "SELECT x, row_number() OVER (PARTITION BY g ORDER BY x, id) AS n FROM t",
    "partition by expression": "SELECT id, count(*) OVER (PARTITION BY g % 2, x IS NULL) AS n FROM t",
    "constant partition": "SELECT id, sum(x) OVER (PARTITION BY 1) AS s FROM t",
    "collated partition": "SELECT id, count(*) OVER (PARTITION BY s COLLATE NOCASE) AS n FROM t",
    "rows": "SELECT id, sum(x) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM t",
    "range": "SELECT id, sum(x) OVER (ORDER BY x RANGE BETWEEN 5 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS s "
    "FROM t",
    "groups": "SELECT id, count(*) OVER (ORDER BY x GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) AS n "
    "FROM t",
    "filter and distinct": "SELECT id, count(DISTINCT x) FILTER (WHERE x > 5) OVER (PARTITION BY g) AS n FROM t",
    "ordered aggregate": "SELECT id, list(x ORDER BY id DESC) OVER (PARTITION BY g) AS l FROM t",
    "order of a function": "SELECT id, rank(ORDER BY x DESC) OVER (PARTITION BY g) AS r FROM t",
    "ignore nulls": "SELECT id, lag(x IGNORE NULLS) OVER (ORDER BY id) AS l, "
    "first_value(x IGNORE NULLS) OVER (PARTITION BY g ORDER BY id) AS f FROM t",
    "named": "SELECT id, sum(x) OVER w AS s, rank() OVER (w ORDER BY x, id) AS r FROM t WINDOW w AS (PARTITION BY g)",
    "inside expressions": "SELECT id, CASE WHEN x > avg(x) OVER (PARTITION BY g) THEN 'high' ELSE 'low' END AS c "
    "FROM t",
    "an alias": "SELECT g, count(*) OVER (PARTITION BY g) AS n, n * 2 AS twice FROM t QUALIFY n > 1",
    "over groups": "SELECT g, sum(x) AS s, sum(sum(x)) OVER (ORDER BY g) AS r FROM t GROUP BY g HAVING count(*) > 1",
    "over groups, qualified": "SELECT g, count(*) AS n FROM t GROUP BY g QUALIFY rank() OVER (ORDER BY count(*)) = 1",
    "over a left join": "SELECT t.id, u.y, count(u.y) OVER (PARTITION BY u.y) AS n FROM t LEFT JOIN u ON t.g = u.k",
    "over a union": "SELECT v, count(*) OVER (PARTITION BY v) AS n FROM (SELECT g AS v FROM t UNION ALL SELECT k "
    "FROM u)",
    "over a window": "SELECT n, count(*) OVER (PARTITION BY n) AS m FROM (SELECT count(*) OVER (PARTITION BY g) AS n "
    "FROM t)",
    "below a join": "SELECT a.id, b.id AS next FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM t) AS a "
    "JOIN (SELECT *, row_number() OVER (ORDER BY id) AS n FROM t) AS b ON b.n = a.n + 1",
    "a CTE read twice": "WITH c AS (SELECT g, id, count(*) OVER (PARTITION BY g) AS n FROM t) "
    "SELECT a.id, b.n FROM c AS a JOIN c AS b ON a.g = b.id",
    "in a subquery": "SELECT k FROM u WHERE y > (SELECT max(n) FROM (SELECT count(*) OVER (PARTITION BY g) AS n "
    "FROM t))",
    "a lateral limit": "SELECT u.k, l.x FROM u, LATERAL (SELECT x "
    "FROM t WHERE t.g = u.k ORDER BY x DESC, id LIMIT 2) AS l",
    "only counted": "SELECT count(*) AS n FROM (SELECT row_number() OVER () AS n FROM t)",
    "distinct over windows": "SELECT DISTINCT g, sum(x) OVER (PARTITION BY g) AS s FROM t",
    "limit over a window": "SELECT id, sum(x) OVER (PARTITION BY g) AS s FROM t ORDER BY s DESC NULLS LAST, id LIMIT 3",
    "limit by a window": "SELECT id FROM t ORDER BY row_number() OVER (PARTITION BY g ORDER BY id), id LIMIT 3",
    "distinct and limit": "SELECT DISTINCT g FROM t ORDER BY g DESC LIMIT 2",
    "limits of both sides": "(SELECT g, x FROM t ORDER BY id LIMIT 2) UNION ALL (SELECT k, y "
    "FROM u ORDER BY ALL LIMIT 1)",
    "limit of a union": "SELECT g FROM t UNION ALL SELECT k FROM u ORDER BY g NULLS FIRST LIMIT 4",
    "limit of groups": "SELECT g, sum(x) AS s FROM t GROUP BY g ORDER BY sum(x) DESC, g LIMIT 2",
    "distinct on an expression": "SELECT DISTINCT ON (g % 2) id, x FROM t ORDER BY g % 2, id DESC",
    "distinct on two": "SELECT DISTINCT ON (g, x) * FROM t ORDER BY id",
}

CHANGES = (
    ("INSERT INTO t VALUES (1, 7, 20, 'A'), (NULL, 7, 21, 'b'), (3, NULL, 22, 'c')", "INSERT INTO u VALUES (1, 3)"),
    ("UPDATE t SET g = 2 WHERE g = 1 AND id % 2 = 0", "DELETE FROM u WHERE k = 2"),
    ("DELETE FROM t WHERE g IS NULL", "INSERT INTO t VALUES (9, 9, 30, 'Z')", "UPDATE u SET y = y + 1"),
    ("UPDATE t SET x = x + 1 WHERE id < 4", "DELETE FROM t WHERE id > 4"),
    ("DELETE FROM t", "DELETE FROM u"),
    ("INSERT INTO t VALUES (1, 1, 1, 'a')",),
)


@pytest.mark.parametrize("construct", WINDOWS)
def test_windows_of_every_kind(world: World, construct: str) -> None:
    """Through rounds of changes, and as a parent: what is published is the net difference."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER, id INTEGER, s VARCHAR)", "CREATE TABLE u (k INTEGER, y INTEGER)")
    world.run(
        "INSERT INTO t SELECT i % 3, (i * 7) % 11, i, if(i % 3 = 2, 'a', 'A') || i % 2 FROM range(9) r(i)",
        "INSERT INTO t VALUES (NULL, 4, 10, NULL), (NULL, NULL, 11, 'A')",
        "INSERT INTO u VALUES (0, 1), (1, 5), (2, NULL), (NULL, 2)",
    )
    world.create("mv", WINDOWS[construct])
    world.create("child", "SELECT * FROM mv")
    world.queries["child"] = WINDOWS[construct]
    for changes in CHANGES:
        world.change("mv", *changes)
        world.refresh("child")


def test_only_touched_partitions_are_written(world: World) -> None:
    """And what comes out as it was is not published."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t SELECT i % 100, i FROM range(1000) r(i)")
    world.create("mv", "SELECT g, x, max(x) OVER (PARTITION BY g) AS m FROM t")
    world.create("child", "SELECT g, count(*) AS n FROM mv GROUP BY g")
    assert world.change("mv", "INSERT INTO t VALUES (5, 0)").changed_rows <= 11
    assert world.refresh("child").delta_rows == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x FROM t LIMIT 3",
        "SELECT x FROM t OFFSET 3",
        "SELECT count(*) AS n FROM (SELECT x FROM t LIMIT 3)",
        "SELECT x FROM t ORDER BY x LIMIT (SELECT min(x) FROM t) %",
    ],
)
def test_a_limit_that_the_query_does_not_determine_is_a_full_refresh(world: World, query: str) -> None:
    """The reason names it."""
    world.run("CREATE TABLE t (x INTEGER)", "INSERT INTO t SELECT i FROM range(1, 9) r(i)")
    info = world.ivm.create_view("mv", query)
    assert info.refresh_type == "FULL_REFRESH"
    assert re.search(r"(LIMIT|OFFSET)( n%)? (without ORDER BY|of what is no constant) at line 1", info.reason), (
        info.reason
    )
    world.run("INSERT INTO t VALUES (9)")
    assert world.ivm.refresh("mv").strategy == "full"


@pytest.mark.parametrize(
    "query", ["SELECT max(x) AS m FROM t LIMIT 1", "SELECT x FROM t LIMIT 0", "SELECT x FROM t LIMIT ALL"]
)
def test_a_limit_that_takes_nothing_or_all_needs_no_order(world: World, query: str) -> None:
    world.run("CREATE TABLE t (x INTEGER)", "INSERT INTO t VALUES (1), (2)")
    world.create("mv", query)
    world.change("mv", "INSERT INTO t VALUES (3)")


@pytest.mark.parametrize("setting", ["default_null_order = 'nulls_first'", "default_order = 'desc'"])
def test_settings_of_order(world: World, setting: str) -> None:
    """Where the query does not say where NULL goes, the session does; where it does, the session has no say."""
    world.run("CREATE TABLE t (x INTEGER)", "INSERT INTO t VALUES (1), (2), (NULL)")
    world.create("mv", "SELECT x FROM t ORDER BY x LIMIT 2")
    world.create("said", "SELECT x, row_number() OVER (ORDER BY x ASC NULLS LAST) AS n FROM t")
    world.run(f"SET {setting}", "INSERT INTO t VALUES (3)")
    world.refresh("mv")
    world.refresh("said")
    world.change("mv", "INSERT INTO t VALUES (4), (NULL)")
    world.change("said", "DELETE FROM t WHERE x = 2")


@pytest.mark.parametrize("call", ["random()", "uuid()", "nextval('s')", "now()", "current_timestamp"])
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

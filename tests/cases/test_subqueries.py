"""Cases 18 to 22: HAVING, CTEs and subqueries."""

from __future__ import annotations

from datetime import date

import pytest

from tests.helpers import World, has_triggers


def test_case_18_having_inside_a_cte(world: World) -> None:
    """In one batch a group falls below the threshold, one rises above it, and a new one starts above it."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "CREATE TABLE u (g INTEGER, name VARCHAR)")
    world.run(
        "INSERT INTO t VALUES (1, 100), (2, 1), (4, 100)", "INSERT INTO u VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')"
    )
    world.create(
        "mv",
        "WITH big AS (SELECT g, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) > 50) "
        "SELECT u.name, big.s FROM big JOIN u ON u.g = big.g",
    )
    world.assert_rows("mv", ("a", 100), ("d", 100))
    result = world.change("mv", "UPDATE t SET x = 2 WHERE g = 1", "INSERT INTO t VALUES (2, 60), (3, 70)")
    assert result.strategy == "incremental"
    world.assert_rows("mv", ("b", 61), ("c", 70), ("d", 100))
    world.change("mv", "UPDATE u SET name = 'z' WHERE g = 3", "DELETE FROM t WHERE g = 2 AND x = 60")
    world.assert_rows("mv", ("d", 100), ("z", 70))


def test_case_19_groups_cross_a_having_both_ways(world: World) -> None:
    """HAVING over AVG and COUNT: groups come and go over several refreshes, and their old sums are not forgotten."""
    world.run(
        "CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 95), (1, 99), (2, 100), (3, 10), (3, 20)"
    )
    sql = "SELECT g, AVG(x) AS a, COUNT(x) AS n FROM t GROUP BY g HAVING AVG(x) > 90 AND COUNT(x) > 1"
    world.create("mv", sql, "AGGREGATE_HAVING")
    world.assert_rows("mv", (1, 97.0, 2))
    world.change("mv", "INSERT INTO t VALUES (1, 0), (2, 98)")
    world.assert_rows("mv", (2, 99.0, 2))
    world.change("mv", "DELETE FROM t WHERE x = 0", "DELETE FROM t WHERE x = 100")
    world.assert_rows("mv", (1, 97.0, 2))
    world.change("mv", "UPDATE t SET x = x + 100 WHERE g = 3", "INSERT INTO t VALUES (2, 98)")
    world.assert_rows("mv", (1, 97.0, 2), (2, 98.0, 2), (3, 115.0, 2))
    world.change("mv", "DELETE FROM t")
    world.assert_rows("mv")


def test_case_20_a_cte_used_twice(world: World) -> None:
    """A new row pairs with the old rows in both directions, and with itself."""
    world.run("CREATE TABLE t (k INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 10)")
    world.create(
        "mv",
        "WITH c AS (SELECT k, x FROM t WHERE x > 0) "
        "SELECT l.x AS a, r.x AS b FROM c AS l JOIN c AS r ON l.k = r.k AND l.x <> r.x",
    )
    world.change("mv", "INSERT INTO t VALUES (1, 20)")
    world.assert_rows("mv", (10, 20), (20, 10))
    world.change("mv", "INSERT INTO t VALUES (1, 30), (1, 10)", "DELETE FROM t WHERE x = 20")
    world.assert_rows("mv", (10, 30), (10, 30), (30, 10), (30, 10))


def test_case_20_a_grouped_cte_used_twice(world: World) -> None:
    """The same with groups: both uses change in one batch."""
    world.run("CREATE TABLE t (k INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 10), (2, 10), (3, 5)")
    world.create(
        "mv",
        "WITH c AS (SELECT k, SUM(x) AS s FROM t GROUP BY k) "
        "SELECT l.k AS a, r.k AS b, l.s FROM c AS l JOIN c AS r ON l.s = r.s AND l.k < r.k",
    )
    world.assert_rows("mv", (1, 2, 10))
    world.change("mv", "INSERT INTO t VALUES (3, 5), (4, 10), (1, 1)")
    world.assert_rows("mv", (2, 3, 10), (2, 4, 10), (3, 4, 10))


def test_case_21_not_in_and_null(world: World) -> None:
    """A NULL in the list empties the view; it goes, the rows return; an empty list keeps all rows, even x NULL."""
    world.run("CREATE TABLE t (x INTEGER)", "CREATE TABLE u (y INTEGER)", "INSERT INTO t VALUES (1), (2), (NULL)")
    world.run("INSERT INTO u VALUES (2)")
    world.create("mv", "SELECT x FROM t WHERE x NOT IN (SELECT y FROM u)")
    world.assert_rows("mv", (1,))
    world.change("mv", "INSERT INTO u VALUES (NULL)")
    world.assert_rows("mv")
    world.change("mv", "DELETE FROM u WHERE y IS NULL")
    world.assert_rows("mv", (1,))
    world.change("mv", "DELETE FROM u")
    world.assert_rows("mv", (1,), (2,), (None,))


def test_case_22_a_scalar_subquery_over_nothing(world: World) -> None:
    """x > (SELECT SUM(y)): when u is emptied the comparison is NULL and the view is empty."""
    world.run("CREATE TABLE t (x INTEGER)", "CREATE TABLE u (y INTEGER)", "INSERT INTO t VALUES (1), (20)")
    world.run("INSERT INTO u VALUES (2), (3)")
    world.create("mv", "SELECT x FROM t WHERE x > (SELECT SUM(y) FROM u)")
    world.assert_rows("mv", (20,))
    world.change("mv", "DELETE FROM u")
    world.assert_rows("mv")
    world.change("mv", "INSERT INTO u VALUES (0)")
    world.assert_rows("mv", (1,), (20,))


def test_the_type_of_a_scalar_subquery_over_nothing(world: World) -> None:
    """COALESCE(NULL, 1) is an INTEGER, but of a SMALLINT's maximum it is a SMALLINT (the fuzzer's seed 42019)."""
    world.run("CREATE TABLE t (k BOOLEAN, g SMALLINT)", "INSERT INTO t VALUES (true, 5), (false, 6), (NULL, 7)")
    world.create("mv", "SELECT a.g, (SELECT coalesce(max(b.g), 1) FROM t AS b WHERE a.k) AS top FROM t AS a")
    world.change("mv", "DELETE FROM t WHERE g = 7", "INSERT INTO t VALUES (false, 9)")
    world.assert_rows("mv", (5, 9), (6, 1), (9, 1))


TWO_TABLES = (
    "CREATE TABLE t (k INTEGER, x INTEGER)",
    "CREATE TABLE u (k INTEGER, y INTEGER)",
    "INSERT INTO t VALUES (1, 2), (1, 2), (2, 3), (NULL, 4), (3, NULL)",
    "INSERT INTO u VALUES (1, 1), (2, 3)",
)
GROUPED_BY = {
    "position": "SELECT (SELECT count(*) FROM u WHERE u.k = t.k) AS n, sum(x) AS s FROM t GROUP BY 1",
    "alias": "SELECT x IN (SELECT y FROM u) AS f, list(k ORDER BY k) AS l FROM t GROUP BY f",
    "all": "SELECT EXISTS (FROM u WHERE u.k = t.k) AS e, x NOT IN (SELECT y FROM u) AS f, count(*) AS n "
    "FROM t GROUP BY ALL",
    "repeated": "SELECT count(*) AS n, (SELECT max(y) FROM u WHERE u.k = t.k) AS m FROM t "
    "GROUP BY (SELECT max(y) FROM u WHERE u.k = t.k) HAVING sum(x) > (SELECT min(y) FROM u) ORDER BY m LIMIT 2",
    "within": "SELECT CASE WHEN EXISTS (FROM u WHERE u.k = t.k) THEN t.x ELSE 0 END AS q, count(*) AS n "
    "FROM t GROUP BY 1",
    "having": "SELECT (SELECT max(y) FROM u WHERE u.k = t.k) AS m, count(*) AS n FROM t GROUP BY m HAVING m > 1",
    "sets": "SELECT coalesce((SELECT max(y) FROM u WHERE u.k = t.k), 0) + 1 AS m, k, sum(x) AS s "
    "FROM t GROUP BY CUBE (1, k)",
    "window": "SELECT (SELECT max(y) FROM u WHERE u.k = t.k) AS m, rank() OVER (ORDER BY m) AS r FROM t GROUP BY 1",
    "two pairs of parentheses": "SELECT ((SELECT max(y) FROM u WHERE u.k = t.k)) AS m, sum(x) AS s FROM t "
    "GROUP BY (((SELECT max(y) FROM u WHERE u.k = t.k)))",
    "part of an item, and in having": "SELECT (SELECT max(y) FROM u WHERE u.k = t.k) + x AS m, count(*) AS n FROM t "
    "GROUP BY (select MAX(y) from U where u.K = T.k), t.x HAVING (SELECT max(y) FROM u WHERE u.k = t.k) < 5",
    "an order and a limit": "SELECT count(*) AS n, x IN (SELECT y FROM u) AS f FROM t "
    "GROUP BY t.x IN (SELECT y FROM u), x ORDER BY NOT (x IN (SELECT y FROM u)), x DESC LIMIT 3",
    "grouping()": "SELECT grouping((SELECT max(y) FROM u WHERE u.k = t.k), m) AS g, k, "
    "EXISTS (FROM u WHERE u.y = t.x) AS m FROM t GROUP BY CUBE ((SELECT max(y) FROM u WHERE u.k = t.k), k), m",
    "alias of a column": "SELECT (SELECT max(y) FROM u WHERE u.k = t.k) AS k, count(*) AS n FROM t GROUP BY 1",
}


@pytest.mark.parametrize("sql", GROUPED_BY.values(), ids=GROUPED_BY.keys())
def test_grouped_by_a_subquery(world: World, sql: str) -> None:
    world.run(*TWO_TABLES)
    world.create("mv", sql)
    world.change("mv", "INSERT INTO u VALUES (2, 9), (NULL, 4), (3, NULL)", "INSERT INTO t VALUES (2, 1)")
    world.change("mv", "UPDATE u SET k = 3 WHERE k = 1", "DELETE FROM t WHERE x = 3")
    world.change("mv", "DELETE FROM u")
    world.change("mv", "DELETE FROM t", "INSERT INTO u VALUES (1, 5), (1, 6)")
    world.change("mv", "INSERT INTO t VALUES (1, 7), (NULL, NULL), (1, 6)")


ARRAYS = {
    "ordered": "SELECT k, ARRAY(SELECT y FROM u ORDER BY u.k, y DESC NULLS FIRST) AS a FROM t",
    "correlated": "SELECT k, ARRAY(SELECT y FROM u WHERE u.k = t.k ORDER BY y DESC) FROM t",
    "correlated and limited": "SELECT x, ARRAY(SELECT y FROM u WHERE u.k <= t.k ORDER BY u.k DESC, y LIMIT 2) a FROM t",
    "offset": "SELECT ARRAY(SELECT y FROM u ORDER BY 1 OFFSET 1) AS a",
    "distinct": "SELECT ARRAY(SELECT DISTINCT x FROM t ORDER BY x) AS a",
    "distinct on": "SELECT ARRAY(SELECT DISTINCT ON (k) x FROM t ORDER BY x DESC) AS a",
    "two pairs of parentheses": "SELECT ARRAY((SELECT x FROM t ORDER BY k, x)) AS a",
    "union": "SELECT ARRAY((SELECT x FROM t) UNION (SELECT y FROM u) ORDER BY 1) AS a",
    "grouped": "SELECT ARRAY(SELECT count(*) FROM t GROUP BY k ORDER BY k) AS a, [(SELECT max(x) FROM t)] AS b",
    "an alias that is a column too": "SELECT ARRAY(SELECT x AS k FROM t ORDER BY k NULLS FIRST, x) AS a",
    "an alias within": "SELECT ARRAY(SELECT x AS z FROM t ORDER BY -z) AS a",
    "a condition": "SELECT k FROM t WHERE ARRAY(SELECT y FROM u WHERE u.k = t.k ORDER BY y) IN ([1], [])",
    "values": "SELECT ARRAY(VALUES (1)) AS a, k FROM t",
    "nested": "SELECT ARRAY(SELECT {'l': ARRAY(SELECT y FROM u WHERE u.k = t.k ORDER BY 1)} FROM t ORDER BY k, x) AS a",
    "grouped by": "SELECT ARRAY(SELECT y FROM u WHERE u.k = t.k ORDER BY y) AS a, count(*) AS n FROM t GROUP BY a",
}


@pytest.mark.parametrize("sql", ARRAYS.values(), ids=ARRAYS.keys())
def test_an_array_of_a_query(world: World, sql: str) -> None:
    """DuckDB orders by a column of FROM where the value's alias is one too; nothing is an empty list, never NULL."""
    world.run(*TWO_TABLES)
    world.create("mv", sql)
    world.change("mv", "INSERT INTO u VALUES (1, 9), (NULL, 4), (3, NULL)", "INSERT INTO t VALUES (4, 1)")
    world.change("mv", "UPDATE u SET y = 0 WHERE k = 1 AND y = 9", "DELETE FROM t WHERE x = 3")
    world.change("mv", "DELETE FROM u")
    world.change("mv", "DELETE FROM t", "INSERT INTO u VALUES (1, 5), (1, 6)")
    world.change("mv", "INSERT INTO t VALUES (1, 7), (NULL, NULL), (1, 6)")


CONDITIONS = {
    "where": "SELECT k, x FROM t WHERE (SELECT bool_or(y > x) FROM u WHERE u.k = t.k)",
    "not": "SELECT k, x FROM t WHERE NOT (SELECT bool_or(y > x) FROM u WHERE u.k = t.k)",
    "and": "SELECT k, x FROM t WHERE ((SELECT count(*) > 1 FROM u)) AND (SELECT min(y) FROM u WHERE u.k = t.k) > 0",
    "on": "SELECT t.k, y FROM t JOIN u ON t.k = u.k AND (SELECT count(*) > 3 FROM t)",
    "distinct on": "SELECT DISTINCT ON ((SELECT max(y) FROM u WHERE u.k = t.k)) k, x FROM t ORDER BY ALL",
}


@pytest.mark.parametrize("sql", CONDITIONS.values(), ids=CONDITIONS.keys())
def test_a_subquery_that_is_the_whole_condition(world: World, sql: str) -> None:
    world.run(*TWO_TABLES)
    world.run("UPDATE u SET y = 5 WHERE k = 2")
    world.create("mv", sql)
    world.change("mv", "INSERT INTO u VALUES (1, 9), (NULL, 4), (3, NULL)")
    world.change("mv", "UPDATE u SET y = 0 WHERE k = 1", "DELETE FROM t WHERE x = 3")
    world.change("mv", "DELETE FROM u")
    world.change("mv", "DELETE FROM t WHERE k = 1", "INSERT INTO u VALUES (3, 5), (3, 6), (2, 0)")
    world.change("mv", "INSERT INTO t VALUES (2, 1), (2, -1)")


IN_ON = {
    "of the left": "SELECT * FROM t LEFT JOIN u ON t.k = u.k AND EXISTS (FROM u AS w WHERE w.y < t.x)",
    "right, of both": "SELECT * FROM t RIGHT JOIN u ON EXISTS (FROM u AS w WHERE w.k = t.k AND w.y < u.y)",
    "of both": "SELECT * FROM t LEFT JOIN u ON t.k <= u.k AND EXISTS (FROM u AS w WHERE w.k = t.k AND w.y < u.y)",
    "within": "SELECT * FROM t LEFT JOIN u ON CASE WHEN t.x > 2 THEN (SELECT max(y) FROM u) > t.x ELSE t.k = u.k END",
    "asof": "SELECT * FROM t ASOF JOIN u ON t.k = u.k AND t.x >= u.y AND NOT EXISTS (FROM t v WHERE v.x = u.y)",
    "full, of both": "SELECT * FROM t FULL JOIN u ON t.k <= u.k AND EXISTS (FROM u w WHERE w.k = t.k AND w.y <= u.y)",
    "anti": "SELECT * FROM t ANTI JOIN u ON t.k = u.k AND t.x IN (SELECT y + 1 FROM u)",
    "anti, of both": "SELECT * FROM t ANTI JOIN u ON t.k = u.k AND EXISTS (FROM u w WHERE w.k = t.k AND w.y < u.y)",
    "before a full join": "SELECT * FROM t JOIN u ON t.k = u.k AND EXISTS (FROM u w WHERE w.y < u.y) "
    "FULL JOIN u AS v ON v.k = t.k",
    "below": "SELECT * FROM t LEFT JOIN (u JOIN u AS v ON u.k = v.k AND u.y IN (SELECT x FROM t)) ON u.k = t.k",
    "in a row": "SELECT t.k, count(u.y) AS n, sum(v.y) AS s FROM t LEFT JOIN u ON t.k = u.k AND EXISTS "
    "(FROM u w WHERE w.y < t.x) LEFT JOIN u AS v ON v.k = t.k AND v.y > ALL (SELECT u.y) GROUP BY t.k",
    "correlated": "SELECT k, (SELECT count(v.y) FROM u LEFT JOIN u AS v ON u.k <= v.k AND EXISTS "
    "(FROM t AS w WHERE w.k = v.k AND w.x <= t.x) WHERE u.k = t.k) AS n FROM t",
}


@pytest.mark.skipif(not has_triggers(), reason="DuckDB 1 does not run most queries with a subquery in ON")
@pytest.mark.parametrize("sql", IN_ON.values(), ids=IN_ON.keys())
def test_a_subquery_in_on(world: World, sql: str) -> None:
    world.run(*TWO_TABLES)
    world.create("mv", sql)
    world.change("mv", "INSERT INTO u VALUES (1, 9), (NULL, 4), (3, NULL), (2, 9)", "INSERT INTO t VALUES (2, 1)")
    world.change(
        "mv", "UPDATE u SET y = 0 WHERE y = 9 AND k = 1", "DELETE FROM t WHERE x = 3", "UPDATE t SET x = x + 1"
    )
    world.change("mv", "DELETE FROM u WHERE k < 3", "INSERT INTO t VALUES (2, -1), (3, 6)", "DELETE FROM t WHERE k = 1")


OUTER_CALLS = {
    "without a group": "SELECT (SELECT max(y) FROM u WHERE u.k <= count(t.x)) AS m FROM t",
    "beside one of its own": "SELECT k, (SELECT max(y) + sum(t.x) FROM u WHERE u.k = t.k) AS m FROM t GROUP BY k",
    "as the value": "SELECT (SELECT sum(t.x)) AS s, (SELECT count(*) FROM u) AS n FROM t",
    "in having": "SELECT k FROM t GROUP BY k HAVING EXISTS (FROM u WHERE u.y = min(t.x) FILTER (t.x > 1)) "
    "OR sum(x) IN (SELECT y FROM u WHERE y > max(t.x))",
    "in on": "SELECT t.k, (SELECT count(*) FROM t AS b LEFT JOIN u ON b.k = u.k AND u.y <= sum(t.x) "
    "WHERE b.x <= min(t.x)) AS n FROM t GROUP BY t.k",
    "by a macro": "SELECT (SELECT total(t.x) + count(*) FROM u) AS s FROM t",
    "two queries away": "SELECT k, (SELECT (SELECT max(y) FROM u AS v WHERE v.y < sum(t.x) + u.y) FROM u "
    "ORDER BY y LIMIT 1) AS m FROM t GROUP BY k ORDER BY k DESC LIMIT 2",
}


@pytest.mark.parametrize("sql", OUTER_CALLS.values(), ids=OUTER_CALLS.keys())
def test_an_aggregate_of_the_query_around(world: World, sql: str) -> None:
    """An aggregate call of columns of the query around only is computed over its groups."""
    world.run(*TWO_TABLES, "CREATE MACRO total(a) AS coalesce(sum(a), 0)")
    world.create("mv", sql)
    world.change("mv", "INSERT INTO u VALUES (1, 9), (NULL, 4), (3, NULL)", "INSERT INTO t VALUES (2, 1)")
    world.change("mv", "UPDATE u SET y = 0 WHERE k = 1", "DELETE FROM t WHERE x = 3")
    world.change("mv", "DELETE FROM t", "INSERT INTO u VALUES (1, 5), (1, 6)")


def test_a_scalar_subquery_that_may_have_several_rows(world: World) -> None:
    """DuckDB takes any of them where it is told to; told otherwise, it is the same error again."""
    world.run(*TWO_TABLES, "SET scalar_subquery_error_on_multiple_rows = false")
    sql = "SELECT k, (SELECT y FROM u WHERE u.k = t.k) AS y, (SELECT k FROM u WHERE y = 3) AS z FROM t WHERE x = 2"
    assert world.ivm.create_view("mv", sql).refresh_type != "FULL_REFRESH"
    world.run("INSERT INTO u VALUES (1, 9), (7, 3), (1, 9)", "DELETE FROM t WHERE rowid = 0")
    world.ivm.refresh("mv")
    [(k, y, z)] = world.rows("mv")
    assert (k, y in (1, 9), z in (2, 7)) == (1, True, True)
    world.run("DELETE FROM u WHERE y = 1", "DELETE FROM u WHERE k = 2")
    world.ivm.refresh("mv")
    world.assert_rows("mv", (1, 9, 7))
    world.run("SET scalar_subquery_error_on_multiple_rows = true")
    with pytest.raises(Exception, match="More than one row returned by a subquery"):
        world.ivm.refresh("mv")
    world.run("UPDATE u SET k = 8 WHERE k = 1 AND rowid = (SELECT max(rowid) FROM u)")
    world.queries["mv"] = sql
    world.refresh("mv")


def test_outer_values_that_are_equal_but_not_the_same(world: World) -> None:
    """'a' equals 'A' by the column's collation, 30 days equal 1 month: a subquery can tell them apart all the same.

    DuckDB itself evaluates a correlated subquery once for equal intervals, with whichever comes first.
    """
    world.run(
        "CREATE TABLE t (s VARCHAR COLLATE NOCASE, i INTERVAL)",
        "CREATE TABLE u (s VARCHAR COLLATE NOCASE, k INTEGER)",
        "INSERT INTO t VALUES ('a', INTERVAL '1 month'), ('A', INTERVAL '30 days'), ('b', NULL)",
        "INSERT INTO u VALUES ('A', 0), ('a', 0), ('B', 0)",
    )
    bytes_ = "(SELECT count(*) FROM u WHERE u.s = t.s AND encode(u.s) = encode(t.s))"
    world.create("mv", f"SELECT encode(s) AS s, {bytes_} AS n, (SELECT count(*) FROM u WHERE u.s = t.s) AS m FROM t")
    world.assert_rows("mv", (b"A", 1, 2), (b"a", 1, 2), (b"b", 0, 1))
    world.ivm.create_view(
        "days", "SELECT s, (SELECT max(DATE '2024-01-31' + t.i + to_days(u.k))::DATE FROM u) AS d FROM t"
    )
    world.run("INSERT INTO u VALUES ('b', 1), ('b', NULL)", "DELETE FROM u WHERE encode(s) = 'A'::BLOB")
    world.refresh("mv")
    world.assert_rows("mv", (b"A", 0, 1), (b"a", 1, 1), (b"b", 2, 3))
    world.ivm.refresh("days")
    world.assert_rows("days", ("A", date(2024, 3, 2)), ("a", date(2024, 3, 1)), ("b", None))

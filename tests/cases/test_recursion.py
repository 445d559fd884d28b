"""Recursive CTEs: rows that follow from others, by ways that come and go."""

from __future__ import annotations

import pytest

from dbt_openivm.compiler import recursion
from tests.helpers import World

REACHED = "WITH RECURSIVE r(x) AS (SELECT a FROM s UNION SELECT e.b FROM r JOIN e ON r.x = e.a) "
CLOSURE = "WITH RECURSIVE r AS (SELECT a, b FROM e UNION SELECT r.a, e.b FROM r JOIN e ON r.b = e.a) SELECT * FROM r"

QUERIES = {
    "reachable": REACHED + "SELECT x FROM r",
    "closure": CLOSURE,
    "renamed and in another order": CLOSURE.replace("SELECT * FROM r", "SELECT b AS target, a AS source FROM r"),
    "filtered above": REACHED + "SELECT x + 1 AS y FROM r WHERE x > 1",
    "grouped above": "WITH RECURSIVE r(x, n) AS (SELECT a, 0 FROM s UNION SELECT e.b, n + 1 FROM r JOIN e ON r.x = e.a "
    "WHERE n < 4) SELECT x, min(n) AS d FROM r GROUP BY x",
    "used twice": REACHED + "SELECT p.x, q.x AS y FROM r AS p JOIN r AS q ON p.x < q.x",
    "one of another": REACHED.rstrip()
    + ", q(y) AS (SELECT x FROM r WHERE x < 4 UNION SELECT e.a FROM q JOIN e ON q.y = e.b) SELECT y FROM q",
    "in subqueries": "WITH RECURSIVE r(x) AS (SELECT a FROM s UNION SELECT e.b FROM r JOIN e ON r.x = e.a) "
    "SELECT a, b FROM e WHERE a IN (SELECT x FROM r) AND b NOT IN (SELECT x FROM r WHERE x IS NOT NULL)",
    "anti join": "WITH RECURSIVE r(x) AS (SELECT a FROM s UNION SELECT e.b FROM r JOIN e ON r.x = e.a "
    "WHERE NOT EXISTS (SELECT 1 FROM s AS t WHERE t.a = e.b AND t.w > 3)) SELECT x FROM r",
    "outer join": "WITH RECURSIVE r(x) AS (SELECT a FROM s UNION SELECT coalesce(e.b, -1) FROM r "
    "LEFT JOIN e ON r.x = e.a WHERE r.x >= 0) SELECT x FROM r",
    "groups": "WITH RECURSIVE g AS (SELECT a, count(*) AS n, max(b) AS m FROM e GROUP BY a), "
    "r(x) AS (SELECT a FROM g WHERE n > 1 UNION SELECT g.m FROM r JOIN g ON r.x = g.a) SELECT x FROM r",
    "several steps": "WITH RECURSIVE r(x) AS (SELECT a FROM s UNION (SELECT e.b FROM r JOIN e ON r.x = e.a UNION ALL "
    "SELECT e.a FROM r JOIN e ON r.x = e.b WHERE e.b > 2)) SELECT x FROM r",
    "up to a count": "WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT x + 1 FROM r WHERE x < (SELECT count(*) FROM s)) "
    "SELECT x FROM r",
    "lists": "WITH RECURSIVE r(x) AS (SELECT a FROM s UNION SELECT unnest([e.b, e.b + 1]) FROM r JOIN e ON r.x = e.a "
    "WHERE e.b < 4) SELECT x FROM r",
    "constants": "WITH RECURSIVE r(x) AS (SELECT 1 UNION SELECT x + 1 FROM r WHERE x < 5) "
    "SELECT r.x, s.w FROM r LEFT JOIN s ON s.a = r.x",
}

RECOMPUTED = {
    "union all": "WITH RECURSIVE r(x, n) AS (SELECT a, 0 FROM s UNION ALL SELECT e.b, n + 1 FROM r JOIN e ON r.x = e.a "
    "WHERE n < 3) SELECT x, n FROM r",
    "union all, grouped": "WITH RECURSIVE r(x, n) AS (SELECT a, 0 FROM s UNION ALL SELECT e.b, n + 1 FROM r "
    "JOIN e ON r.x = e.a WHERE n < 3) SELECT x, count(*) AS c FROM r GROUP BY x",
    "itself twice": "WITH RECURSIVE r AS (SELECT a, b FROM e UNION SELECT p.a, q.b FROM r AS p "
    "JOIN r AS q ON p.b = q.a) SELECT a, b FROM r",
    "aggregate of a round": "WITH RECURSIVE r(x) AS (SELECT a FROM s UNION SELECT max(b) FROM r JOIN e ON r.x = e.a) "
    "SELECT x FROM r",
    "using key": "WITH RECURSIVE r(x, y) USING KEY (x) AS (SELECT a, max(w) FROM s GROUP BY a "
    "UNION SELECT r.x, r.y + 1 FROM r WHERE r.y < 7) SELECT x, y FROM r",
}

CHANGES = [
    ["INSERT INTO e VALUES (5, 6), (6, 2)"],
    ["DELETE FROM e WHERE a = 2 AND b = 3"],
    ["INSERT INTO s VALUES (7, 5), (NULL, 1)", "INSERT INTO e VALUES (7, 8), (8, 7), (NULL, 4)"],
    ["UPDATE e SET b = 1 WHERE a = 3"],
    ["DELETE FROM s WHERE a = 1", "INSERT INTO e VALUES (2, 3)"],
    ["INSERT INTO s VALUES (2, 9)", "DELETE FROM e WHERE b = 2"],
    ["DELETE FROM s"],
    ["DELETE FROM e", "INSERT INTO e VALUES (1, 2)", "INSERT INTO s VALUES (1, 0)"],
]


@pytest.fixture
def graph(world: World) -> World:
    """A loop 1 - 2 - 3 with a way out, and starting points."""
    world.run(
        "CREATE TABLE e (a INTEGER, b INTEGER)",
        "CREATE TABLE s (a INTEGER, w INTEGER)",
        "INSERT INTO e VALUES (1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (1, 2)",
        "INSERT INTO s VALUES (1, 1), (4, 5)",
    )
    return world


@pytest.mark.parametrize("share", [0, recursion.SHARE], ids=["search", "choose"])
@pytest.mark.parametrize("name", QUERIES)
def test_what_follows_comes_and_goes(graph: World, name: str, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursion, "SHARE", share)
    graph.create("mv", QUERIES[name])
    graph.ivm.create_view("child", "SELECT * FROM mv")
    graph.queries["child"] = QUERIES[name]
    for statements in CHANGES:
        graph.run(*statements)
        assert graph.refresh("mv").strategy in ("incremental", "none")
        assert graph.refresh("child").strategy in ("incremental", "none")


@pytest.mark.parametrize("name", RECOMPUTED)
def test_a_node_without_a_rule_is_recomputed_and_hands_on_its_difference(graph: World, name: str) -> None:
    graph.create("mv", RECOMPUTED[name])
    graph.ivm.create_view("child", "SELECT * FROM mv")
    graph.queries["child"] = RECOMPUTED[name]
    for statements in CHANGES:
        graph.change("mv", *statements)
        assert graph.refresh("child").strategy in ("incremental", "none")


def test_the_kind_of_maintenance(graph: World) -> None:
    graph.create("closure", CLOSURE, "RECURSIVE")
    graph.create("paths", RECOMPUTED["union all"], "RECURSIVE_RECOMPUTE")
    graph.create("counted", RECOMPUTED["union all, grouped"], "AGGREGATE_GROUP")


def test_a_row_that_only_follows_from_itself_goes(graph: World) -> None:
    """The loop holds itself up: without its entry, counting ways would keep it for ever."""
    graph.create("mv", QUERIES["reachable"], "RECURSIVE")
    graph.assert_rows("mv", (1,), (2,), (3,), (4,), (5,))
    graph.change("mv", "DELETE FROM s WHERE a = 1")
    graph.assert_rows("mv", (4,), (5,))


def test_a_row_with_another_way_stays(graph: World) -> None:
    graph.create("mv", QUERIES["reachable"], "RECURSIVE")
    graph.run("INSERT INTO e VALUES (5, 2)", "DELETE FROM s WHERE a = 1")
    graph.refresh("mv")
    graph.assert_rows("mv", (1,), (2,), (3,), (4,), (5,))


def test_the_change_is_net(graph: World) -> None:
    """What was taken out and came back is not handed on."""
    graph.create("mv", CLOSURE, "RECURSIVE")
    graph.create("child", "SELECT count(*) AS n FROM mv")
    graph.run("INSERT INTO e VALUES (2, 6), (6, 3)")
    graph.refresh("mv")
    graph.queries["child"] = f"SELECT count(*) AS n FROM ({CLOSURE})"
    graph.refresh("child")
    graph.run("DELETE FROM e WHERE a = 2 AND b = 3")
    graph.refresh("mv")
    assert graph.ivm.refresh("child").delta_rows == 0


def test_a_recursive_cte_over_the_clock(world: World) -> None:
    world.run("CREATE TABLE e (a INTEGER, b INTEGER, until TIMESTAMPTZ)")
    world.run("INSERT INTO e VALUES (1, 2, now() + INTERVAL 1 HOUR), (2, 3, now() - INTERVAL 1 HOUR)")
    step = "SELECT b FROM r JOIN e ON r.x = e.a AND e.until > now()"
    query = f"WITH RECURSIVE r(x) AS (SELECT 1 UNION {step}) SELECT x FROM r"
    world.create("mv", query, "RECURSIVE")
    world.assert_rows("mv", (1,), (2,))
    world.change("mv", "UPDATE e SET until = now() + INTERVAL 1 HOUR")
    world.assert_rows("mv", (1,), (2,), (3,))


STEP = "(SELECT e.b FROM r JOIN e ON r.x = e.a"
CORRELATED = {
    "start": f"SELECT a, (WITH RECURSIVE r(x) AS (SELECT s.a UNION {STEP})) SELECT count(*) FROM r) AS n FROM s",
    "step": f"SELECT a FROM s WHERE EXISTS (WITH RECURSIVE r(x) AS (SELECT 1 UNION {STEP} AND e.b <= s.w + 3)) "
    "SELECT 1 FROM r WHERE x > s.w)",
    "a subquery in the step": "SELECT a, (WITH RECURSIVE r(x, n) AS (SELECT s.a, 0 UNION ALL SELECT (SELECT max(e.b) "
    "FROM e WHERE e.a = r.x AND e.b <> s.w), n + 1 FROM r WHERE n < 4) SELECT list(x ORDER BY n) FROM r) AS l FROM s",
    "lateral": f"SELECT s.a, l.x FROM s LEFT JOIN LATERAL (WITH RECURSIVE r(x) AS (SELECT s.w UNION {STEP})) "
    "SELECT x FROM r WHERE x > s.a) AS l ON true",
    "a part that reads no rows of the last round": "SELECT a, (WITH RECURSIVE r(x) AS (SELECT a FROM e UNION "
    f"({STEP}) UNION ALL SELECT s.a FROM r WHERE r.x > s.w)) SELECT count(*) FROM r) AS n FROM s",
    "using key": "SELECT a, (WITH RECURSIVE r(x, y) USING KEY (x) AS (SELECT s.a, 1 UNION SELECT r.x, r.y + 1 FROM r "
    "WHERE r.y < s.w) SELECT max(y) FROM r) AS n FROM s",
}


@pytest.mark.parametrize("name", CORRELATED)
def test_what_refers_to_the_query_around_it(graph: World, name: str) -> None:
    """One recursion for each of the values that the rows around have, side by side."""
    graph.create("mv", CORRELATED[name])
    for statements in CHANGES[2:6]:
        graph.change("mv", *statements)


def test_a_row_around_takes_part_as_long_as_it_has_new_rows(graph: World) -> None:
    """DuckDB goes on aggregating for 1, whose loop is closed, as long as 4 has new rows; alone, 1 has no NULL."""
    inner = "WITH RECURSIVE r(x) AS (SELECT s.a UNION SELECT max(e.b) FROM r JOIN e ON r.x = e.a) SELECT list(x) FROM r"
    graph.ivm.create_view("mv", f"SELECT a, list_sort(({inner})) AS l FROM s")
    graph.run("INSERT INTO e VALUES (5, 6), (6, 2)")
    graph.ivm.refresh("mv")
    graph.assert_rows("mv", (1, [1, 2, 3, 4, 5, 6]), (4, [2, 3, 4, 5, 6]))

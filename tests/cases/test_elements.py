"""UNNEST, table functions, PIVOT and UNPIVOT, COLUMNS, nested values, ASOF joins: each through changes that hurt it."""

from __future__ import annotations

import pytest

from tests.helpers import FULL, World

TABLE = (
    "CREATE TABLE t (id INTEGER, g INTEGER, l INTEGER[], m INTEGER[], s STRUCT(a INTEGER, b VARCHAR), "
    "e STRUCT(a INTEGER, b INTEGER[])[], p MAP(VARCHAR, INTEGER), r INTEGER[3], ll INTEGER[][], n INTEGER, v VARCHAR)"
)
FIRST = (
    "(1, 1, [1, 2, 3], [7], {'a': 1, 'b': 'x'}, [{'a': 1, 'b': [5, 6]}, {'a': 2, 'b': []}], MAP {'k': 1, 'j': 2}, "
    "[1, 2, 3], [[1, 2], [3]], 3, 'ab')"
)
ROWS = (
    FIRST,
    "(2, 1, NULL, [8, 9], NULL, NULL, NULL, NULL, [], NULL, 'b c')",
    "(3, 2, [], [], {'a': NULL, 'b': 'z'}, [NULL, {'a': 7, 'b': NULL}], MAP {}, [4, NULL, 6], NULL, 0, NULL)",
    FIRST,
)
CHANGES = (
    (f"INSERT INTO t VALUES {ROWS[0]}, {ROWS[2]}",),
    ("UPDATE t SET l = [2, NULL], m = NULL WHERE id = 2", "UPDATE t SET s = {'a': 9, 'b': NULL} WHERE id = 3"),
    ("DELETE FROM t WHERE id = 1 AND n = 3", f"INSERT INTO t VALUES {ROWS[1]}", "UPDATE t SET n = 2 WHERE n IS NULL"),
    ("UPDATE t SET e = [{'a': 3, 'b': [1]}], p = MAP {'z': 0}, ll = [[NULL], [4, 5]], v = 'a a'",),
    ("DELETE FROM t",),
    (f"INSERT INTO t VALUES {ROWS[0]}, {ROWS[1]}",),
)

VIEWS = {
    "one list": "SELECT id, unnest(l) AS x FROM t",
    "lists side by side": "SELECT id, unnest(l) AS x, unnest(m) AS y FROM t",
    "within expressions": "SELECT id, unnest(l) + unnest(m) AS x, CASE WHEN n = 3 THEN unnest(l) END AS y FROM t",
    "an alias of an element": "SELECT unnest(l) AS x, x + 1 AS y FROM t",
    "a struct": "SELECT unnest(s), id FROM t",
    "a list of structs": "SELECT unnest(e) AS x FROM t",
    "recursive": "SELECT unnest(e, recursive := true), unnest(ll, recursive := true) AS x, unnest(m) AS y FROM t",
    "max_depth": "SELECT unnest(e, max_depth := 2), id FROM t",
    "parents' names": "SELECT unnest({'q': s}, recursive := true, keep_parent_names := true) FROM t",
    "a map": "SELECT id, unnest(map_entries(p), recursive := true) FROM t",
    "an array": "SELECT id, unnest(r) AS x FROM t",
    "subscripts": "SELECT generate_subscripts(l, 1) AS i, unnest(l) AS x FROM t",
    "words": "SELECT regexp_split_to_table(v, ' ') AS w, id FROM t",
    "grouped by elements": "SELECT unnest(l) AS x, count(*) AS n FROM t GROUP BY x",
    "of groups": "SELECT g, unnest(list(id ORDER BY id)) AS x FROM t GROUP BY g HAVING count(*) > 1",
    "distinct": "SELECT DISTINCT unnest(l) AS x FROM t",
    "beside a window": "SELECT unnest(l) AS x, count(*) OVER (PARTITION BY g) AS c FROM t",
    "lateral": "SELECT id, x FROM t, unnest(t.l) AS u(x) WHERE x > 1",
    "lateral after a join": "SELECT a.id, x FROM t AS a JOIN t AS b USING (id), unnest(b.l) AS u(x)",
    "before an outer join": "SELECT t.id, x, b.n FROM t, unnest(l) AS u(x) LEFT JOIN t AS b ON b.id = x",
    "left lateral": "SELECT id, x FROM t LEFT JOIN unnest(l) AS u(x) ON true",
    "left lateral on a condition": "SELECT id, x FROM t LEFT JOIN unnest(l) AS u(x) ON x > t.id",
    "ordinality": "SELECT id, x, o FROM t, unnest(l) WITH ORDINALITY AS u(x, o)",
    "left ordinality": "SELECT id, x, o FROM t LEFT JOIN unnest(l) WITH ORDINALITY AS u(x, o) ON true",
    "a series over a column": "SELECT id, i FROM t, generate_series(1, n) AS g(i)",
    "a constant series": "SELECT id, i FROM t RIGHT JOIN range(4) AS r(i) ON id = i",
    "a series of a series": "SELECT id, y FROM t, unnest(l) AS u(x), range(x) AS r(y)",
    "in EXISTS": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM unnest(t.l) AS u(x) WHERE x > 2)",
    "in IN": "SELECT id FROM t WHERE 2 IN (SELECT unnest(t.l))",
    "in a scalar subquery": "SELECT id, (SELECT sum(x) FROM unnest(t.l) AS u(x)) AS total FROM t",
    "lateral values": "SELECT id, x FROM t, LATERAL (VALUES (t.n), (t.g)) AS q(x)",
    "pivot": "PIVOT t ON g IN (1, 2) USING sum(n) GROUP BY v",
    "pivot by two": "SELECT * FROM t PIVOT (count(*) AS c, max(n) AS m FOR v IN ('ab', 'b c') g IN (1, 2) GROUP BY id)",
    "pivot by texts": "PIVOT t ON g IN (1.0, 2, NULL) USING count(DISTINCT n) GROUP BY id",
    "joined pivot": "SELECT t.id, q.* FROM t JOIN (PIVOT t ON g IN (1, 2) USING sum(n) GROUP BY id) AS q USING (id)",
    "unpivot": "UNPIVOT (SELECT id, n, g FROM t) ON n, g INTO NAME what VALUE number",
    "unpivot with NULL": "SELECT * FROM (SELECT id, n, g FROM t) UNPIVOT INCLUDE NULLS (x FOR y IN (n, g AS 'group'))",
    "unpivot pairs": "SELECT * FROM (SELECT id, n, g FROM t) UNPIVOT ((x, y) FOR what IN ((n, g), (g, n)))",
    "unpivot columns": "UNPIVOT (SELECT id, n, g FROM t) ON COLUMNS(* EXCLUDE (id))::BIGINT",
    "counted unpivot": "SELECT y, count(x) AS n FROM (SELECT n, g FROM t) UNPIVOT (x FOR y IN (n, g)) GROUP BY y",
    "a pattern": "SELECT COLUMNS('^[gn]$') AS 'c_\\0' FROM t",
    "a lambda over names": "SELECT COLUMNS(lambda c: c IN ('g', 'n')) + 1 FROM t",
    "a star with a pattern": "SELECT * LIKE '_' FROM (SELECT id, n, g FROM t)",
    "unpacked": "SELECT coalesce(*COLUMNS('^[gn]$')) AS x FROM t",
    "columns in WHERE": "SELECT id FROM t WHERE COLUMNS('^[gn]$') > 0",
    "aggregates of columns": "SELECT max(COLUMNS('^[gn]$')), v FROM t GROUP BY v",
    "a struct's star": "SELECT s.* EXCLUDE (b), id FROM t",
    "the whole row": "SELECT t FROM t WHERE n > 1",
    "the whole padded row": "SELECT a.id, b FROM t AS a LEFT JOIN (SELECT id AS k, n FROM t) AS b ON b.k = a.g",
    "grouped whole rows": "SELECT q, count(*) AS c FROM (SELECT g, n FROM t) AS q GROUP BY q",
    "from first": "FROM t SELECT g, count(*) AS c GROUP BY g",
    "from alone": "FROM (SELECT id, n FROM t) WHERE n > 1",
    "positions": "SELECT #1 AS a, #2 + 1 AS b FROM t",
    "methods": "SELECT v.upper().left(1) AS a, s.b.length() AS b, main.abs(n) AS c FROM t",
    "aggregate methods": "SELECT g, n.sum() FILTER (WHERE id > 1) AS total FROM t GROUP BY g",
    "a lambda of groups": "SELECT g, list_transform(list(n ORDER BY n), lambda x: x + g) AS x FROM t GROUP BY g",
    "a comprehension over one": "SELECT g, [x + max(id) FOR x IN list(n ORDER BY n) IF x > 0] AS x FROM t GROUP BY g",
    "struct keys": "SELECT s, count(*) AS c FROM t GROUP BY s",
    "list keys": "SELECT l, sum(n) AS c FROM t GROUP BY ALL",
    "map keys": "SELECT p, min(id) AS c FROM t GROUP BY p",
    "distinct nested values": "SELECT DISTINCT s, ll, e FROM t",
    "joined by a list": "SELECT a.id, b.id AS other FROM t AS a JOIN t AS b USING (l)",
    "outer join by a struct": "SELECT a.id, b.id AS other FROM t AS a LEFT JOIN t AS b ON a.s = b.s",
    "windows by a list": "SELECT id, count(*) OVER (PARTITION BY l) AS c FROM t",
    "collation": "SELECT v COLLATE nocase AS c, count(*) AS n FROM t GROUP BY v COLLATE nocase",
}


@pytest.mark.parametrize("sql", VIEWS.values(), ids=VIEWS.keys())
def test_elements(world: World, sql: str) -> None:
    world.run(TABLE, f"INSERT INTO t VALUES {ROWS[0]}, {ROWS[1]}, {ROWS[2]}, {ROWS[3]}")
    world.create("mv", sql)
    world.create("child", "SELECT * FROM mv")
    for statements in CHANGES:
        world.run(*statements)
        world.refresh("mv")
        world.refresh("child")


ASOF = {
    "inner": "SELECT a.k, a.t, x, y FROM a ASOF JOIN b ON a.k = b.k AND a.t >= b.t",
    "left": "SELECT a.k, a.t, x, b.t AS found FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.t > b.t",
    "using": "SELECT * FROM a ASOF LEFT JOIN b USING (k, t)",
    "without a key": "SELECT x, y FROM a ASOF LEFT JOIN b ON a.t >= b.t * 100 + b.k",
    "NULL keys meet": "SELECT x, y FROM a ASOF JOIN b ON a.k IS NOT DISTINCT FROM b.k AND a.t >= b.t",
    "keys of two types": "SELECT x, y FROM a ASOF JOIN b ON a.k::BIGINT = b.k AND a.t >= b.t",
    "a text and a number": "SELECT x, y FROM a ASOF LEFT JOIN b ON '0' || a.k = b.k AND a.t >= b.t",
    "a filtered right side": "SELECT x, y FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.t >= b.t AND b.y <> 11",
    "counted": "SELECT k, count(y) AS n FROM a ASOF LEFT JOIN b USING (k, t) GROUP BY k",
    "over groups": "SELECT a.t, n FROM a ASOF JOIN (SELECT k, min(t) t, count(*) n FROM b GROUP BY k) q USING (k, t)",
    "of a join": "SELECT a.x, y, q.t FROM a JOIN a AS q ON q.k = a.k + 1 ASOF LEFT JOIN b ON b.k = q.k AND q.t >= b.t",
    "twice": "SELECT x, b.y, c.y z FROM a ASOF LEFT JOIN b USING (k, t) ASOF LEFT JOIN b c ON c.k = a.k AND x > c.t",
    "semi": "SELECT * FROM a ASOF SEMI JOIN b ON a.k = b.k AND a.t >= b.t",
    "anti": "SELECT * FROM a ASOF ANTI JOIN b ON a.k = b.k AND a.t >= b.t",
}


@pytest.mark.parametrize("sql", ASOF.values(), ids=ASOF.keys())
def test_asof_joins(world: World, sql: str) -> None:
    world.run(
        "CREATE TABLE a (k INTEGER, t INTEGER, x INTEGER)",
        "CREATE TABLE b (k INTEGER, t INTEGER, y INTEGER)",
        "INSERT INTO a VALUES (1, 5, 1), (1, 7, 2), (2, 3, 3), (NULL, 4, 4), (3, NULL, 5), (1, 5, 1)",
        "INSERT INTO b VALUES (1, 4, 10), (1, 6, 11), (2, 9, 12), (NULL, 1, 13), (3, 2, 14)",
    )
    world.create("mv", sql)
    world.create("child", "SELECT * FROM mv")
    for statements in (
        ("INSERT INTO b VALUES (1, 5, 15), (2, 1, 16)",),
        ("DELETE FROM b WHERE t = 6", "INSERT INTO a VALUES (2, 2, 6)"),
        ("UPDATE b SET k = 3 WHERE k = 2 AND t = 9", "UPDATE a SET t = 8 WHERE x = 5"),
        ("DELETE FROM a WHERE k = 1 AND t = 5", "INSERT INTO b VALUES (NULL, 3, 17)"),
        ("UPDATE a SET k = NULL WHERE k = 2", "DELETE FROM b WHERE k IS NULL"),
        ("DELETE FROM b",),
        ("INSERT INTO b VALUES (1, 1, 18), (3, 1, 19)", "DELETE FROM a WHERE k IS NULL"),
    ):
        world.run(*statements)
        world.refresh("mv")
        world.refresh("child")


@pytest.mark.parametrize("side", ["RIGHT", "FULL"])
@pytest.mark.parametrize("on", ["ON a.k = b.k AND {}", "ON {}", "USING (k, t)"])
def test_asof_joins_keep_rows_of_the_right_without_any_on_the_left(world: World, side: str, on: str) -> None:
    """DuckDB's own RIGHT and FULL lose such rows, or never end, so that the truth is written in other words."""
    world.run(
        "CREATE TABLE a (k INTEGER, t INTEGER)",
        "CREATE TABLE b (k INTEGER, t INTEGER)",
        "INSERT INTO a SELECT i, 5 FROM range(64) AS r(i)",
        "INSERT INTO b SELECT i % 64, i // 64 * 4 FROM range(192) AS r(i)",
    )
    on = on.format("a.t * 1000 >= b.t * 1000 + b.k")
    met = f"(SELECT a.k AS i, a.t AS x, b.* FROM a ASOF JOIN b {on})"
    alone = f"SELECT NULL, NULL, * FROM b WHERE NOT EXISTS (FROM {met} AS m WHERE m.k = b.k AND m.t = b.t)"
    truth = f"SELECT * FROM {met} UNION ALL {alone}"
    if side == "FULL":
        lone = f"SELECT *, NULL, NULL FROM a WHERE NOT EXISTS (FROM {met} AS m WHERE m.i = a.k AND m.x = a.t)"
        truth = f"{truth} UNION ALL {lone}"
    world.ivm.create_view("mv", f"SELECT a.k AS i, a.t AS x, b.* FROM a ASOF {side} JOIN b {on}")
    world.queries["mv"] = truth
    for statements in (
        ("DELETE FROM a WHERE k IN (3, 4)",),
        ("DELETE FROM b WHERE k < 2", "INSERT INTO b VALUES (4, 3), (3, 9), (99, 1)"),
        ("UPDATE a SET t = t - 2 WHERE k = 7", "INSERT INTO b VALUES (7, 2)"),
        ("DELETE FROM a",),
        ("INSERT INTO a VALUES (5, 4), (8, 4), (6, 1)", "DELETE FROM b WHERE k = 5"),
    ):
        assert world.change("mv", *statements).refresh_type == "ASOF_JOIN"


def test_asof_join_under_a_collation(world: World) -> None:
    """Texts that are equal by a collation are one key, though only one side has it."""
    world.run(
        "CREATE TABLE a (k VARCHAR COLLATE nocase, t INTEGER)",
        "CREATE TABLE b (k VARCHAR, t INTEGER)",
        "INSERT INTO a VALUES ('A', 5), ('b', 5)",
        "INSERT INTO b VALUES ('a', 3), ('A', 1)",
    )
    world.create("mv", "SELECT a.k, b.k AS found, b.t FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.t >= b.t", "ASOF_JOIN")
    world.change("mv", "DELETE FROM b WHERE t = 3")
    world.assert_rows("mv", ("A", "A", 1), ("b", None, None))
    world.change("mv", "INSERT INTO b VALUES ('a', 2), ('B', 4)")
    world.assert_rows("mv", ("A", "a", 2), ("b", "B", 4))


IN_FULL = {
    "a dynamic pivot": ("PIVOT t ON g USING sum(n) GROUP BY v", "without IN"),
    "positions of rows": ("SELECT a.id, b.n FROM t AS a POSITIONAL JOIN t AS b", "POSITIONAL JOIN"),
    "a sample": ("SELECT id FROM t TABLESAMPLE reservoir(2 ROWS) REPEATABLE (42)", "sample"),
    "a table function": ("SELECT t.id, j.value FROM t, json_each('[1]') AS j", "json_each"),
}


@pytest.mark.parametrize(("sql", "word"), IN_FULL.values(), ids=IN_FULL.keys())
def test_refreshed_in_full(world: World, sql: str, word: str) -> None:
    world.run(TABLE, f"INSERT INTO t VALUES {ROWS[0]}, {ROWS[1]}")
    info = world.create("mv", sql, FULL)
    assert word in info.reason


def test_the_columns_of_a_dynamic_pivot_follow_the_data(world: World) -> None:
    world.run("CREATE TABLE t (g INTEGER, n INTEGER)", "INSERT INTO t VALUES (1, 5)")
    world.create("mv", "PIVOT t ON g USING sum(n)", FULL)
    world.change("mv", "INSERT INTO t VALUES (2, 6)")
    world.assert_rows("mv", (5, 6))


NAMED_BY_FUNCTION = {
    "unnest": "SELECT n, u.unnest, unnest AS again FROM t, unnest(l) AS u",
    "left": "SELECT n, u.unnest FROM t LEFT JOIN unnest(l) AS u ON u.unnest > 1",
    "lateral": "SELECT n, x.unnest FROM t, LATERAL unnest(m) AS x",
    "range": "SELECT u.range, v FROM range(4) AS u LEFT JOIN t ON u.range = t.n",
    "in a subquery": "SELECT id, (SELECT sum(u.generate_series) FROM generate_series(1, n) AS u) AS s FROM t",
    "grouped": "SELECT u.unnest, count(*) AS c FROM t, unnest(l) AS u GROUP BY u.unnest",
}


@pytest.mark.parametrize("sql", NAMED_BY_FUNCTION.values(), ids=NAMED_BY_FUNCTION.keys())
def test_a_column_named_by_its_table_function(world: World, sql: str) -> None:
    """The elements in ``unnest(l) AS u`` are called ``u.u`` and ``u.unnest``."""
    world.run(TABLE, f"INSERT INTO t VALUES {', '.join(ROWS)}")
    world.create("mv", sql)
    for statements in CHANGES:
        world.change("mv", *statements)


def test_fields_of_a_grouped_struct(world: World) -> None:
    world.run(TABLE, f"INSERT INTO t VALUES {', '.join(ROWS)}")
    world.create("mv", "SELECT s.a + 1 AS a, t.s['b'] AS b, count(*) AS c FROM t GROUP BY s HAVING s.b IS NOT NULL")
    for statements in CHANGES:
        world.change("mv", *statements)

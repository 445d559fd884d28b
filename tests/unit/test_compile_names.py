"""Names mean what they mean in DuckDB: each query is compiled, its state built, and compared with the query itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from tests.golden.compiled import assert_state_is_exact, compiled

SET_UP = """
CREATE TABLE t (k INTEGER, x INTEGER, "Mixed Case" VARCHAR, s STRUCT(x INTEGER, y STRUCT(z INTEGER)));
INSERT INTO t VALUES (1, 10, 'a', {'x': 100, 'y': {'z': 7}}), (1, 10, 'a', {'x': 100, 'y': {'z': 7}}),
  (2, NULL, 'B', NULL), (NULL, 3, NULL, {'x': NULL, 'y': NULL}), (3, -4, '', {'x': 5, 'y': {'z': NULL}});
CREATE TABLE u (k INTEGER, x VARCHAR, v DECIMAL(5, 2));
INSERT INTO u VALUES (1, 'one', 1.5), (1, 'uno', 2.5), (2, 'two', NULL), (NULL, 'none', 0), (4, 'four', 4);
CREATE TABLE w (k BIGINT, v INTEGER, y INTEGER);
INSERT INTO w VALUES (1, 11, 1), (2, 12, NULL), (NULL, 13, 3);
CREATE TABLE s (x INTEGER, k INTEGER);
INSERT INTO s VALUES (42, 1), (43, 3);
CREATE SCHEMA other;
CREATE TABLE other.t (k INTEGER, x INTEGER);
INSERT INTO other.t VALUES (1, -1), (5, -5);
CREATE TABLE other.alone (k INTEGER, "select" INTEGER, "a.b" INTEGER, "quote""d" INTEGER, "ümlaut" INTEGER);
INSERT INTO other.alone VALUES (1, 2, 3, 4, 5), (NULL, NULL, NULL, NULL, NULL);
CREATE VIEW other.view_on_t AS SELECT k, x FROM other.t;
CREATE VIEW other.unnamed AS SELECT "CAST(k AS VARCHAR)" AS c FROM (SELECT k::VARCHAR FROM t) AS q;
CREATE VIEW renamed(a, b) AS SELECT k, x FROM t;
CREATE MACRO minus(a, b) AS a - b;
CREATE MACRO by_type(a INTEGER) AS a + 1, (a VARCHAR) AS a || '!';
CREATE MACRO twice_less(a) AS minus(a, 1) * 2;
CREATE MACRO nth(l, i) AS l[i];
CREATE MACRO initial(l) AS l[1];
CREATE MACRO added(a) AS sum(a);
CREATE MACRO with_default(a, b := 2) AS a + b;
CREATE MACRO overloaded(a) AS a + 1, (a, b) AS a - b, (a, b, c) AS a * b * c;
CREATE MACRO many("A b", c := 'it''s, (b)', d := -.5) AS c || "a B" || d;
CREATE MACRO from_k(least, most := 3) AS TABLE SELECT k, x FROM t WHERE k BETWEEN least AND most;
CREATE MACRO twofold(a) AS a + 1;
CREATE MACRO other.twofold(a) AS a * 2;
ATTACH ':memory:' AS "hyphen-cat";
CREATE TABLE "hyphen-cat".main.far (k INTEGER, n VARCHAR);
INSERT INTO "hyphen-cat".main.far VALUES (1, 'far'), (9, 'farther');
"""

QUERIES = {
    "join in parentheses that starts with a query": "SELECT q.k FROM ((SELECT k FROM t) AS q JOIN u ON q.k = u.k)",
    "case": "SELECT K, T.X FROM T WHERE t.K > 0",
    "quoted names compare without case too": 'SELECT "mixed case", "K" FROM t',
    "quoted, spaces": 'SELECT t."Mixed Case" AS "Select" FROM t',
    "odd names": 'SELECT "select" + "a.b" AS "x y", "quote""d", "ümlaut" FROM other.alone',
    "table alias": "SELECT a.k FROM t AS a",
    "alias hides the table": "SELECT u.k FROM t AS u",
    "alias of another table's name": "SELECT t.x FROM u AS t JOIN t AS u ON t.k = u.k",
    "schema-qualified table": "SELECT k, x FROM other.t",
    "schema-qualified column": "SELECT other.t.x, main.t.x AS y FROM other.t JOIN main.t ON other.t.k = main.t.k",
    "database-qualified": "SELECT memory.main.t.k FROM memory.main.t",
    "database.table": 'SELECT far.n FROM "hyphen-cat".far',
    "another database": 'SELECT f.n, t.x FROM "hyphen-cat".main.far AS f JOIN t ON f.k = t.k',
    "view in another schema": "SELECT * FROM other.view_on_t",
    "view with column names": "SELECT a + 1 AS a, b FROM renamed WHERE b IS NOT NULL",
    # --- structs
    "struct field": "SELECT s.x AS a, t.s.y.z AS b FROM t",
    "table wins over a struct column": "SELECT s.x AS a FROM s",
    "struct and table of one name": "SELECT s.x AS a FROM t JOIN s ON t.k = s.k",
    "struct by brackets": "SELECT s['x'] AS a, (s).y.z AS b FROM t",
    # --- aliases
    "column wins over an alias in WHERE": "SELECT k + 1 AS x FROM t WHERE x > 5",
    "alias in WHERE": "SELECT k + 1 AS more FROM t WHERE more > 2",
    "column in parentheses": "SELECT q.x FROM (SELECT DISTINCT (x), (t.k) FROM t ORDER BY x LIMIT 3) AS q ORDER BY q.k",
    "alias in an alias": "SELECT k + 1 AS a, a * 2 AS b, b + a AS c FROM t",
    "column wins over a lateral alias": "SELECT k AS x, x AS y FROM t",
    "column wins over an alias in GROUP BY": "SELECT k + 1 AS x, count(*) AS n FROM t GROUP BY k + 1, x",
    "alias in GROUP BY": "SELECT k % 2 AS odd, count(*) AS n FROM t GROUP BY odd",
    "alias in HAVING": "SELECT k, sum(x) AS total FROM t GROUP BY k HAVING total > 5",
    "alias of a name in HAVING": "SELECT k, sum(x) AS x FROM t GROUP BY k HAVING max(x) > 5",
    "aggregate under the name of its column": "SELECT k, count(*) AS n, min(x) AS x FROM t GROUP BY k",
    "lateral alias over a key": "SELECT k AS a, a + 1 AS b, count(*) AS n FROM t GROUP BY k",
    "lateral alias over an aggregate": "SELECT k, sum(x) AS total, total * 2 AS d FROM t GROUP BY k",
    "prefix alias": "SELECT total: sum(x), k FROM t GROUP BY k",
    "implicit alias": "SELECT k one, x two FROM t three",
    # --- GROUP BY
    "ordinal": "SELECT x, k, count(*) AS n FROM t GROUP BY 2, 1",
    "ALL": "SELECT k, x + 1 AS y, max(x) AS m FROM t GROUP BY ALL",
    "ALL with an expression over an aggregate": "SELECT k, x, 1 + count(*) AS n FROM t GROUP BY ALL",
    "expression over a grouped expression": "SELECT (k + 1) * 2 AS d, count(*) AS n FROM t GROUP BY k + 1",
    "same key twice": "SELECT k, t.k AS again, count(*) AS n FROM t GROUP BY k, t.k, 1",
    "key in another case": "SELECT K, count(*) AS n FROM t GROUP BY t.k",
    "struct field as key": "SELECT s.x AS sx, count(*) AS n FROM t GROUP BY s.x",
    "constant": "SELECT 'a' AS c, count(*) AS n FROM t GROUP BY c",
    "two constants of one value": "SELECT 'a' AS c, 'a' AS d, count(*) AS n FROM t GROUP BY ALL",
    "parenthesised": "SELECT k, x, count(*) AS n FROM t GROUP BY (k), (x)",
    # --- stars
    "star over a join": "SELECT * FROM t JOIN u ON t.k = u.k",
    "qualified star": "SELECT u.*, t.k FROM t JOIN u ON t.k = u.k",
    "two stars": "SELECT *, * FROM u",
    "star and a column": "SELECT *, k + 1 AS k1 FROM u",
    "EXCLUDE": "SELECT * EXCLUDE (s, x) FROM t",
    "EXCLUDE in another case": 'SELECT * EXCLUDE (S, "MIXED CASE") FROM t',
    "EXCLUDE qualified": "SELECT * EXCLUDE (u.x) FROM t JOIN u ON t.k = u.k",
    "REPLACE": "SELECT * REPLACE (x + 1 AS x) FROM t",
    "RENAME": "SELECT * RENAME (x AS ex) FROM t",
    "all three": "SELECT * EXCLUDE (s) REPLACE (k * 2 AS k) RENAME (x AS ex) FROM t",
    "star of a subquery": "SELECT q.* FROM (SELECT k, x AS y FROM t) AS q",
    "FROM first": "FROM u",
    "FROM first with SELECT": "FROM u SELECT k, x",
    # --- USING and NATURAL
    "USING once": "SELECT * FROM t JOIN u USING (k)",
    "USING two columns": "SELECT * FROM (SELECT k, v::INTEGER AS v FROM u) AS a JOIN w USING (k, v)",
    "USING chain": "SELECT * FROM t JOIN u USING (k) JOIN w USING (k)",
    "USING unqualified and qualified": "SELECT k, t.k AS tk, u.k AS uk FROM t JOIN u USING (k)",
    "USING and a qualified star": "SELECT u.* FROM t JOIN u USING (k)",
    "USING and both qualified stars": "SELECT t.*, u.* FROM t JOIN u USING (k)",
    "USING in another case": "SELECT K FROM t JOIN u USING (K)",
    "USING of different types": "SELECT k FROM u JOIN w USING (k)",
    "USING then WHERE": "SELECT k FROM t JOIN u USING (k) WHERE k = 1",
    "USING then GROUP BY": "SELECT k, count(*) AS n FROM t JOIN u USING (k) GROUP BY k",
    "USING then ON": "SELECT t.k, w.v FROM t JOIN u USING (k) JOIN w ON w.k = t.k",
    "NATURAL": "SELECT * FROM (SELECT k, v FROM u) AS a NATURAL JOIN (SELECT k, y FROM w) AS b",
    "NATURAL on two columns": "SELECT * FROM (SELECT k, x FROM t) AS a NATURAL JOIN (SELECT x, k FROM s) AS b",
    # --- joins
    "comma": "SELECT t.k FROM t, u, w WHERE t.k = u.k AND u.k = w.k",
    "comma then JOIN": "SELECT t.k FROM t, u JOIN w ON u.k = w.k WHERE t.k = u.k",
    "parenthesised join": "SELECT t.k, w.v FROM (t JOIN u ON t.k = u.k) JOIN w ON w.k = u.k",
    "parenthesised on the right": "SELECT t.k, w.v FROM t JOIN (u JOIN w ON u.k = w.k) ON t.k = u.k",
    "condition over three": "SELECT t.k FROM t JOIN u ON true JOIN w ON t.k = u.k AND u.k = w.k",
    "self-join": "SELECT a.x, b.x AS y FROM t AS a JOIN t AS b ON a.k = b.k AND a.x <= b.x",
    "positional equality of NULLs": "SELECT a.k FROM t AS a JOIN u AS b ON a.k IS NOT DISTINCT FROM b.k",
    # --- derived tables, CTEs, VALUES
    "aliases of a derived table": "SELECT a, b FROM (SELECT k, x FROM t) AS q(a, b)",
    "fewer aliases than columns": "SELECT a, x FROM (SELECT k, x FROM t) AS q(a)",
    "aliases of a table": "SELECT a, b FROM u AS q(a, b)",
    "aliases of a CTE": "WITH q(a, b) AS (SELECT k, x FROM t) SELECT b, a FROM q",
    "aliases of a CTE and again": "WITH q(a, b) AS (SELECT k, x FROM t) SELECT c, b FROM q AS r(c)",
    "CTE hides a table": "WITH t AS (SELECT k AS only_this FROM u) SELECT only_this FROM t",
    "CTE reads the table it hides": "WITH t AS (SELECT k FROM t WHERE x > 3) SELECT k FROM t",
    "CTE of a CTE": "WITH a AS (SELECT k FROM t), b AS (SELECT k AS n FROM a) SELECT * FROM a JOIN b ON k = n",
    "CTE in a CTE": "WITH a AS (WITH b AS (SELECT k FROM u) SELECT k FROM b) SELECT k FROM a",
    "CTE in a derived table": "SELECT k FROM (WITH b AS (SELECT k FROM u) SELECT k FROM b) AS q",
    "inner CTE hides the outer one": "WITH b AS (SELECT 1) FROM (WITH b AS (SELECT k FROM u) SELECT k FROM b) AS q",
    "schema-qualified is no CTE": "WITH t AS (SELECT 99 AS k) SELECT main.t.k FROM main.t",
    "VALUES": "SELECT t.k, v.name FROM t JOIN (VALUES (1, 'a'), (2, 'b')) AS v(k, name) ON t.k = v.k",
    "VALUES with default names": "SELECT col0, col1 FROM (VALUES (1, 'a'), (2, 'b')) AS v",
    "VALUES of mixed types": "SELECT v.a FROM t, (VALUES (1), (2.5)) AS v(a)",
    "VALUES alone": "VALUES (1, 'a'), (2, 'b')",
    "list comprehension variable hides a column": "SELECT [x + 1 FOR x IN [k, 2]] AS l FROM t",
    "comprehension with a condition": "SELECT [e FOR e IN [k, 2] IF e > x] AS l FROM t",
    "lambda variable hides a column": "SELECT list_transform([k, 2], lambda x: x + 1) AS l FROM t",
    "lambda and a column": "SELECT list_transform([1, 2], lambda e: e + k) AS l FROM t",
    "count(*) without alias": 'SELECT "count_star()" AS n FROM (SELECT count(*) FROM t) AS q',
    "cast without alias": 'WITH q AS (SELECT k::VARCHAR FROM t) SELECT "CAST(k AS VARCHAR)" || 1 AS n FROM q',
    "operator without alias": 'SELECT q."(k ** 2)" AS n FROM (SELECT k ** 2 FROM t) AS q',
    "function without alias": """SELECT "string_agg(x, ',')" AS n FROM (SELECT string_agg(x, ',') FROM u) AS q""",
    "in a view without alias": 'SELECT c FROM other.unnamed',
    "equal names of items": "SELECT k, k, x AS k FROM t",
    "no alias": "SELECT k + 1, count(*), sum(x) FROM t GROUP BY k + 1",
    "UNION ALL takes the names of the left": "SELECT k AS a FROM t UNION ALL SELECT v FROM u",
    "UNION ALL and CTE": "WITH q AS (SELECT k FROM t) SELECT k FROM q UNION ALL SELECT k + 1 FROM q",
    "UNION ALL in a derived table": "SELECT a FROM (SELECT k AS a, x FROM t UNION ALL SELECT k, v FROM u) AS q",
}  # fmt: skip

#: A column of a derived table or a macro's parameter is replaced by the expression that it stands for.
MOVED = {
    "minus under minus": "SELECT x - k AS a, k - x AS b FROM (SELECT k - 1 AS k, x - 2 AS x FROM t) AS q",
    "or under and": "SELECT k FROM (SELECT k, k > 1 OR x > 1 AS a FROM t) AS q WHERE a AND k < 3",
    "comparison under comparison": "SELECT a = b AS c, NOT a AS d FROM (SELECT k > 1 AS a, x > 1 AS b FROM t) AS q",
    "comparison under CASE": "SELECT a IS NULL AS n, CASE WHEN a THEN 1 END AS c FROM (SELECT k > 1 AS a FROM t)",
    "minus under minus sign": "SELECT -a AS b, a ** 2 AS c FROM (SELECT -x AS a FROM t) AS q",
    "concatenation under LIKE": "SELECT a LIKE b AS c FROM (SELECT 'a' || k AS a, 'a%' AS b FROM t) AS q",
    "cast": "SELECT a::VARCHAR AS c FROM (SELECT k + x AS a FROM t) AS q",
    "interval": "SELECT a + INTERVAL 1 DAY AS d FROM (SELECT DATE '2024-01-31' + k AS a FROM t) AS q",
    "field": "SELECT a.x AS f FROM (SELECT CASE WHEN k > 0 THEN s END AS a FROM t) AS q",
    "field of a literal": "SELECT a.x AS f FROM (SELECT {'x': k} AS a FROM t) AS q",
    "element of a list": "SELECT a[1] AS f FROM (SELECT [k, x] AS a FROM t) AS q",
    "element of a concatenation": "SELECT a[1] AS f FROM (SELECT [k, x] || [1] AS a FROM t) AS q",
    "last element": "SELECT a[-1] AS f FROM (SELECT [k, x] || [1] AS a FROM t) AS q",
    "element by a column": "SELECT a[k] AS f FROM (SELECT k, [k, x] || [1] AS a FROM t) AS q",
    "element of a map": "SELECT a[1] AS f FROM (SELECT MAP {1: k, 2: x} AS a FROM t) AS q",
    "letter of a text": "SELECT a[1] AS f FROM (SELECT k::VARCHAR AS a FROM t) AS q",
    "letter of a function": "SELECT a[1] AS f FROM (SELECT upper(\"Mixed Case\") AS a FROM t) AS q",
    "slice": "SELECT a[1:2] AS f, a[:1] AS g, a[2:] AS h FROM (SELECT [k, x] || [1] AS a FROM t) AS q",
    "element of an aggregate": "SELECT a[1] AS f FROM (SELECT list(x ORDER BY x) AS a FROM t GROUP BY k) AS q",
    "element as a key": "SELECT a[1] AS f, count(*) AS n FROM (SELECT [k] || [x] AS a FROM t) AS q GROUP BY a[1]",
    "macro": "SELECT minus(k, x - 1) AS a, -minus(k, 1) AS b, minus(k, minus(x, 1)) * 2 AS c FROM t",
    "macro with swapped names": "SELECT minus(b, a) AS c FROM (SELECT k AS a, x AS b FROM t) AS q",
    "macro of a macro": "SELECT twice_less(k) AS a FROM t",
    "macro with an element": "SELECT nth([k, x], 1) AS a, nth([k] || [x], 2) AS b FROM t",
    "macro with a fixed element": "SELECT initial('abc') AS a, initial(x || 'q') AS b, initial([k, v]) AS c FROM u",
    "macro with an aggregate": "SELECT k, added(x) AS s FROM t GROUP BY k",
    "macro with named arguments": "SELECT minus(b := k, a := x) AS d, minus(k, b := x) AS e FROM t",
    "macro with a default": "SELECT with_default(k) AS a, with_default(k, 3) AS b, with_default(k, B := 4) AS c FROM t",
    "macro with odd defaults": "SELECT many(k) AS a, many(k, d := 0) AS b, many(k, 'x', 2) AS c FROM t",
    "table macro with a default": "SELECT * FROM from_k(1) UNION ALL SELECT * FROM from_k(most := 2, least := 0)",
    "overloads": "SELECT overloaded(k) AS a, overloaded(k, x) AS b, overloaded(k, c := 2, b := x) AS c FROM t",
}  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        opened.execute(SET_UP)
        yield opened


@pytest.mark.parametrize("query", [pytest.param(sql, id=name) for name, sql in QUERIES.items()])
def test_names(connection: Any, query: str) -> None:
    made = assert_state_is_exact(connection, query)
    assert made.plan.reason is None


@pytest.mark.parametrize("query", [pytest.param(sql, id=name) for name, sql in MOVED.items()])
def test_expressions_that_move(connection: Any, query: str) -> None:
    made = assert_state_is_exact(connection, query)
    assert made.plan.reason is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t FROM t",  # the whole row as a struct
        "SELECT a.k FROM t AS a JOIN (t AS b JOIN u AS c ON b.k = c.k) AS d ON a.k = 1",
        "SELECT * FROM t POSITIONAL JOIN u",
        "SELECT COLUMNS('k|x') FROM t",
        "SELECT * LIKE 'k%' FROM u",
        "SELECT count(COLUMNS(*)) FROM u",
        "SELECT count(t.*) AS n FROM t",
        "SELECT main.minus(k, x) AS d FROM t",
        'SELECT by_type(k) AS a, by_type("Mixed Case") AS b FROM t',
        "SELECT twofold(k) AS a FROM t",
        "SELECT [e + i FOR e, i IN [k, 2]] AS l FROM t",
        "SELECT k, [e * 2 FOR e IN list(x ORDER BY x)] AS l FROM t GROUP BY k",
        "SELECT apply([s], lambda s: s.x) AS l FROM t",
        "SELECT * FROM s JOIN (u JOIN w USING (k)) USING (k)",
        "SELECT t.k FROM ((t JOIN u ON t.k = u.k))",
        "SELECT k, x + 1 AS more, sum(more) AS s FROM t GROUP BY k, x",
        "SELECT main.t.s.x AS a FROM t",
    ],
)
def test_what_is_not_resolved_is_refreshed_in_full(connection: Any, query: str) -> None:
    """Whatever the compiler makes of it, the rows are right."""
    assert_state_is_exact(connection, query)


def test_an_ambiguous_name_is_never_guessed(connection: Any) -> None:
    from dbt_openivm.errors import QueryError

    with pytest.raises(QueryError, match="k"):
        compiled(connection, "SELECT k FROM t JOIN u ON t.k = u.k")

"""Whole programs on a real PostgreSQL: state, triggers, refresh, boundary, logs; after each round the view is compared
with its query."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import psycopg
import pytest

from dbt_openivm import compile_with_facts
from dbt_openivm.errors import ConfigError, QueryError
from tests.postgres.world import World, run

T = {"t": {"k": "integer", "x": "integer"}}
TU = {**T, "u": {"k": "integer", "y": "integer"}}

VIEWS: dict[str, tuple[str, str, Mapping[str, Mapping[str, str]]]] = {
    "rows": ("SIMPLE_PROJECTION", "SELECT k, x + 1 AS x1 FROM t WHERE x > 1 OR x IS NULL", T),
    "union": ("SIMPLE_PROJECTION", "SELECT k, x FROM t UNION ALL SELECT k, y FROM u WHERE y > 1", TU),
    "extremes": ("AGGREGATE_GROUP", "SELECT k, max(x) AS m, min(x) AS l FROM t GROUP BY k", T),
    "having": ("AGGREGATE_HAVING", "SELECT k, max(x) AS m FROM t GROUP BY k HAVING count(*) > 1", T),
    "one row": ("SIMPLE_AGGREGATE", "SELECT sum(x) AS s, count(*) AS n, max(x) AS m, avg(x) AS a FROM t", T),
    "stddev": ("GROUP_RECOMPUTE", "SELECT k, stddev(x) AS m FROM t GROUP BY k", T),
    "stddev1": ("GROUP_RECOMPUTE", "SELECT stddev(x) AS m FROM t", T),
    "distinct": ("DISTINCT_INCREMENTAL", "SELECT DISTINCT k FROM t", T),
    "countd": ("SIMPLE_PROJECTION", "SELECT k, count(DISTINCT x) AS m, sum(x) AS s FROM t GROUP BY k", T),
    "join": ("SIMPLE_PROJECTION", "SELECT t.k, x, y FROM t JOIN u ON t.k = u.k", TU),
    "join3": (
        "SIMPLE_PROJECTION",
        "SELECT t.k, t.x, u.y, v.x AS vx FROM t JOIN u ON t.k = u.k JOIN t v ON v.k = u.y",
        TU,
    ),
    "joined groups": ("AGGREGATE_GROUP", "SELECT t.k, sum(y) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k", TU),
    "using": ("SIMPLE_PROJECTION", "SELECT k, x, y FROM t JOIN u USING (k)", TU),
    "outer join": ("OUTER_JOIN", "SELECT t.k, x, y FROM t LEFT JOIN u ON t.k = u.k", TU),
    "right join": ("OUTER_JOIN", "SELECT t.k, x, y FROM t RIGHT JOIN u ON t.k = u.k AND x > 1", TU),
    "full join": ("OUTER_JOIN", "SELECT t.k, u.k AS k2, x, y FROM t FULL JOIN u ON t.k = u.k", TU),
    "full join using": ("OUTER_JOIN", "SELECT k, x, y FROM t FULL JOIN u USING (k)", TU),
    "exists": ("SEMI_ANTI_RECOMPUTE", "SELECT k, x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", TU),
    "notexists": (
        "SEMI_ANTI_RECOMPUTE",
        "SELECT k, x FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.y < t.x)",
        TU,
    ),
    "in": ("SEMI_ANTI_RECOMPUTE", "SELECT k, x FROM t WHERE k IN (SELECT y FROM u)", TU),
    "not in": ("SEMI_ANTI_RECOMPUTE", "SELECT k, x FROM t WHERE k NOT IN (SELECT y FROM u WHERE y IS NOT NULL)", TU),
    "not in null": ("SEMI_ANTI_RECOMPUTE", "SELECT k, x FROM t WHERE k NOT IN (SELECT y FROM u)", TU),
    "window": ("WINDOW_PARTITION", "SELECT k, x, rank() OVER (PARTITION BY k ORDER BY x) AS r FROM t", T),
    "whole window": ("WINDOW_PARTITION", "SELECT k, x, sum(x) OVER () AS s FROM t", T),
    "lag": ("WINDOW_PARTITION", "SELECT k, x, lag(x) OVER (PARTITION BY k ORDER BY x) AS r FROM t", T),
    "first rows": ("TOP_K", "SELECT k, x FROM t ORDER BY x DESC, k LIMIT 3", T),
    "first rows2": ("TOP_K", "SELECT k, x FROM t ORDER BY x NULLS FIRST, k DESC LIMIT 3 OFFSET 1", T),
    "nested": (
        "AGGREGATE_GROUP",
        "SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM t GROUP BY k) q GROUP BY n",
        T,
    ),
    "two windows": (
        "WINDOW_PARTITION",
        "SELECT k, s, rank() OVER (ORDER BY s) AS r FROM (SELECT k, max(x) AS s FROM t GROUP BY k) q",
        T,
    ),
    "nestsum": (
        "SIMPLE_AGGREGATE",
        "SELECT sum(s) AS ss, avg(s) AS a FROM (SELECT k, sum(x) s FROM t GROUP BY k) q",
        T,
    ),
    "div": ("AGGREGATE_GROUP", "SELECT k / 2 AS h, sum(x / 2) AS s, avg(x / 2) AS a FROM t GROUP BY k / 2", T),
    "except": ("AGGREGATE_HAVING", "SELECT k FROM t EXCEPT SELECT k FROM u", TU),
    "except all": ("SIMPLE_PROJECTION", "SELECT k FROM t EXCEPT ALL SELECT k FROM u", TU),
    "intersect": ("AGGREGATE_HAVING", "SELECT k FROM t INTERSECT SELECT k FROM u", TU),
    "union distinct": ("DISTINCT_INCREMENTAL", "SELECT k FROM t UNION SELECT k FROM u", TU),
    "cte": (
        "SIMPLE_PROJECTION",
        "WITH c AS (SELECT k, sum(x) AS s FROM t GROUP BY k) SELECT c.k, s, y FROM c JOIN u ON u.k = c.k",
        TU,
    ),
    "scalar": ("SIMPLE_PROJECTION", "SELECT k, (SELECT max(y) FROM u) AS m FROM t", TU),
    "func": ("SIMPLE_PROJECTION", "SELECT k, md5(x::text) AS m FROM t", T),
    "filter": (
        "AGGREGATE_GROUP",
        "SELECT k, sum(x) FILTER (WHERE x > 1) AS s, count(*) FILTER (WHERE x > 2) AS c FROM t GROUP BY k",
        T,
    ),
    "bools": (
        "AGGREGATE_GROUP",
        "SELECT k, bool_and(x > 1) AS b, bool_or(x > 2) AS c, every(x > 0) AS e FROM t GROUP BY k",
        T,
    ),
    "case": (
        "AGGREGATE_GROUP",
        "SELECT CASE WHEN x > 1 THEN 'big' ELSE 'small' END AS c, count(*) AS n FROM t GROUP BY 1",
        T,
    ),
    "ordinal": ("AGGREGATE_GROUP", "SELECT k, count(*) FROM t GROUP BY 1 ORDER BY 2", T),
    "cross": ("SIMPLE_PROJECTION", "SELECT t.k, y FROM t, u WHERE t.k < u.k", TU),
    "string_agg": ("GROUP_RECOMPUTE", "SELECT k, string_agg(x::text, ',' ORDER BY x) AS s FROM t GROUP BY k", T),
    "date": ("SIMPLE_PROJECTION", "SELECT k, date '2020-01-01' + x AS d FROM t", T),
    "const": ("SIMPLE_PROJECTION", "SELECT 1 AS one, NULL AS n, 'a' AS t, k FROM t", T),
    "const union": (
        "SIMPLE_PROJECTION",
        "SELECT k, NULL AS n FROM t UNION ALL SELECT NULL, x FROM t UNION ALL SELECT NULL, NULL FROM u",
        TU,
    ),
    "recur": (
        "FULL_REFRESH",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT k, n FROM t, r",
        T,
    ),
    "rollup": ("FULL_REFRESH", "SELECT k, sum(x) AS s FROM t GROUP BY ROLLUP (k)", T),
}


def change(world: World, chance: random.Random) -> None:
    """Insert, update and delete in each table by statements of many rows; groups vanish, keys become NULL."""
    for table in world.schemas:
        for _ in range(chance.randrange(3)):
            world.con.execute(statement(table, list(world.schemas[table]), chance))


def statement(table: str, columns: list[str], chance: random.Random) -> str:
    key, value = columns
    fate = chance.random()
    if fate < 0.45:
        rows = ", ".join(f"({number(chance)}, {number(chance)})" for _ in range(chance.randint(1, 4)))
        return f"INSERT INTO {table} VALUES {rows}"
    if fate < 0.6:
        return f"UPDATE {table} SET {value} = {value} + 1 WHERE {key} = {chance.randrange(4)}"
    if fate < 0.75:
        return f"UPDATE {table} SET {key} = {number(chance)} WHERE {value} > {chance.randrange(4)}"
    if fate < 0.95:
        return f"DELETE FROM {table} WHERE {key} IS NOT DISTINCT FROM {number(chance)}"
    return f"TRUNCATE {table}" if fate < 0.97 else f"DELETE FROM {table}"


def number(chance: random.Random) -> str:
    return chance.choice(["0", "1", "2", "3", "3", "NULL"])


@pytest.mark.parametrize("cascade", [False, True], ids=["alone", "cascade"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_follow_their_tables(con: psycopg.Connection, name: str, cascade: bool) -> None:
    type_, query, schemas = VIEWS[name]
    chance = random.Random(name)
    world = World(con, query, schemas, {"force_view_delta_cascade": cascade})
    assert world.answer["refresh_type"]["name"] == type_
    assert (world.answer["reason"] is None) == (type_ != "FULL_REFRESH")
    for table in schemas:
        for _ in range(4):
            con.execute(statement(table, list(schemas[table]), chance))
    world.build()
    world.check()
    for _ in range(4):
        con.execute("DROP TABLE IF EXISTS before")
        con.execute("CREATE TABLE before AS SELECT * FROM view")
        change(world, chance)
        world.refresh()
        if cascade:
            world.check_published("before")


def build(con: psycopg.Connection, query: str, schemas: Mapping[str, Mapping[str, str]], **facts: object) -> World:
    world = World(con, query, schemas, facts)
    world.build()
    return world


def test_every_way_to_change_a_table_is_logged(con: psycopg.Connection) -> None:
    world = build(con, "SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k", T)
    con.execute("CREATE UNIQUE INDEX ON t (k)")
    for statement_ in (
        "INSERT INTO t VALUES (1, 1), (2, 2), (NULL, 3)",
        "INSERT INTO t VALUES (2, 5), (3, 7) ON CONFLICT (k) DO UPDATE SET x = t.x + excluded.x",
        (
            "MERGE INTO t USING (VALUES (1), (9)) AS n (k) ON t.k = n.k WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED THEN INSERT VALUES (n.k, 0)"
        ),
        "WITH gone AS (DELETE FROM t WHERE k = 9 RETURNING k) INSERT INTO t SELECT k + 10, 1 FROM gone",
        "TRUNCATE t",
    ):
        con.execute(statement_)
        world.refresh()
    with con.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write(b"4\t4\n5\t5\n")
    world.refresh()
    assert con.execute("SELECT count(*) FROM view").fetchone() == (2,)


def test_what_is_rolled_back_was_never_there(con: psycopg.Connection) -> None:
    world = build(con, "SELECT count(*) AS n FROM t", T)
    con.execute("BEGIN; INSERT INTO t VALUES (1, 1); ROLLBACK")
    con.execute("INSERT INTO t VALUES (2, 2)")
    world.refresh()
    assert con.execute("SELECT n FROM view").fetchone() == (1,)


def test_a_writer_between_two_statements_is_seen_next_time(con: psycopg.Connection, where: str) -> None:
    query = "SELECT t.k, count(*) AS n, sum(y) AS s FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k"
    world = build(con, query, TU)
    con.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    with psycopg.connect(where, autocommit=True) as writer:
        writer.execute("SET search_path = tried")
        with con.transaction():
            con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            counts: list[int] = []
            for index, one in enumerate(world.answer["statements"]):
                counts.append(run(con, [{**one, "after": None, "expect": None}]))
                writer.execute(f"INSERT INTO t VALUES ({index % 3}, 1)")
                writer.execute(f"INSERT INTO u VALUES ({index % 3}, 1)")
    world.refresh()
    assert con.execute("SELECT count(*) FROM openivm_delta_t").fetchone() == (0,)


def test_statements_that_see_several_states_are_refused(con: psycopg.Connection) -> None:
    world = build(con, "SELECT count(*) AS n FROM t", T)
    con.execute("INSERT INTO t VALUES (1, 1)")
    with pytest.raises(RuntimeError, match="the transaction sees one state"), con.transaction():
        run(con, world.answer["statements"])
    world.refresh()


def test_setup_starts_anew(con: psycopg.Connection) -> None:
    world = build(con, "SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS q GROUP BY n", T)
    con.execute("INSERT INTO t VALUES (1, 1), (1, 2), (2, 1)")
    world.build()
    world.check()
    con.execute("INSERT INTO t VALUES (2, 2)")
    world.refresh()


NUMBERS = {
    "n": {"k": "integer", "d": "double precision", "r": "real", "s": "numeric(8,2)", "u": "numeric", "b": "bigint"}
}


@pytest.mark.parametrize("column", ["d", "r", "s", "u", "b"])
def test_numbers_leave_no_trace(con: psycopg.Connection, column: str) -> None:
    """NaN, infinity, huge numbers and scales come and go. (PostgreSQL itself has no average of 1e300 and 1.)"""
    functions = ("sum", "min", "max", "count", *(["avg"] if column != "d" else []))
    calls = ", ".join(f"{call}({column}) AS {call}_" for call in functions)
    world = build(con, f"SELECT k, {calls} FROM n GROUP BY k", NUMBERS)
    strange = {
        "d": ["'NaN'", "'Infinity'", "'-Infinity'", "1e300", "-1e300", "1e-300"],
        "r": ["'NaN'", "'Infinity'", "1e30", "0.1"],
        "s": ["'NaN'", "999999.99", "-0.01"],
        "u": ["'NaN'", "'Infinity'", "1e50", "1.000", "0.00000000000000000001"],
        "b": ["9223372036854775807", "9223372036854775806", "-9223372036854775808"],
    }[column]
    con.execute(f"INSERT INTO n (k, {column}) VALUES (1, 1), (1, 2), (2, NULL), (NULL, 4)")
    world.refresh()
    for value in strange:
        for _ in range(2):
            con.execute(f"INSERT INTO n (k, {column}) VALUES (1, {value}), (2, {value})")
            world.refresh()
        con.execute(f"DELETE FROM n WHERE {column} = CAST({value} AS {NUMBERS['n'][column]})")
        world.refresh()


def test_equal_values_that_look_different_are_told_apart(con: psycopg.Connection) -> None:
    schemas = {"v": {"u": "numeric", "d": "double precision", "i": "interval", "t": "text"}}
    world = build(con, "SELECT u, d, i, t FROM v", schemas)
    rows = ["(1.0, 0, '30 days', 'a')", "(1.00, '-0', '1 month', 'A')", "(1, 0, '720 hours', 'a ')"]
    con.execute(f"INSERT INTO v VALUES {', '.join(rows * 2)}")
    world.refresh()
    for text in ("1.00", "1"):
        con.execute("DELETE FROM v WHERE ctid = (SELECT min(ctid) FROM v WHERE u::text = %s)", [text])
        world.refresh()
    con.execute("DELETE FROM v WHERE u::text = '1.00'")
    world.refresh()


def test_names_of_every_kind(con: psycopg.Connection) -> None:
    schemas = {'tried."Odd sales. 2024"': {"Key": "integer", "select": "text", "the x": "integer"}}
    query = 'SELECT "select" AS "The Group", sum("the x") AS "S" FROM tried."Odd sales. 2024" AS a GROUP BY "select"'
    world = build(con, query, schemas, view='tried."My.view"')
    con.execute('INSERT INTO tried."Odd sales. 2024" VALUES (1, $$a$$, 2), (2, NULL, 3)')
    world.refresh()


def test_a_chain_of_views(con: psycopg.Connection) -> None:
    upper = build(con, "SELECT k, sum(x) AS s FROM t GROUP BY k", T, view="sums", force_view_delta_cascade=True)
    schemas = {"sums": {"k": "integer", "s": "bigint"}}
    facts = {"target_dialect": "postgres", "schemas": schemas, "view": "top"}
    answer = compile_with_facts("SELECT count(*) AS n, max(s) AS m FROM sums", facts)
    # the log of the parent is there, and its writer is the parent's refresh
    run(con, [one for one in answer["setup"] if one["phase"] != "capture" and "openivm_delta_sums" not in one["sql"]])
    chance = random.Random(1)
    for _ in range(6):
        change(upper, chance)
        upper.refresh()
        with con.transaction():
            con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            run(con, answer["statements"])
        assert (
            con.execute("SELECT * FROM top").fetchall()
            == con.execute("SELECT count(*), max(s) FROM (SELECT k, sum(x) AS s FROM t GROUP BY k) AS q").fetchall()
        )


@pytest.mark.parametrize(
    "facts",
    [
        {"assume_insert_only": True},
        {"delta_shape": {"t": "insert_only", "u": "empty"}},
        {"unique_keys": {"t": [["k"]], "u": [["k"]]}},
        {"table_stats": {"t": {"rows": 10}, "u": {"rows": 0}}, "delta_stats": {"t": {"inserts": 20000, "deletes": 0}}},
    ],
    ids=["inserts", "shapes", "keys", "sizes"],
)
def test_facts_change_plans_here_too(con: psycopg.Connection, facts: Mapping[str, object]) -> None:
    world = build(con, "SELECT t.k, x, y FROM t JOIN u ON t.k = u.k", TU, **facts)
    assert (world.answer["strategy"] == "full") == ("table_stats" in facts)
    con.execute("INSERT INTO u SELECT i, i FROM generate_series(1, 5) AS i")
    world.build()
    con.execute("INSERT INTO t SELECT i, i FROM generate_series(1, 9) AS i")
    world.refresh()
    if "unique_keys" in facts:
        assert any(
            "ivm_delete" in one["label"] or one["label"] == "delete vanished rows" for one in world.answer["statements"]
        )
        con.execute("DELETE FROM t WHERE k = 3")
        world.refresh()


REFUSED = {
    "SELECT DISTINCT ON (k) k, x FROM t ORDER BY k, x": "DISTINCT ON at line 1",
    "SELECT k, random() AS r FROM t": "Rand (RANDOM())",
    "SELECT k, my_function(x) AS f FROM t": "the function my_function()",
    "SELECT k, x FROM t WHERE x < extract(epoch FROM now())": "it reads the clock",
    'SELECT k AS a, x AS "A" FROM t': "the two names",
    "SELECT k, (SELECT y FROM u WHERE u.k = t.k) AS y FROM t": "a scalar subquery that may have several rows",
    "SELECT k, array_agg(x) AS a FROM t GROUP BY k": "an aggregate over rows in any order",
    "SELECT x % 2 AS k, sum(x) AS s FROM t GROUP BY k": "the name of a column and of another expression",
    "SELECT k, x FROM t TABLESAMPLE SYSTEM (10)": "Table with SAMPLE",
    "SELECT k FROM t FOR UPDATE": "Select with LOCKS",
    "SELECT k FROM ONLY t": "Table with ONLY",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_not_maintained_is_named(query: str) -> None:
    schemas = TU if " u " in query else T
    answer = compile_with_facts(query, {"target_dialect": "postgres", "schemas": schemas})
    assert answer["refresh_type"]["name"] == "FULL_REFRESH"
    assert REFUSED[query] in answer["reason"]
    assert "postgres" in answer["reason"]


@pytest.mark.parametrize(
    ("query", "facts", "error", "words"),
    [
        (
            "SELECT k FROM t",
            {"schemas": {"t": {"k": "integer(("}}},
            ConfigError,
            "facts.schemas.t.k: postgres has no type",
        ),
        ("SELECT k FROM t", {"schemas": TU}, ConfigError, "facts.schemas.u: a table that the query does not read"),
        ("SELECT k FROM t", {"schemas": T, "view": "v" * 60}, ConfigError, "after 63 bytes"),
        ("SELECT k FROM t", {"schemas": T, "view": "t"}, ConfigError, "facts.view: the name of the table"),
        ("SELECT k FROM other", {"schemas": T}, QueryError, "The query reads other"),
        ("SELECT k FROM t; SELECT 1", {"schemas": T}, QueryError, "one SELECT statement"),
        ("DELETE FROM t", {"schemas": T}, QueryError, "one SELECT statement"),
        ("SELECT FROM WHERE", {"schemas": T}, QueryError, "could not be read as SQL of postgres"),
        ("SELECT k AS openivm_k FROM t", {"schemas": T}, QueryError, "openivm_k"),
    ],
)
def test_errors_say_what_is_wrong(query: str, facts: Mapping[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words.replace("(", "\\(")):
        compile_with_facts(query, {"target_dialect": "postgres", **facts})


def test_the_same_input_gives_the_same_bytes() -> None:
    facts = {"target_dialect": "postgres", "schemas": TU}
    answers = {json.dumps(compile_with_facts(VIEWS["full join"][1], facts)) for _ in range(2)}
    assert len(answers) == 1

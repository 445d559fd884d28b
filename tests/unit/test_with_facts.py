"""`compile_with_facts`: its statements, run one by one on a DuckDB, keep views of every kind equal to their query."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import duckdb
import pytest

from dbt_openivm.compiler import plan
from dbt_openivm.engine.effects import EFFECTS
from dbt_openivm.engine.render import macro_root
from tests.unit.self_run import Row, World, run

T = {"t": {"k": "INTEGER", "x": "INTEGER"}}
TU = {**T, "u": {"k": "INTEGER", "y": "INTEGER"}}
EDGES = {"e": {"a": "INTEGER", "b": "INTEGER"}}
REACHED = "WITH RECURSIVE r AS (SELECT a, b FROM e WHERE a = 0 UNION SELECT r.a, e.b FROM r JOIN e ON r.b = e.a) FROM r"
COUNTED = (
    "WITH RECURSIVE r AS (SELECT a, b, 1 AS n FROM e UNION ALL SELECT r.a, e.b, n + 1 FROM r JOIN e ON r.b = e.a "
    "WHERE n < 3) SELECT a, b, count(*) AS c FROM r GROUP BY a, b"
)

VIEWS: dict[str, tuple[str, str, Mapping[str, Mapping[str, str]]]] = {
    "rows": ("SIMPLE_PROJECTION", "SELECT k, x + 1 AS x1 FROM t WHERE x > 1 OR x IS NULL", T),
    "union": ("SIMPLE_PROJECTION", "SELECT k, x FROM t UNION ALL SELECT k, y FROM u WHERE y > 1", TU),
    "groups": ("AGGREGATE_GROUP", "SELECT k, sum(x) AS s, count(*) AS n, avg(x) AS a FROM t GROUP BY k", T),
    "extremes": ("AGGREGATE_GROUP", "SELECT k, max(x) AS m, min(x) AS l FROM t GROUP BY k", T),
    "having": ("AGGREGATE_HAVING", "SELECT k, max(x) AS m FROM t GROUP BY k HAVING count(*) > 1", T),
    "one row": ("SIMPLE_AGGREGATE", "SELECT sum(x) AS s, count(*) AS n, max(x) AS m FROM t", T),
    "medians": ("GROUP_RECOMPUTE", "SELECT k, median(x) AS m FROM t GROUP BY k", T),
    "median": ("GROUP_RECOMPUTE", "SELECT median(x) AS m FROM t", T),
    "distinct": ("DISTINCT_INCREMENTAL", "SELECT DISTINCT k FROM t", T),
    "join": ("SIMPLE_PROJECTION", "SELECT t.k, x, y FROM t JOIN u ON t.k = u.k", TU),
    "joined groups": ("AGGREGATE_GROUP", "SELECT t.k, sum(y) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k", TU),
    "outer join": ("OUTER_JOIN", "SELECT t.k, x, y FROM t LEFT JOIN u ON t.k = u.k", TU),
    "full join": ("OUTER_JOIN", "SELECT t.k, u.k AS k2, x, y FROM t FULL JOIN u ON t.k = u.k", TU),
    "exists": ("SEMI_ANTI_RECOMPUTE", "SELECT k, x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", TU),
    "not in": ("SEMI_ANTI_RECOMPUTE", "SELECT k, x FROM t WHERE k NOT IN (SELECT y FROM u WHERE y IS NOT NULL)", TU),
    "window": ("WINDOW_PARTITION", "SELECT k, x, rank() OVER (PARTITION BY k ORDER BY x) AS r FROM t", T),
    "whole window": ("WINDOW_PARTITION", "SELECT k, x, sum(x) OVER () AS s FROM t", T),
    "first rows": ("TOP_K", "SELECT k, x FROM t ORDER BY x DESC, k LIMIT 3", T),
    "asof": ("ASOF_JOIN", "SELECT t.k, x, y FROM t ASOF JOIN u ON t.k >= u.k", TU),
    "recursion": ("RECURSIVE", REACHED, EDGES),
    "walks": ("AGGREGATE_GROUP", COUNTED, EDGES),
    "nested": (
        "AGGREGATE_GROUP",
        "SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n",
        T,
    ),
    "two windows": (
        "WINDOW_PARTITION",
        "SELECT k, s, rank() OVER (ORDER BY s) AS r FROM (SELECT k, max(x) AS s FROM t GROUP BY k)",
        T,
    ),
    "full": ("FULL_REFRESH", """SELECT k, x, j.key AS j FROM t, json_each('{"a": 1, "b": 2}') AS j""", T),
    "pivot": ("AGGREGATE_GROUP", "PIVOT t ON x IN (1, 2, 3) USING count(*) GROUP BY k", T),
    "clock": ("FULL_REFRESH", "SELECT k, x FROM t WHERE x < epoch(now())", T),
}


def values(chance: random.Random) -> Row:
    return (chance.choice([0, 1, 2, 3, 3, None]), chance.choice([0, 1, 2, 3, 4, None]))


def change(world: World, chance: random.Random) -> None:
    """Insert, delete and update rows of each table; now and then a table loses a whole group, or everything."""
    for table in world.schemas:
        rows = world.rows(table)
        fate = chance.random()
        going = [row for row in rows if chance.random() < 0.3]
        if fate < 0.15:
            going = rows
        elif fate < 0.5 and rows:
            group = chance.choice(rows)[0]
            going = [row for row in rows if row[0] == group]
        world.delete(table, *going)
        world.insert(table, *(values(chance) for _ in range(chance.randrange(4))))


@pytest.mark.parametrize("cascade", [False, True], ids=["alone", "cascade"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_follow_their_sources(name: str, cascade: bool) -> None:
    type_, query, schemas = VIEWS[name]
    chance = random.Random(name)
    world = World(query, schemas, {"force_view_delta_cascade": cascade})
    for table in schemas:
        world.fill(table, [values(chance) for _ in range(12)])
    world.build()
    world.check()
    assert world.answer["refresh_type"] == {"code": plan.CODES[type_], "name": type_}
    for _ in range(4):
        world.con.execute("CREATE OR REPLACE TEMPORARY TABLE before AS FROM view")
        change(world, chance)
        world.refresh()
        if cascade:
            published(world)
    world.con.close()


def published(world: World) -> None:
    """The view's log holds exactly new rows less old rows, none of which cancels."""
    columns = ", ".join(f'"{row[0]}"' for row in world.con.execute("DESCRIBE view").fetchall())
    log = f"SELECT {columns}, sum(openivm_multiplicity)::BIGINT AS w FROM openivm_delta_view GROUP BY ALL"
    net = (
        f"SELECT {columns}, sum(w)::BIGINT AS w FROM (SELECT *, 1 AS w FROM view UNION ALL SELECT *, -1 FROM before) "
        "GROUP BY ALL HAVING sum(w) <> 0"
    )
    assert world.con.execute(f"({log}) EXCEPT ALL ({net})").fetchall() == []
    assert world.con.execute(f"({net}) EXCEPT ALL ({log})").fetchall() == []


@pytest.mark.parametrize("name", VIEWS)
def test_statements_say_what_they_need_and_change(name: str) -> None:
    _, query, schemas = VIEWS[name]
    world = World(query, schemas, {"force_view_delta_cascade": True})
    world.check_marks("setup")
    for table in schemas:
        world.insert(table, (1, 2), (None, 3))
    world.check_marks("statements")
    world.con.close()


def test_every_step_says_what_it_changes() -> None:
    """Parts of statements, and what only the adapter runs, are no steps of a program."""
    macros = {file.stem for file in (macro_root() / "steps").glob("*.sql")}
    assert macros - EFFECTS.keys() == {
        "ivm_affected_rows",
        "ivm_delete_places",
        "ivm_same",
        "ivm_same_keys",
        "ivm_temporary",
    }
    assert EFFECTS.keys() <= macros


def test_counts_of_a_node_do_not_run_into_another() -> None:
    """Two recursive CTEs have steps of one name; the rounds that one skips must not count for the other."""
    query = f"SELECT a, b FROM ({REACHED}) UNION ALL SELECT b, a FROM ({REACHED.replace('a = 0', 'a = 5')})"
    world = World(query, EDGES)
    world.fill("e", [(0, 1), (1, 2), (5, 6)])
    world.build()
    for row in [(2, 3), (3, 4), (6, 7), (4, 9)]:
        world.insert("e", row)
        world.refresh()
        world.delete("e", row)
        world.refresh()
        world.insert("e", row)
    world.refresh()
    labels = [s["label"] for s in world.answer["statements"]]
    assert len(set(labels)) == len(labels)


def test_a_chain_of_views() -> None:
    """A view with `force_view_delta_cascade` is a table with a log for the next one."""
    upper = World("SELECT k, sum(x) AS s FROM t GROUP BY k", T, {"view": "sums", "force_view_delta_cascade": True})
    upper.fill("t", [(1, 1), (2, 5), (None, 7)])
    upper.build()
    schemas = {"sums": {"k": "INTEGER", "s": "HUGEINT"}}
    lower = World("SELECT count(*) AS n, max(s) AS m FROM sums", schemas, {"view": "top"}, upper.con)
    lower.build()
    chance = random.Random(1)
    for _ in range(8):
        change(upper, chance)
        upper.refresh()
        lower.refresh()
        assert upper.con.execute("SELECT count(*) FROM openivm_delta_sums").fetchall() == [(0,)]


def test_views_share_a_log() -> None:
    one = World("SELECT k, sum(x) AS s FROM t GROUP BY k", T, {"view": "one"})
    two = World("SELECT max(x) AS m FROM t", T, {"view": "two"}, one.con)
    both: list[dict[str, Any]] = []
    for world in (one, two):
        world.build()
        both += [s for s in world.answer["statements"] if s["phase"] != "cleanup"]
    both += [s for s in one.answer["statements"] if s["phase"] == "cleanup"]
    chance = random.Random(2)
    for _ in range(5):
        change(one, chance)
        run(one.con, both)
        one.check()
        two.check()


def test_names_of_every_kind() -> None:
    schemas = {
        'odd."sales. 2024"': {'a "b"': "INTEGER", "select": "VARCHAR"},
        "memory.other.SALES": {"k": "INTEGER", "x": "INTEGER"},
    }
    query = 'SELECT "select", sum(x) AS "the sum" FROM odd."sales. 2024" JOIN other.sales ON "a ""b""" = k GROUP BY ALL'
    world = World(query, schemas, {"view": 'odd."my.view"'})
    odd, other = schemas
    world.fill(odd, [(1, "a"), (2, "b")])
    world.fill(other, [(1, 5), (2, 6), (2, 7)])
    world.check_marks("setup")
    assert world.answer["view"] == 'odd."my.view"'
    world.insert(odd, (1, "b"))
    world.delete(other, (2, 6))
    world.check_marks("statements")
    world.check()
    needed = {name for s in world.answer["statements"] for name in s["needs"]}
    assert {odd, other} & needed, "sources are named as the caller names them"


def test_a_log_lies_where_the_view_can_write() -> None:
    """DuckDB writes one database in a transaction."""
    schemas = {"lake.s.sales": {"k": "INTEGER", "x": "INTEGER"}}
    con = duckdb.connect()
    con.execute("ATTACH ':memory:' AS lake")
    world = World("SELECT k, sum(x) AS s FROM lake.s.sales GROUP BY k", schemas, {"view": "memory.main.v"}, con)
    assert world.answer["logs"] == {"lake.s.sales": 'memory.main."openivm_delta_lake.s.sales"'}
    world.build()
    world.insert("lake.s.sales", (1, 2), (2, 3))
    world.con.execute("BEGIN")
    world.refresh()
    world.con.execute("COMMIT")

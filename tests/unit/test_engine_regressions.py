"""What a review broke once: each finding, with the right values."""

from __future__ import annotations

import duckdb
import pytest

from dbt_openivm import IvmEngine
from dbt_openivm.engine.maintain import Maintainer
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.names import RelationName
from tests.helpers import World, assert_view_is_exact, has_triggers
from tests.unit.engines import new_world

needs_triggers = pytest.mark.skipif(not has_triggers(), reason="triggers need DuckDB 2.0")

GROUPED = "SELECT a, max(b) AS b FROM t GROUP BY a"
PARENTS = (GROUPED, f"{GROUPED} HAVING max(b) > 7", "SELECT a, b FROM t", GROUPED)


def test_a_parent_gets_and_loses_having() -> None:
    """The difference of a rebuilt parent shows through its new boundary, not through the old one."""
    world = new_world(
        "diff", "CREATE TABLE t (a INTEGER, b INTEGER)", "INSERT INTO t SELECT i % 3, i FROM range(9) r(i)"
    )
    world.create("p", PARENTS[0])
    world.create("c", "SELECT count(*) AS n, sum(b) AS s FROM p")
    for turn, query in enumerate(PARENTS[1:]):
        world.create("p", query)
        world.refresh("c")
        world.change("p", f"INSERT INTO t VALUES (0, {50 + turn})")
        assert world.refresh("c").strategy == "incremental"


@needs_triggers
def test_a_new_column_under_a_quick_refresh() -> None:
    world = new_world("trigger", "CREATE TABLE t (a INTEGER)", "CREATE TABLE u (a INTEGER, d INTEGER)")
    world.run("INSERT INTO u VALUES (1, 6)")
    world.create("star", "SELECT * FROM t")
    world.change("star", "INSERT INTO t VALUES (1)")
    world.change("star", "INSERT INTO t VALUES (1)")
    world.change("star", "ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 5", "INSERT INTO t VALUES (2, 7)")
    world.assert_rows("star", (1, 5), (1, 5), (2, 7))


def prepared_apart(world: World, name: str, query: str) -> tuple[Maintainer, DuckDBSession, ViewSpec]:
    session = DuckDBSession(world.connection.cursor())
    spec = ViewSpec(RelationName("memory", "main", name), query, capture="trigger")
    return Maintainer(session, "memory", render), session, spec


@needs_triggers
def test_prepared_but_never_applied() -> None:
    """A model that failed after its capture: the captured rows are still there for the next refresh."""
    query = "SELECT a, sum(b) AS s FROM t GROUP BY a"
    world = new_world("trigger", "CREATE TABLE t (a INTEGER, b INTEGER)", "INSERT INTO t VALUES (1, 1)")
    world.create("v", query)
    world.change("v", "INSERT INTO t VALUES (1, 2)")
    world.run("INSERT INTO t VALUES (1, 1000)")
    maintainer, _, spec = prepared_apart(world, "v", query)
    maintainer.release(maintainer.prepare(spec))
    world.refresh("v")
    world.change("v", "INSERT INTO t VALUES (1, 5)")
    world.assert_rows("v", (1, 1008))


@needs_triggers
def test_a_second_consumer_prepared_before_and_applied_after() -> None:
    query = "SELECT a, count(*) AS n FROM t GROUP BY a"
    world = new_world("trigger", "CREATE TABLE t (a INTEGER, b INTEGER)", "INSERT INTO t VALUES (1, 1)")
    world.create("v", "SELECT a, sum(b) AS s FROM t GROUP BY a")
    maintainer, session, spec = prepared_apart(world, "w", query)
    prepared = maintainer.prepare(spec)
    world.change("v", "INSERT INTO t VALUES (1, 2)")
    session.begin()
    maintainer.apply(prepared)
    session.commit()
    maintainer.release(prepared)
    world.queries["w"] = query
    for turn in range(3):
        world.change("v", f"INSERT INTO t VALUES (1, {turn})")
    world.refresh("w")


@pytest.mark.parametrize(
    ("macro", "call"),
    [
        ("nvl(x, y) AS CASE WHEN x <> '' THEN x ELSE y END", "nvl(s, 'none')"),
        ("substr(x, n) AS left(x, n)", "substr(s, 2)"),
        ("initcap(x) AS x", "initcap(s)"),
    ],
)
def test_a_macro_whose_name_the_parser_knows(macro: str, call: str) -> None:
    world = new_world("diff", "CREATE TABLE t (s VARCHAR)", "INSERT INTO t VALUES ('McDonald'), ('')")
    world.run(f"CREATE MACRO {macro}")
    query = f"SELECT {call} AS m FROM t"
    world.ivm.create_view("v", query)
    assert_view_is_exact(world.connection, "v", query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a AS x, b AS x, x + 1 AS y FROM t",
        "SELECT a AS x, b AS x FROM t WHERE x > 5",
        "SELECT a AS x, b AS x, count(*) AS n FROM t GROUP BY ALL HAVING x > 5",
        "SELECT max(a) AS x, max(b) AS x, x + 1 AS y FROM t",
    ],
)
def test_an_alias_used_twice_means_the_last(query: str) -> None:
    world = new_world("diff", "CREATE TABLE t (a INTEGER, b INTEGER)", "INSERT INTO t VALUES (1, 10)")
    world.create("v", query)
    world.change("v", "INSERT INTO t VALUES (2, 20)")


@needs_triggers
@pytest.mark.parametrize(("type_", "values"), [("VARCHAR COLLATE NOCASE", "('a'), ('A')"), ("DOUBLE", "(0.0), (-0.0)")])
def test_a_build_beside_a_writer_keeps_equal_rows_apart(type_: str, values: str) -> None:
    world = new_world("trigger", f"CREATE TABLE t (x {type_})", f"INSERT INTO t VALUES {values}")
    maintainer, session, spec = prepared_apart(world, "v", "SELECT x FROM t")
    prepared = maintainer.prepare(spec)
    world.run("INSERT INTO t VALUES (NULL)")
    session.begin()
    maintainer.apply(prepared)
    session.commit()
    maintainer.release(prepared)
    rows = "SELECT x::VARCHAR COLLATE C AS x FROM {} WHERE x IS NOT NULL ORDER BY ALL"
    assert world.query(rows.format("v")) == world.query(rows.format("t"))


def test_a_time_zone_is_part_of_the_query() -> None:
    world = new_world("diff", "SET TimeZone = 'UTC'", "CREATE TABLE t (ts TIMESTAMPTZ)")
    world.run("INSERT INTO t VALUES ('2024-01-01 20:00:00+00')")
    world.create("days", "SELECT ts::DATE AS day, count(*) AS n FROM t GROUP BY 1")
    world.run("CREATE TABLE plain (x INTEGER)")
    world.create("plain_view", "SELECT x FROM plain")
    world.run("SET TimeZone = 'Asia/Tokyo'")
    assert "TimeZone" in world.refresh("days").reason
    assert world.refresh("plain_view").strategy == "none"


@pytest.mark.parametrize("table", ["openivm_delta_tables", "openivm_sources"])
def test_catalog_rows_that_somebody_deleted(table: str) -> None:
    world = new_world("diff", "CREATE TABLE t (x INTEGER)", "INSERT INTO t VALUES (1)")
    world.create("v", "SELECT x FROM t")
    world.change("v", "INSERT INTO t VALUES (2)")
    world.run(f"DELETE FROM openivm.{table}", "INSERT INTO t VALUES (3)")
    assert world.refresh("v").strategy == "rebuild"
    assert world.change("v", "INSERT INTO t VALUES (4)").strategy == "incremental"


def test_a_captured_column_that_only_another_view_used() -> None:
    world = new_world("diff", "CREATE TABLE t (k INTEGER, x INTEGER, y INTEGER)", "INSERT INTO t VALUES (1, 2, 3)")
    world.create("a", "SELECT k, x FROM t")
    world.create("b", "SELECT k, y FROM t")
    world.run("ALTER TABLE t DROP x", "INSERT INTO t VALUES (5, 6)")
    world.refresh("b")
    assert world.change("b", "INSERT INTO t VALUES (7, 8)").strategy == "incremental"


def test_a_catalog_table_that_somebody_dropped() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE t (x INTEGER)")
    IvmEngine(con).create_view("v", "SELECT x FROM t")
    con.execute("DROP TABLE openivm.openivm_sources")
    con.execute("INSERT INTO t VALUES (1)")
    assert IvmEngine(con).refresh("v").strategy == "rebuild"
    assert con.execute("FROM v").fetchall() == [(1,)]


def test_a_join_in_parentheses_that_starts_with_a_query() -> None:
    """DuckDB writes the views of users in this way."""
    world = new_world("diff", "CREATE TABLE t (k INTEGER)", "CREATE TABLE u (k INTEGER)")
    world.run("CREATE VIEW stored AS SELECT q.k FROM (SELECT k FROM t) q JOIN u ON q.k = u.k")
    world.create("v", "SELECT k FROM stored")
    world.change("v", "INSERT INTO t VALUES (1), (1)", "INSERT INTO u VALUES (1), (2)")
    world.assert_rows("v", (1,), (1,))


def test_rows_in_a_subquery_of_a_view() -> None:
    """DuckDB writes ``(a, b) IN ..`` as ``row(a, b) = ANY ..`` in the text of a view."""
    world = new_world("diff", "CREATE TABLE t (k INTEGER, x INTEGER)", "CREATE TABLE u (k INTEGER, x INTEGER)")
    world.run("CREATE VIEW stored AS SELECT k FROM t WHERE (k, x) IN (SELECT k, x FROM u)")
    world.create("v", "SELECT k FROM stored")
    world.change("v", "INSERT INTO t VALUES (1, 2), (1, 3), (NULL, 2)", "INSERT INTO u VALUES (1, 2), (NULL, 2)")
    world.assert_rows("v", (1,))


def test_a_count_of_an_unsigned_type() -> None:
    """regr_count is a UINTEGER; the count in the delta may be negative."""
    world = new_world("diff", "CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (1, 2), (2, 3)")
    world.create("v", "SELECT g, regr_count(x, x) AS n FROM t GROUP BY g")
    result = world.change("v", "DELETE FROM t WHERE x = 2", "INSERT INTO t VALUES (3, NULL)")
    assert result.strategy == "incremental"
    world.assert_rows("v", (1, 1), (2, 1), (3, 0))


def test_a_left_join_that_refers_to_an_earlier_item_of_from() -> None:
    tables = (f"CREATE TABLE {name} (k INTEGER, x INTEGER)" for name in "abc")
    world = new_world("diff", *tables)
    world.create("v", "SELECT a.k, b.x, c.x AS y FROM a, b LEFT JOIN c ON c.k = a.k AND c.x = b.x")
    world.change(
        "v", "INSERT INTO a VALUES (1, 0), (2, 0)", "INSERT INTO b VALUES (0, 5)", "INSERT INTO c VALUES (1, 5)"
    )
    world.assert_rows("v", (1, 5, 5), (2, 5, None))

"""What a view may read: plain views that changed below, temporary tables, nothing at all, things that are no tables."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from dbt_openivm.errors import OpenIvmError
from tests.helpers import World, assert_view_is_exact
from tests.unit.engines import new_world

TABLE = "CREATE TABLE t (k INTEGER, x INTEGER)"
ROWS = "INSERT INTO t VALUES (1, 1), (2, 2)"


@pytest.fixture
def world() -> World:
    return new_world("diff", TABLE, ROWS)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT now() AS n",
        "SELECT random() AS r",
        "SELECT table_name FROM duckdb_tables() WHERE table_name = 't'",
        "SELECT table_name FROM information_schema.tables WHERE table_name = 't'",
        "SELECT name FROM pragma_table_info('t')",
        "SELECT getvariable('v') AS v",
    ],
)
def test_a_view_without_tables_that_may_change(world: World, query: str) -> None:
    world.ivm.create_view("mv", query)
    for _ in range(2):
        assert world.ivm.refresh("mv").strategy == "full"


@pytest.mark.parametrize(
    "query", ["SELECT 1 AS one", "VALUES (1), (2)", "SELECT k FROM (VALUES (1)) AS v(k) GROUP BY k"]
)
def test_a_view_without_tables(world: World, query: str) -> None:
    world.create("mv", query)
    assert world.ivm.refresh("mv").strategy == "none"


@pytest.mark.parametrize("query", ["SELECT * FROM query('SELECT k FROM t')", "SELECT k FROM query_table('t')"])
def test_tables_named_in_a_text(world: World, query: str) -> None:
    world.ivm.create_view("mv", query)
    world.run("INSERT INTO t VALUES (3, 3)")
    world.ivm.refresh("mv")
    assert_view_is_exact(world.connection, "mv", query)


def test_a_plain_view_whose_table_got_a_column(world: World) -> None:
    world.run("CREATE VIEW v AS SELECT * FROM t", "ALTER TABLE t ADD COLUMN y INTEGER DEFAULT 7")
    world.create("mv", "SELECT * FROM v")
    world.change("mv", "INSERT INTO t VALUES (3, 3, 3)")


def test_a_column_added_below_a_star(world: World) -> None:
    world.run("CREATE VIEW v AS SELECT * FROM t")
    world.create("mv", "SELECT * FROM v")
    world.run("ALTER TABLE t ADD COLUMN y INTEGER DEFAULT 7")
    assert world.refresh("mv").strategy == "rebuild"
    world.change("mv", "INSERT INTO t VALUES (3, 3, 3)")


def test_a_temporary_table_is_never_mistaken_for_another(world: World) -> None:
    """DuckDB reads the temporary one. It is gone with the connection, so an error is fine; reading `main.t` is not."""
    world.run("CREATE TEMP TABLE t (k INTEGER, x INTEGER)", "INSERT INTO temp.t VALUES (100, 100)")
    with suppress(OpenIvmError):
        world.ivm.create_view("mv", "SELECT k FROM t")
        world.run("INSERT INTO temp.t VALUES (200, 200)")
        world.ivm.refresh("mv")
        assert_view_is_exact(world.connection, "mv", "SELECT k FROM t")


@pytest.mark.parametrize("query", ["PIVOT t ON k USING sum(x)", "SELECT * FROM (PIVOT t ON k USING sum(x) GROUP BY x)"])
def test_columns_that_follow_the_data(world: World, query: str) -> None:
    world.create("mv", query, "FULL_REFRESH")
    world.run("INSERT INTO t VALUES (3, 3)")
    world.ivm.refresh("mv")
    assert_view_is_exact(world.connection, "mv", query)


def test_rows_that_are_equal_but_not_the_same(world: World) -> None:
    """DuckDB calls them equal; a view shows the ones that are there."""
    world.run(
        "CREATE TABLE odd (k VARCHAR COLLATE NOCASE, x DOUBLE, i INTERVAL)",
        "INSERT INTO odd VALUES ('a', 0.0, '1 month'), ('A', -0.0, '30 days'), ('A', 3, '30 days')",
    )
    world.ivm.create_view("mv", "SELECT k, x, i FROM odd")
    world.ivm.create_view("child", "SELECT * FROM mv")
    world.run("DELETE FROM odd WHERE rowid IN (0, 2)", "INSERT INTO odd VALUES ('A', 0.0, '30 days')")
    seen = "SELECT encode(k), x::VARCHAR, i::VARCHAR FROM {} ORDER BY ALL"
    expected = world.query(seen.format("odd"))
    for view in ("mv", "child"):
        world.ivm.refresh(view)
        assert world.query(seen.format(view)) == expected


@pytest.mark.parametrize("statement", ["SET search_path = 'b,a'", "USE memory.b"])
def test_the_first_table_of_the_search_path(statement: str) -> None:
    world = new_world("diff", "CREATE SCHEMA a", "CREATE SCHEMA b")
    world.run("CREATE TABLE a.t AS SELECT 1 AS k", "CREATE TABLE b.t AS SELECT 2 AS k", statement)
    world.ivm = world.new_engine()
    world.create("mv", "SELECT k FROM t")
    world.change("mv", "INSERT INTO b.t VALUES (20)", "INSERT INTO a.t VALUES (10)")
    world.assert_rows("mv", (2,), (20,))


@pytest.mark.parametrize("effects", [False, True])
def test_a_python_function(world: World, effects: bool) -> None:
    world.connection.create_function("twice", lambda x: x * 2, ["INTEGER"], "INTEGER", side_effects=effects)
    world.ivm.create_view("mv", "SELECT twice(k) AS t FROM t")
    result = world.ivm.refresh("mv")
    assert result.strategy == ("full" if effects else "none")


def test_an_attached_database(tmp_path: Path, world: World) -> None:
    world.run(f"ATTACH '{tmp_path / 'far.duckdb'}' AS \"far-off\"", 'CREATE TABLE "far-off".t AS SELECT 1 AS k')
    world.create("mv", 'SELECT k FROM "far-off".t UNION ALL SELECT k FROM t')
    world.change("mv", 'INSERT INTO "far-off".t VALUES (5)', "INSERT INTO t VALUES (6, 6)")
    world.assert_rows("mv", (1,), (1,), (2,), (5,), (6,))

"""What people do by hand to internal objects and to the catalog: it heals, or the message says what to do."""

from __future__ import annotations

import pytest

from dbt_openivm.errors import QueryError, UnsafeError
from tests.helpers import World, assert_view_is_exact, has_triggers
from tests.unit.engines import new_world

QUERIES = {
    "p": "SELECT k, sum(x) AS s, max(x) AS m FROM t GROUP BY k",
    "c": "SELECT count(*) AS n, sum(s) AS z FROM p",
    "n": "SELECT s, count(*) AS n FROM (SELECT k, sum(x) AS s FROM t GROUP BY k) GROUP BY s",
}


def made(capture: str) -> World:
    world = new_world(capture, "CREATE TABLE t (k INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    for name, query in QUERIES.items():
        world.create(name, query)
    world.run("INSERT INTO t VALUES (1, 7)")
    for name in QUERIES:
        world.refresh(name)
    return world


def change(world: World) -> None:
    world.run("INSERT INTO t VALUES (2, 30)", "DELETE FROM t WHERE x = 7")


def assert_heals(world: World, new_engine: bool = False) -> None:
    """Every view is exact after a refresh; one whose row in the catalog is gone has to be created again."""
    if new_engine:
        world.ivm = world.new_engine()
    for name, query in QUERIES.items():
        try:
            world.ivm.refresh(name)
        except QueryError:  # its row is gone: "Create it with create_view()"
            world.ivm.create_view(name, query)
        assert_view_is_exact(world.connection, name, query)


def assert_carries_on(world: World) -> None:
    change(world)
    assert [world.refresh(name).strategy for name in QUERIES] == ["incremental"] * len(QUERIES)


def altered(world: World, schema: str) -> list[str]:
    """Ways to alter each column of each table of a schema."""
    found = world.query(
        "SELECT table_name, column_name FROM duckdb_columns() JOIN duckdb_tables() USING (schema_name, table_name) "
        f"WHERE schema_name = '{schema}'"
    )
    statements = []
    for table, column in found:
        alter = f'ALTER TABLE {schema}."{table}"'
        statements += [f"{alter} DROP {column}", f"{alter} RENAME {column} TO other"]
        statements += [f"{alter} ALTER {column} TYPE {kind}" for kind in ("VARCHAR", "DOUBLE")]
    return statements


TABLES = ["catalog", "views", "sources", "delta_tables", "refresh_history"]


@pytest.mark.parametrize(
    "how", ["DROP TABLE IF EXISTS {}", "DELETE FROM {}", "CREATE OR REPLACE TABLE {} (other INTEGER)"]
)
@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_the_catalog(table: str, how: str) -> None:
    world = made("diff")
    for new_engine in (False, True):
        world.run(how.format(f"openivm.openivm_{table}"))
        change(world)
        assert_heals(world, new_engine)
    assert_carries_on(world)


@pytest.mark.parametrize("schema", ["openivm", "openivm_main"])
def test_a_schema(schema: str) -> None:
    world = made("diff")
    world.run(f"DROP SCHEMA {schema} CASCADE")
    change(world)
    assert_heals(world)


def test_every_row_of_the_catalog() -> None:
    world = made("diff")
    keys = ("openivm_views", "view_key"), ("openivm_sources", "source_key"), ("openivm_delta_tables", "source_key")
    for table, key in keys:
        for (value,) in world.query(f"SELECT DISTINCT {key} FROM openivm.{table}"):
            world.run(f"DELETE FROM openivm.{table} WHERE {key} = '{value}'")
            change(world)
            assert_heals(world)


@pytest.mark.parametrize("table", TABLES[1:4])
def test_every_value_of_the_catalog(table: str) -> None:
    world = made("diff")
    for (column,) in world.query(f"SELECT column_name FROM duckdb_columns() WHERE table_name = 'openivm_{table}'"):
        for value in ("NULL", "'{'" if column in ("columns", "state", "sources", "types", "objects") else "NULL"):
            world.run(f"UPDATE openivm.openivm_{table} SET {column} = {value}")
            change(world)
            assert_heals(world)


@pytest.mark.parametrize("schema", ["openivm", "openivm_main"])
def test_every_altered_column(schema: str) -> None:
    """DuckDB itself refuses some; a dropped or retyped column of a log that triggers write stops writers."""
    world = made("diff")
    done = 0
    for statement in altered(world, schema):
        try:
            world.run(statement)
        except Exception:
            continue
        done += 1
        change(world)
        assert_heals(world)
    assert done > 50


def test_an_altered_state_says_so() -> None:
    world = made("diff")
    world.run("ALTER TABLE openivm_main.openivm_data_p DROP COLUMN openivm_count_star")
    assert world.refresh("p").reason == "its internal objects were changed from outside"
    assert world.refresh("c").strategy == "rebuild"


def test_a_full_refresh_of_a_state_that_lost_rows_hands_down_no_wrong_difference() -> None:
    world = made("diff")
    world.run("DELETE FROM openivm_main.openivm_data_p WHERE k = 1")
    assert world.ivm.refresh("p", full=True).strategy == "rebuild"
    assert world.refresh("c").strategy == "rebuild"


@pytest.mark.skipif(not has_triggers(), reason="needs DuckDB 2.0")
def test_an_altered_log_of_triggers() -> None:
    world = made("trigger")
    world.run("ALTER TABLE openivm_main.openivm_delta_t ADD COLUMN other INTEGER")
    assert_heals(world, new_engine=True)


def test_a_catalog_of_another_layout() -> None:
    world = made("diff")
    world.run("UPDATE openivm.openivm_catalog SET version = 99", "DROP TABLE openivm.openivm_sources")
    with pytest.raises(UnsafeError, match="ivm_remove"):
        world.new_engine()
    assert world.query("SELECT count(*) > 0 FROM openivm.openivm_views") == [(True,)]

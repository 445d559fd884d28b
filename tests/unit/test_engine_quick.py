"""Quick refreshes: a view that this engine knows takes the rows that triggers logged, if nobody else follows them."""

from __future__ import annotations

import duckdb
import pytest

from dbt_openivm.engine.maintain import Maintainer
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.names import RelationName
from tests.helpers import World, assert_view_is_exact, has_triggers
from tests.unit.engines import log_rows, new_world

pytestmark = pytest.mark.skipif(not has_triggers(), reason="triggers need DuckDB 2.0")

QUERY = "SELECT g, count(*) AS n, sum(x) AS s, min(x) AS low FROM t GROUP BY g"


@pytest.fixture
def world() -> World:
    world = new_world("trigger", "CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (1, 2), (2, 5)")
    world.create("mv", QUERY)
    world.change("mv", "INSERT INTO t VALUES (3, 3)")  # a proper refresh: from now on the engine knows the view
    return world


def versions(world: World) -> list[tuple[int, int]]:
    """(version of the source, cursor of the view): a quick refresh moves neither."""
    return world.query(
        "SELECT version, cursor FROM openivm.openivm_sources JOIN openivm.openivm_delta_tables USING (source_key)"
    )


def test_the_log_is_taken_without_numbers(world: World) -> None:
    before = versions(world)
    for change in ("INSERT INTO t VALUES (1, 0), (4, 4)", "UPDATE t SET g = g + 1", "DELETE FROM t WHERE g < 4"):
        assert world.change("mv", change).strategy == "incremental"
        assert log_rows(world, "t") == 0
    assert versions(world) == before


def test_a_second_consumer_makes_it_a_proper_refresh(world: World) -> None:
    world.change("mv", "INSERT INTO t VALUES (1, 7)")
    world.create("other", "SELECT x FROM t WHERE x > 1")
    before = versions(world)
    world.change("mv", "INSERT INTO t VALUES (1, 8)")
    assert versions(world) != before
    assert world.refresh("other").strategy == "incremental"
    world.ivm.drop_view("other")
    world.change("mv", "DELETE FROM t WHERE x = 8")
    assert world.change("mv", "DELETE FROM t WHERE x = 7").strategy == "incremental"


def test_a_child_gets_the_published_delta(world: World) -> None:
    world.create("child", "SELECT count(*) AS groups, sum(s) AS s FROM mv")
    for change in ("INSERT INTO t VALUES (9, 1)", "DELETE FROM t WHERE g = 1", "UPDATE t SET x = x * 2"):
        world.change("mv", change)
        assert world.refresh("child").strategy == "incremental"


def test_another_engine_on_the_same_view(world: World) -> None:
    other = world.new_engine(world.connection.cursor())
    for turn in range(4):
        world.run(f"INSERT INTO t VALUES ({turn}, {turn})")
        assert (world.ivm if turn % 2 else other).refresh("mv").strategy == "incremental"
        assert_view_is_exact(world.connection, "mv", QUERY)


def test_a_view_under_construction_loses_nothing(world: World) -> None:
    """Its transaction saw the logged rows, and left them for later; they must still be there then."""
    world.change("mv", "INSERT INTO t VALUES (1, 9)")
    cursor = world.connection.cursor()
    session = DuckDBSession(cursor)
    maintainer = Maintainer(session, "memory", render)
    spec = ViewSpec(RelationName("memory", "main", "second"), "SELECT g, x FROM t", capture="trigger")
    prepared = maintainer.prepare(spec)
    world.run("INSERT INTO t VALUES (5, 50)")
    session.begin()
    maintainer.apply(prepared)
    assert world.ivm.refresh("mv").strategy == "incremental"
    session.commit()
    maintainer.release(prepared)
    assert_view_is_exact(world.connection, "mv", QUERY)
    world.queries["second"] = spec.sql
    world.refresh("second")


def test_damage_is_found(world: World) -> None:
    world.change("mv", "INSERT INTO t VALUES (1, 9)")
    world.run("INSERT INTO t VALUES (2, 9)", "DELETE FROM openivm_main.openivm_data_mv WHERE g = 1")
    assert world.refresh("mv").strategy == "rebuild"
    world.change("mv", "INSERT INTO t VALUES (1, 9)")
    world.run("DROP TRIGGER openivm_delta_t_insert ON t", "INSERT INTO t VALUES (7, 7)")
    assert world.refresh("mv").strategy == "rebuild"
    world.change("mv", "INSERT INTO t VALUES (1, 9)")
    world.run("CREATE OR REPLACE TABLE t AS SELECT 1 AS g, 2 AS x")
    assert world.refresh("mv").strategy == "rebuild"
    world.run("DROP VIEW mv")
    world.refresh("mv")


def test_a_query_that_fails_on_new_rows(world: World) -> None:
    world.run("CREATE TABLE w (s VARCHAR)", "INSERT INTO w VALUES ('1')")
    world.create("numbers", "SELECT s::INTEGER AS n FROM w")
    world.change("numbers", "INSERT INTO w VALUES ('2')")
    world.change("numbers", "INSERT INTO w VALUES ('3')")
    world.run("INSERT INTO w VALUES ('four')")
    with pytest.raises(duckdb.ConversionException):
        world.ivm.refresh("numbers")
    world.assert_rows("numbers", (1,), (2,), (3,))
    assert world.change("numbers", "DELETE FROM w WHERE s = 'four'").strategy in ("incremental", "none")
    assert world.change("numbers", "INSERT INTO w VALUES ('5')").strategy == "incremental"

"""Quick refreshes: a view that this engine knows takes the rows that triggers logged, if nobody else follows them."""

from __future__ import annotations

import time
from typing import Any

import duckdb
import pytest

from dbt_openivm.engine.maintain import Maintainer
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.engine.types import RefreshResult, ViewSpec
from dbt_openivm.errors import QueryError, UnsafeError
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


@pytest.fixture
def proper(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with every refresh that is left to the proper way."""
    seen: list[str] = []
    properly = world.ivm.maintainer.run_properly

    def run_properly(*arguments: Any) -> RefreshResult:
        seen.append(str(arguments[0]))
        return properly(*arguments)

    monkeypatch.setattr(world.ivm.maintainer, "run_properly", run_properly)
    return seen


def test_what_looks_the_same_is_quick(world: World, proper: list[str]) -> None:
    world.change("mv", "INSERT INTO t VALUES (1, 7)")
    assert world.refresh("mv").strategy == "none"
    world.run("CREATE TABLE other (i INTEGER)", "CREATE TEMP TABLE temporary (i INTEGER)", "DROP TABLE other")
    world.change("mv", "DELETE FROM t WHERE x = 7")
    assert not proper


@pytest.mark.parametrize(
    ("error", "statements"),
    [
        (UnsafeError, ["CREATE OR REPLACE VIEW mv AS SELECT 1 AS one"]),
        (UnsafeError, ["DROP VIEW mv", "CREATE TABLE mv AS SELECT 1 AS one"]),
        (QueryError, ["CREATE TEMP TABLE t AS SELECT 8 AS g, 8 AS x"]),
    ],
)
def test_a_name_that_was_taken_is_an_error(
    world: World, proper: list[str], error: type[Exception], statements: list[str]
) -> None:
    world.run(*statements, "INSERT INTO memory.main.t VALUES (5, 5)")
    with pytest.raises(error):
        world.ivm.refresh("main.mv")
    assert proper


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TEMP VIEW t AS SELECT 8 AS g, 8 AS x"],
        ["CREATE SCHEMA o", "CREATE TABLE o.t AS SELECT 7 AS g, 7 AS x", "USE o"],
        ["CREATE SCHEMA o", "CREATE TABLE o.t AS SELECT 7 AS g, 7 AS x", "SET search_path = 'o,main'"],
        ["CREATE OR REPLACE VIEW mv AS SELECT g, n, s, low FROM openivm_main.openivm_visible_mv WHERE true"],
        ["DROP VIEW mv"],
    ],
)
def test_a_name_that_means_something_else_is_noticed(world: World, proper: list[str], statements: list[str]) -> None:
    world.run(*statements, "INSERT INTO memory.main.t VALUES (5, 5)")
    world.ivm.refresh("main.mv")
    assert proper
    assert_view_is_exact(world.connection, "main.mv", QUERY)


@pytest.mark.parametrize(
    ("query", "statement"),
    [
        ("SELECT * FROM t", "ALTER TABLE t ADD COLUMN y INTEGER"),
        ("SELECT g, x / 2 AS half FROM t", "SET integer_division = true"),
    ],
)
def test_what_changes_the_query_is_noticed(world: World, proper: list[str], query: str, statement: str) -> None:
    world.create("rows_of_t", query)
    world.change("rows_of_t", "INSERT INTO t VALUES (6, 1)")
    world.run(statement)
    world.refresh("rows_of_t")
    assert proper


@pytest.mark.parametrize("set_back", [0, 2**60])
def test_an_open_transaction_is_refused_and_stays_open(
    world: World, monkeypatch: pytest.MonkeyPatch, set_back: int
) -> None:
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + set_back)
    for attempt in (lambda: world.ivm.refresh("mv"), lambda: world.ivm.create_view("memory.main.m", QUERY)):
        world.run("BEGIN", "INSERT INTO t VALUES (4, 4)")
        with pytest.raises(UnsafeError, match="transaction is open"):
            attempt()
        world.run("COMMIT")
        world.refresh("mv")


def test_the_version_is_for_consumers(world: World) -> None:
    def version() -> int:
        [(found,)] = world.query("SELECT version FROM openivm.openivm_views WHERE view_name = 'mv'")
        return int(found)

    before = version()
    world.change("mv", "INSERT INTO t VALUES (1, 9)")
    assert version() == before
    world.change("mv", "INSERT INTO t VALUES (17, 9)")  # another number of rows
    assert version() == before + 1
    world.create("child", "SELECT sum(s) AS s FROM mv")
    world.change("mv", "INSERT INTO t VALUES (1, 9)")
    assert world.refresh("child").strategy == "incremental"


def test_a_consumer_under_construction_finds_out_that_it_missed_a_refresh(world: World) -> None:
    """Its transaction does not see a quick refresh that is committed before its own."""
    session = DuckDBSession(world.connection.cursor())
    maintainer = Maintainer(session, "memory", render)
    spec = ViewSpec(RelationName("memory", "main", "child"), "SELECT sum(s) AS s FROM mv", capture="trigger")
    prepared = maintainer.prepare(spec)
    session.begin()
    maintainer.apply(prepared)
    world.change("mv", "INSERT INTO t VALUES (30, 1)")  # properly: a view is being built
    world.change("mv", "INSERT INTO t VALUES (1, 9)")
    session.commit()
    maintainer.release(prepared)
    world.queries["child"] = spec.sql
    world.change("mv", "INSERT INTO t VALUES (1, 11)")
    world.refresh("child")

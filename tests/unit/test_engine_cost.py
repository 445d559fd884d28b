"""Incremental or full: by cost, by configuration, by necessity; and what history says of it."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_openivm import IvmEngine
from dbt_openivm.engine import cost
from dbt_openivm.errors import UnsupportedError
from tests.helpers import World, assert_view_is_exact
from tests.unit.engines import history, new_world, refused

SUM = "SELECT k, sum(x) AS s FROM t GROUP BY k"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(cost, "SMALL", 10)
    return new_world(
        "diff", "CREATE TABLE t (k INTEGER, x INTEGER)", "INSERT INTO t SELECT i % 7, i FROM range(100) AS r(i)"
    )


def engine(world: World, mode: str) -> Any:
    return IvmEngine(world.connection, refresh_mode=mode)


def refresh_after(world: World, mode: str, rows: int) -> Any:
    world.run(f"INSERT INTO t SELECT i % 7, i FROM range({rows}) AS r(i)")
    result = engine(world, mode).refresh("mv")
    assert_view_is_exact(world.connection, "mv", SUM)
    return result


@pytest.mark.parametrize(
    ("mode", "rows", "strategy"),
    [
        ("auto", 5, "incremental"),
        ("auto", 25, "incremental"),
        ("auto", 100, "full"),
        ("incremental", 100, "incremental"),
        ("strict", 100, "incremental"),
        ("full", 1, "full"),
        ("full", 0, "none"),
    ],
)
def test_modes(world: World, mode: str, rows: int, strategy: str) -> None:
    world.create("mv", SUM)
    assert refresh_after(world, mode, rows).strategy == strategy


def test_a_full_refresh_by_cost_says_why(world: World) -> None:
    world.create("mv", SUM)
    reason = refresh_after(world, "auto", 100).reason
    assert "100 changes" in reason
    assert "cheaper" in reason
    assert refresh_after(world, "full", 1).reason == "refresh_mode is 'full'"


def test_a_full_refresh_by_cost_still_publishes_a_delta(world: World) -> None:
    world.create("mv", SUM)
    world.create("child", "SELECT sum(s) AS total FROM mv")
    assert refresh_after(world, "auto", 100).strategy == "full"
    result = engine(world, "incremental").refresh("child")
    assert (result.strategy, result.delta_rows) == ("incremental", 14)  # seven groups out, seven in
    world.refresh("child")


def test_strict_refuses_what_is_only_refreshed_in_full(world: World) -> None:
    strict = engine(world, "strict")
    with refused(world, UnsupportedError, "mv", "LIMIT without ORDER BY at line 2", "strict", "auto"):
        strict.create_view("mv", "SELECT k FROM t\nLIMIT 3")
    assert not world.query("SELECT * FROM duckdb_views() WHERE view_name = 'mv'")


def test_strict_refuses_a_view_that_became_unsupported(world: World) -> None:
    world.run("CREATE VIEW v AS SELECT k, x FROM t")
    world.create("mv", "SELECT k FROM v")
    world.run("CREATE OR REPLACE VIEW v AS SELECT k, x FROM t LIMIT 3")
    before = world.rows("mv")
    with refused(world, UnsupportedError, "mv", "view memory.main.v"):
        engine(world, "strict").refresh("mv")
    assert world.rows("mv") == before


def test_an_unsupported_query_is_refreshed_in_full_only_if_a_source_changed(world: World) -> None:
    world.create("mv", "SELECT k FROM t WHERE x < 5 LIMIT 1000", "FULL_REFRESH")
    assert world.ivm.refresh("mv").strategy == "none"
    result = world.change("mv", "INSERT INTO t VALUES (1, -1)")
    assert (result.strategy, result.delta_rows) == ("full", 1)
    assert "LIMIT without ORDER BY at line 1" in result.reason


def test_a_volatile_query_is_refreshed_in_full_every_time(world: World) -> None:
    world.ivm.create_view("mv", "SELECT max(x) AS m, now() AS at_time FROM t".replace("at_time", "seen"))
    for _ in range(2):
        result = world.ivm.refresh("mv")
        assert (result.strategy, result.refresh_type) == ("full", "FULL_REFRESH")
        assert result.reason.startswith("now() at line 1")


def test_rows_leave_as_time_passes(world: World) -> None:
    world.run("CREATE TABLE events (seen TIMESTAMPTZ)", "INSERT INTO events VALUES (now() + INTERVAL 100 MILLISECONDS)")
    world.ivm.create_view("mv", "SELECT count(*) AS n FROM events WHERE seen > now()")
    assert world.rows("mv") == [(1,)]
    world.query("SELECT sum(hash(i)) FROM range(1) AS r(i)")
    import time

    time.sleep(0.15)
    world.ivm.refresh("mv")
    assert world.rows("mv") == [(0,)]


def test_history_has_a_row_a_refresh(world: World) -> None:
    world.create("mv", SUM)
    refresh_after(world, "auto", 3)
    engine(world, "auto").refresh("mv")  # nothing changed: nothing is written
    refresh_after(world, "full", 2)
    rows = history(world, "mv")
    assert [row[0] for row in rows] == ["build", "incremental", "full"]
    assert [row[2] for row in rows] == [0, 3, 2]
    [(steps, ms)] = world.query("SELECT steps, ms FROM openivm.openivm_refresh_history WHERE strategy = 'incremental'")
    assert "merge the delta" in steps
    assert ms > 0


def test_messages_for_people(world: World) -> None:
    world.create("mv", SUM)
    world.run("INSERT INTO t VALUES (1, 1), (100, 1)")
    result = world.ivm.refresh("mv")
    assert result.message == "AGGREGATE_GROUP incremental: 2 changes in, 2 rows changed"
    assert world.ivm.refresh("mv").message == "AGGREGATE_GROUP: no change"
    assert world.ivm.refresh("mv", full=True).message == "rebuilt: a full refresh was asked for; 8 rows"

"""Case 33 and its kind: views whose rows change as time passes."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from dbt_openivm import IvmEngine
from tests.helpers import World, assert_view_is_exact, internal_rows

NOON = datetime(2026, 3, 4, 12, tzinfo=timezone.utc)

QUERIES = {
    "a sliding window": "SELECT x FROM t WHERE ts > {now} - INTERVAL 1 HOUR",
    "both bounds": "SELECT x FROM t WHERE ts BETWEEN {now} - INTERVAL 1 HOUR AND {now}",
    "a truncated bound": "SELECT x FROM t WHERE ts >= date_trunc('day', {now})",
    "a date": "SELECT x FROM t WHERE d >= {today} - 1",
    "one day": "SELECT x FROM t WHERE d = {today}",
    "every other day": "SELECT x FROM t WHERE d <> {today}",
    "the clock on both sides": "SELECT x FROM t WHERE {now} - ts < INTERVAL 2 HOUR AND {today} - d <= 1",
    "a local time": "SELECT x FROM t WHERE ts::TIMESTAMP > {local} - INTERVAL 1 HOUR",
    "or": "SELECT x FROM t WHERE x = 1 OR ts > {now} - INTERVAL 90 MINUTE",
    "case": "SELECT x FROM t WHERE CASE WHEN x > 2 THEN ts > {now} ELSE ts < {now} - INTERVAL 1 HOUR END",
    "an hour of the day": "SELECT x FROM t WHERE extract('hour' FROM {now}) % 2 = x % 2",
    "a bound of the row's own": "SELECT x FROM t WHERE ts > {now} - to_minutes(x * 20)",
    "groups": "SELECT g, count(*) AS n, min(x) AS m FROM t WHERE ts > {now} - INTERVAL 1 HOUR GROUP BY g",
    "one row": "SELECT count(*) AS n, sum(x) AS s FROM t WHERE ts > {now} - INTERVAL 1 HOUR",
    "distinct": "SELECT DISTINCT g FROM t WHERE ts > {now} - INTERVAL 1 HOUR",
    "touched groups": "SELECT g, median(x) AS m FROM t WHERE ts > {now} - INTERVAL 1 HOUR GROUP BY g",
    "filter of an aggregate": "SELECT g, count(*) FILTER (WHERE ts > {now}) AS n, "
    "sum(CASE WHEN ts > {now} - INTERVAL 1 HOUR THEN x END) AS s FROM t GROUP BY g",
    "having": "SELECT g, max(ts) AS m FROM t GROUP BY g HAVING max(ts) > {now} - INTERVAL 1 HOUR",
    "a flag": "SELECT x, ts > {now} AS later, CASE WHEN ts > {now} THEN 'to come' ELSE 'past' END AS w FROM t",
    "a key": "SELECT ts > {now} AS later, count(*) AS n FROM t GROUP BY 1",
    "an age": "SELECT x, {today} - d AS age FROM t",
    "inner join": "SELECT t.x, u.y FROM t JOIN u ON t.g = u.g AND t.ts > {now} - INTERVAL 1 HOUR",
    "a condition on both": "SELECT t.x, u.y FROM t JOIN u ON t.g = u.g AND t.ts + u.y * INTERVAL 20 MINUTE > {now}",
    "left join": "SELECT t.x, u.y FROM t LEFT JOIN u ON t.g = u.g AND u.ts > {now} - INTERVAL 1 HOUR",
    "left join by the left": "SELECT t.x, u.y FROM t LEFT JOIN u ON t.g = u.g AND t.ts > {now} - INTERVAL 1 HOUR",
    "full join": "SELECT t.x, u.y FROM t FULL JOIN u ON t.g = u.g AND t.ts > {now} AND u.ts < {now}",
    "semi join": "SELECT x FROM t SEMI JOIN u ON t.g = u.g AND u.ts > {now} - INTERVAL 1 HOUR",
    "anti join": "SELECT x FROM t ANTI JOIN u ON t.g = u.g AND u.ts > {now} - INTERVAL 1 HOUR",
    "anti join by the left": "SELECT x FROM t ANTI JOIN u ON t.g = u.g AND t.ts > {now} - INTERVAL 1 HOUR",
    "not exists": "SELECT x FROM t WHERE NOT EXISTS "
    "(SELECT 1 FROM u WHERE u.g = t.g AND u.ts BETWEEN {now} - INTERVAL 1 HOUR AND {now})",
    "a cte of bounds": "WITH p AS (SELECT {now} - INTERVAL 1 HOUR AS low, {today} AS today) "
    "SELECT x FROM t, p WHERE ts > p.low AND d <= p.today",
    "a cte used twice": "WITH r AS (SELECT * FROM t WHERE ts > {now} - INTERVAL 1 HOUR) "
    "SELECT r.x, q.n FROM r JOIN (SELECT g, count(*) AS n FROM r GROUP BY g) AS q ON q.g = r.g",
    "union": "SELECT x FROM t WHERE ts > {now} UNION ALL SELECT y FROM u WHERE ts <= {now}",
    "above groups": "SELECT q.n FROM (SELECT g, count(*) AS n, max(ts) AS m FROM t GROUP BY g) AS q WHERE q.m > {now}",
}


class Clock:
    """A world whose time a test sets."""

    def __init__(self, connection: Any, capture: str) -> None:
        self.connection = connection
        self.now = NOON
        self.ivm = IvmEngine(connection, capture=capture, clock=lambda: self.now)

    def at(self, query: str) -> str:
        """The query with the clock stopped at this instant."""
        now = f"TIMESTAMPTZ '{self.now.isoformat()}'"
        return query.format(now=now, today=f"CAST({now} AS DATE)", local=f"CAST({now} AS TIMESTAMP)")

    def check(self, query: str, *views: str) -> None:
        for view in views:
            self.ivm.refresh(view)
            assert_view_is_exact(self.connection, view, self.at(query))
        before = internal_rows(self.connection)
        for view in views:
            assert self.ivm.refresh(view).strategy == "none"
        assert internal_rows(self.connection) == before


@pytest.fixture
def clock(world: World) -> Clock:
    world.run(
        "CREATE TABLE t (g INTEGER, x INTEGER, ts TIMESTAMPTZ, d DATE)",
        "CREATE TABLE u (g INTEGER, y INTEGER, ts TIMESTAMPTZ)",
        "INSERT INTO t SELECT i % 3, i % 5, w, w::DATE FROM (SELECT i, TIMESTAMPTZ '2026-03-03 12:10:00+00' "
        "+ i * INTERVAL 50 MINUTE AS w FROM range(60) AS r(i))",
        "INSERT INTO t VALUES (NULL, 1, NULL, NULL), (1, NULL, '2026-03-04 12:00:00+00', NULL)",
        "INSERT INTO u SELECT g, x, ts + INTERVAL 7 MINUTE FROM t WHERE x < 3",
    )
    return Clock(world.connection, world.capture)


@pytest.mark.parametrize("name", QUERIES)
def test_case_33_time_passes(clock: Clock, name: str) -> None:
    """With changes and without any, a little and a day later, and back: exact, and a child follows by the delta."""
    query = QUERIES[name]
    info = clock.ivm.create_view("mv", query.format(now="now()", today="current_date", local="localtimestamp"))
    assert info.refresh_type != "FULL_REFRESH", info.reason
    clock.ivm.create_view("child", "SELECT * FROM mv")
    for minutes in (30, 1, 600, 1440, -60):
        clock.now += timedelta(minutes=minutes)
        clock.check(query, "mv", "child")
        clock.connection.execute("UPDATE t SET x = x + 1, ts = ts + INTERVAL 3 HOUR WHERE g = 1")
        clock.connection.execute("DELETE FROM u WHERE y = 2")
        clock.connection.execute("INSERT INTO u SELECT g, 2, ts + INTERVAL 9 HOUR FROM t WHERE x = 4")
        clock.check(query, "mv", "child")


def test_case_33_rows_leave_as_time_passes(world: World) -> None:
    """With DuckDB's own clock."""
    world.run("CREATE TABLE t (ts TIMESTAMPTZ, x INTEGER)")
    world.run("INSERT INTO t VALUES (now(), 1), (now() - INTERVAL 2 HOUR, 2), (now() + INTERVAL 1 DAY, 3)")
    info = world.ivm.create_view("mv", "SELECT x FROM t WHERE ts > now() - INTERVAL 3 SECOND")
    assert info.refresh_type == "SIMPLE_PROJECTION"
    world.assert_rows("mv", (1,), (3,))
    while world.query("SELECT count(*) FROM t WHERE ts > now() - INTERVAL 3 SECOND") != [(1,)]:
        time.sleep(0.1)
    result = world.ivm.refresh("mv")
    assert (result.strategy, result.changed_rows) == ("incremental", 1)
    world.assert_rows("mv", (3,))
    assert world.ivm.refresh("mv").strategy == "none"


def test_only_what_crosses_is_read(clock: Clock) -> None:
    clock.ivm.create_view("mv", "SELECT x FROM t WHERE ts > now() - INTERVAL 1 HOUR")
    clock.now += timedelta(minutes=50)
    result = clock.ivm.refresh("mv")
    assert (result.strategy, result.delta_rows, result.changed_rows) == ("incremental", 1, 1)
    clock.now += timedelta(seconds=1)
    assert clock.ivm.refresh("mv").strategy == "none"


def test_another_process_carries_on_from_the_last_instant(clock: Clock) -> None:
    query = "SELECT x FROM t WHERE ts > {now} - INTERVAL 1 HOUR"
    clock.ivm.create_view("mv", query.format(now="now()"))
    clock.now += timedelta(hours=3)
    clock.ivm = IvmEngine(clock.connection, clock=lambda: clock.now)
    clock.check(query, "mv")


def test_a_change_of_the_time_zone_moves_the_day(clock: Clock) -> None:
    query = "SELECT x FROM t WHERE d = {today}"
    clock.ivm.create_view("mv", query.format(today="current_date"))
    clock.connection.execute("SET TimeZone = 'Pacific/Kiritimati'")
    assert clock.ivm.refresh("mv").strategy == "rebuild"
    clock.check(query, "mv")


def test_what_time_moves_altogether_is_recomputed(clock: Clock) -> None:
    """Where most rows cross at once, a recompute is cheaper, and the result says so."""
    clock.connection.execute("INSERT INTO t SELECT 1, 1, '2026-03-04 12:30:00+00', NULL FROM range(20000)")
    clock.ivm.create_view("mv", "SELECT x FROM t WHERE ts > now()")
    clock.now += timedelta(hours=1)
    result = clock.ivm.refresh("mv")
    assert result.strategy == "full"
    assert "recomputing is cheaper" in result.reason
    clock.check("SELECT x FROM t WHERE ts > {now}", "mv")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x, now() AS v FROM t",
        "SELECT x, now() - ts AS v FROM t",
        "SELECT max(now() - ts) AS v FROM t",
        "SELECT x FROM t ORDER BY now() - ts LIMIT 3",
        "SELECT x, age(ts) AS v FROM t",
        "SELECT t.x FROM t LEFT JOIN u ON t.g = u.g AND t.ts + (u.ts - now()) > now()",
        "SELECT x FROM t WHERE random() < 0.5 AND ts > now()",
    ],
)
def test_what_changes_everywhere_is_refreshed_in_full(clock: Clock, query: str) -> None:
    info = clock.ivm.create_view("mv", query)
    assert info.refresh_type == "FULL_REFRESH"
    assert any(word in info.reason for word in ("now()", "age()", "random()")), info.reason
    assert clock.ivm.refresh("mv").strategy == "full"


def test_explain_shows_the_moving_boundary(clock: Clock) -> None:
    text = clock.ivm.explain("SELECT x FROM t WHERE ts > now() - INTERVAL 1 HOUR")
    assert "Moving filter ts > NOW() - INTERVAL '1' HOUR" in text
    assert "-- find the rows that crossed" in text

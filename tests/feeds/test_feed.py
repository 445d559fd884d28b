"""What a change feed keeps, for how long, and who is told what."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb
import pytest

from dbt_openivm import IvmEngine
from dbt_openivm.errors import ConfigError, UnsafeError
from tests.feeds.copies import assert_equal, replay
from tests.helpers import connect, has_triggers

SUMS = "SELECT g, SUM(x) AS s FROM t GROUP BY g"
TABLE = "openivm_main.openivm_delta_mv"


class Feed:
    """A view `mv` with a change feed, on an engine whose clock is ours. Refreshes are quick ones where they can be."""

    def __init__(self, retention: str | None = None) -> None:
        self.connection: Any = connect()
        self.time = datetime(2026, 1, 1, tzinfo=timezone.utc)
        self.run("SET TimeZone = 'UTC'", "CREATE TABLE t AS SELECT 1 AS g, 100 AS x")
        self.ivm = self.new_engine()
        self.ivm.create_view("mv", SUMS, change_feed=True, change_feed_retention=retention)

    def new_engine(self) -> IvmEngine:
        return IvmEngine(self.connection, "trigger" if has_triggers() else "diff", clock=lambda: self.time)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def insert(self, *rows: int, days: int = 0) -> None:
        """Refresh once a row, then let days pass."""
        for row in rows:
            self.run(f"INSERT INTO t VALUES ({row}, {row})")
            self.ivm.refresh("mv")
        self.time += timedelta(days=days)

    def kept(self) -> list[tuple[int, int, int]]:
        return self.connection.execute(f"SELECT g, s, openivm_multiplicity FROM {TABLE} ORDER BY ALL").fetchall()

    def read(self, consumer: str, after: int | None = None) -> list[tuple[int, int, int]]:
        rows = self.connection.execute(self.ivm.changes("mv", consumer, after).sql).fetchall()
        return sorted(row[:3] for row in rows)

    def complete(self) -> dict[str, bool]:
        return {consumer.name: consumer.complete for consumer in self.ivm.consumers("mv")}


@pytest.fixture
def feed() -> Iterator[Feed]:
    feed = Feed()
    yield feed
    feed.connection.close()


def test_without_consumers_changes_are_kept_for_the_retention(feed: Feed) -> None:
    feed.insert(2, days=4)
    feed.insert(3, days=4)
    assert feed.kept() == [(2, 2, 1), (3, 3, 1)]
    assert feed.connection.execute(f"SELECT openivm_timestamp::DATE::VARCHAR FROM {TABLE} ORDER BY g").fetchall() == [
        ("2026-01-01",),
        ("2026-01-05",),
    ]
    assert feed.ivm.maintainer.quick.knows("memory.main.mv") == has_triggers()
    feed.insert(4)  # the first change is 8 days old, the second 4
    assert feed.kept() == [(3, 3, 1), (4, 4, 1)]


def test_another_engine_goes_on_with_the_feed(feed: Feed) -> None:
    feed.insert(2)
    feed.ivm = feed.new_engine()
    feed.insert(3)
    feed.ivm.create_view("mv", SUMS + " HAVING g > 0")  # says nothing of a feed
    feed.insert(4)
    assert feed.kept() == [(2, 2, 1), (3, 3, 1), (4, 4, 1)]


def test_what_all_consumers_have_goes_before_its_time(feed: Feed) -> None:
    feed.ivm.register_consumer("mv", "a")
    feed.ivm.register_consumer("mv", "b")
    feed.insert(2)
    feed.ivm.acknowledge("mv", "a", feed.ivm.changes("mv", "a").version)
    feed.insert(3)
    assert feed.kept() == [(2, 2, 1), (3, 3, 1)]
    feed.ivm.acknowledge("mv", "b", feed.ivm.changes("mv", "b").version)
    feed.insert(4)
    assert feed.kept() == [(3, 3, 1), (4, 4, 1)]
    lags = [consumer.lag for consumer in feed.ivm.consumers("mv")]
    assert [lag and (lag.batches, lag.rows) for lag in lags] == [(2, 2), (1, 1)]


def test_whoever_falls_behind_the_retention_is_told(feed: Feed) -> None:
    """Nothing is skipped without a word: by reading, acknowledging, registering, or SQL that was asked for before."""
    for name in ("behind", "early"):
        feed.ivm.register_consumer("mv", name, snapshot=name == "early")
    feed.insert(2, days=4)
    version = feed.ivm.acknowledge("mv", "early", feed.ivm.changes("mv", "early").version).version
    before = feed.ivm.changes("mv", "behind")
    [behind, _] = feed.ivm.consumers("mv")
    assert behind.lag is not None
    assert behind.lag.seconds == 4 * 86400
    feed.time += timedelta(days=4)
    feed.insert(3)
    assert feed.complete() == {"behind": False, "early": True}
    assert feed.read("early") == [(3, 3, 1)]
    for call in (
        lambda: feed.ivm.changes("mv", "behind"),
        lambda: feed.ivm.changes("mv", "behind", version),
        lambda: feed.ivm.acknowledge("mv", "behind", version),
        lambda: feed.ivm.register_consumer("mv", "behind", snapshot=True),
    ):
        with pytest.raises(ConfigError, match=r"missed changes.*retention.*Unregister.*register it again with a snap"):
            call()
    with pytest.raises(duckdb.InvalidInputException, match="behind was about to read are not all there"):
        feed.connection.execute(before.sql)
    feed.ivm.unregister_consumer("mv", "behind")
    feed.ivm.register_consumer("mv", "behind", snapshot=True)
    assert feed.read("behind") == [(1, 100, 1), (2, 2, 1), (3, 3, 1)]


def test_consumers_that_fell_behind_let_nothing_go(feed: Feed) -> None:
    feed.ivm.register_consumer("mv", "behind")
    feed.insert(2, days=8)
    feed.insert(3, 4, 5)
    assert feed.complete() == {"behind": False}
    assert feed.kept() == [(3, 3, 1), (4, 4, 1), (5, 5, 1)]


def test_a_retention_without_end() -> None:
    feed = Feed("forever")
    feed.ivm.register_consumer("mv", "reader")
    feed.insert(2, days=10_000)
    feed.insert(3)
    assert feed.complete() == {"reader": True}
    assert feed.read("reader") == [(2, 2, 1), (3, 3, 1)]


def test_a_clock_that_goes_backwards_leaves_no_gap(feed: Feed) -> None:
    feed.insert(2, days=-20)
    feed.insert(3, days=24)  # later than 2, and older by its time
    feed.insert(4)
    assert feed.kept() == [(2, 2, 1), (3, 3, 1), (4, 4, 1)]
    feed.time += timedelta(days=5)
    feed.insert(5)
    assert feed.kept() == [(4, 4, 1), (5, 5, 1)]


def test_a_snapshot_is_the_view_as_it_was_when_asked_for(feed: Feed) -> None:
    """Refreshes between asking and reading change nothing, nor do they lose what comes after it."""
    feed.ivm.register_consumer("mv", "reader", snapshot=True)
    feed.insert(2)
    changes = feed.ivm.changes("mv", "reader")
    feed.insert(1, 2, 3)
    feed.run("DELETE FROM t WHERE g = 1")
    feed.insert(4)
    assert sorted(row[:3] for row in feed.connection.execute(changes.sql).fetchall()) == [(1, 100, 1), (2, 2, 1)]
    feed.run("CREATE TABLE copy AS FROM mv LIMIT 0")
    replay(feed.connection, changes, "copy")
    feed.ivm.acknowledge("mv", "reader", changes.version)
    replay(feed.connection, feed.ivm.changes("mv", "reader"), "copy")
    assert_equal(feed.connection, "copy", "mv")


def test_positions_that_are_kept_with_the_data(feed: Feed) -> None:
    """A consumer may know better than by what it acknowledged, but not ask for what was not kept for it."""
    feed.ivm.register_consumer("mv", "reader", snapshot=True)
    first = feed.ivm.changes("mv", "reader", 0)
    assert first.snapshot
    feed.insert(2)
    assert feed.read("reader", first.version) == [(2, 2, 1)]  # it crashed before it acknowledged the snapshot
    feed.insert(3)
    last = feed.ivm.changes("mv", "reader").version
    feed.ivm.acknowledge("mv", "reader", last - 1)
    assert feed.read("reader", last - 1) == feed.read("reader") == [(3, 3, 1)]
    assert feed.read("reader", last) == []
    for after in (0, last - 2, last + 1, -1, True, "1"):
        with pytest.raises(ConfigError, match="reads the changes after batch"):
            feed.ivm.changes("mv", "reader", after)


def test_acknowledged_changes_are_not_read_again(feed: Feed) -> None:
    feed.ivm.register_consumer("mv", "reader")
    feed.insert(2)
    changes = feed.ivm.changes("mv", "reader")
    feed.ivm.acknowledge("mv", "reader", changes.version)
    with pytest.raises(duckdb.InvalidInputException, match="acknowledged later ones"):
        feed.connection.execute(changes.sql)


def test_it_goes_on_and_off_without_a_rebuild(feed: Feed) -> None:
    feed.insert(2)
    feed.ivm.create_view("mv", SUMS, change_feed=False)
    assert not feed.connection.execute("FROM duckdb_tables() WHERE table_name LIKE 'openivm_delta_mv%'").fetchall()
    feed.insert(3)
    feed.ivm.create_view("mv", SUMS, change_feed=True, change_feed_retention="1 day")
    feed.insert(4, days=2)
    feed.insert(5)
    assert feed.kept() == [(5, 5, 1)]
    strategies = feed.connection.execute("SELECT DISTINCT strategy FROM openivm.openivm_refresh_history").fetchall()
    assert sorted(strategies) == [("build",), ("incremental",)]


def test_turned_off_it_keeps_what_consumers_wait_for(feed: Feed) -> None:
    feed.ivm.register_consumer("mv", "reader")
    feed.insert(2)
    feed.ivm.create_view("mv", SUMS, change_feed=False)
    feed.insert(3, days=30)
    feed.insert(4)
    assert feed.read("reader") == [(2, 2, 1), (3, 3, 1), (4, 4, 1)]


def test_it_outlives_its_consumers(feed: Feed) -> None:
    feed.ivm.register_consumer("mv", "reader")
    feed.insert(2)
    feed.ivm.unregister_consumer("mv", "reader")
    feed.insert(3)
    assert feed.kept() == [(2, 2, 1), (3, 3, 1)]


def test_rebuilds(feed: Feed) -> None:
    """The difference of old and new rows is one more batch, also of another query with the same columns."""
    feed.ivm.register_consumer("mv", "reader", snapshot=True)
    feed.run("CREATE TABLE copy AS FROM mv LIMIT 0")
    for change in (
        lambda: feed.ivm.refresh("mv", full=True),
        lambda: feed.ivm.create_view("mv", "SELECT g, SUM(x) + 1 AS s FROM t WHERE g > 1 GROUP BY g"),
        lambda: feed.ivm.create_view("mv", SUMS),
    ):
        feed.run("INSERT INTO t VALUES (1, 1), (2, 2)")
        change()
        changes = feed.ivm.changes("mv", "reader")
        replay(feed.connection, changes, "copy")
        assert_equal(feed.connection, "copy", "mv")
        feed.ivm.acknowledge("mv", "reader", changes.version)


def test_other_columns(feed: Feed) -> None:
    """Changes of the old shape go; consumers are told, and may read the new one from its beginning."""
    feed.ivm.register_consumer("mv", "reader")
    feed.insert(2)
    before = feed.ivm.changes("mv", "reader")
    feed.ivm.create_view("mv", "SELECT g, COUNT(*) AS n FROM t GROUP BY g")
    assert feed.complete() == {"reader": False}
    with pytest.raises(duckdb.Error):
        feed.connection.execute(before.sql)
    feed.ivm.unregister_consumer("mv", "reader")
    feed.ivm.register_consumer("mv", "reader", snapshot=True)
    assert feed.read("reader") == [(1, 1, 1), (2, 1, 1)]


def test_dropping(feed: Feed) -> None:
    feed.ivm.register_consumer("mv", "reader", snapshot=True)
    with pytest.raises(UnsafeError, match="read by reader"):
        feed.ivm.drop_view("mv")
    feed.ivm.unregister_consumer("mv", "reader")
    feed.ivm.drop_view("mv")
    assert not feed.connection.execute("FROM duckdb_tables() WHERE table_name LIKE 'openivm_delta_mv%'").fetchall()


def test_a_damaged_feed_is_told(feed: Feed) -> None:
    feed.ivm.register_consumer("mv", "reader", snapshot=True)
    feed.insert(2)
    feed.run(f"DROP TABLE {TABLE}")
    assert feed.complete() == {"reader": False}
    feed.ivm = feed.new_engine()
    feed.insert(3)
    assert feed.complete() == {"reader": False}
    assert feed.kept() == [(3, 3, 1)]


def test_a_crash_while_registering_or_acknowledging_loses_nobody(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.ivm.register_consumer("mv", "reader")
    feed.insert(2)
    version = feed.ivm.changes("mv", "reader").version
    execute = type(feed.ivm.session).execute

    def crashing(session: Any, sql: str) -> Any:
        if sql.startswith("INSERT"):
            raise KeyboardInterrupt
        return execute(session, sql)

    with monkeypatch.context() as patch:
        patch.setattr(type(feed.ivm.session), "execute", crashing)
        with pytest.raises(KeyboardInterrupt):
            feed.ivm.acknowledge("mv", "reader", version)
    assert feed.read("reader") == [(2, 2, 1)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"change_feed": "yes"}, "change_feed is 'yes', expected True, False or None"),
        ({"change_feed": True, "change_feed_retention": "a week"}, "expected an interval such as '7 days'"),
        ({"change_feed": True, "change_feed_retention": 7}, "change_feed_retention is 7"),
        ({"change_feed_retention": "7 days"}, "change_feed is not True"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], expected: str) -> None:
    with connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS g, 1 AS x")
        with pytest.raises(ConfigError, match=expected):
            IvmEngine(connection).create_view("mv", SUMS, **settings)

"""A refresh that runs out of memory is done in another way, with real memory limits; the view is exact afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dbt_openivm import IvmEngine
from dbt_openivm.engine.ways import ASKED, Way, next_way, saving_memory
from dbt_openivm.errors import UnsafeError

ROWS = 300_000
GROUPS = "SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k"
BAG = "SELECT k, x FROM t WHERE x >= 0"
CHANGES = ("INSERT INTO t SELECT i, 1 FROM range(150000) r(i)", "DELETE FROM t WHERE k % 10 = 3")
SETTINGS = "SELECT current_setting('threads'), current_setting('preserve_insertion_order')"


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Any]:
    with duckdb.connect(str(tmp_path / "a.duckdb"), config={"threads": 2}) as opened:
        opened.execute("CREATE TABLE t (k INTEGER, x INTEGER)")
        opened.execute(f"INSERT INTO t SELECT i, i % 100 FROM range({ROWS}) r(i)")
        yield opened


def engine(connection: Any, mode: str = "incremental", **settings: Any) -> IvmEngine:
    return IvmEngine(connection, "trigger" if duckdb.__version__ >= "2" else "diff", refresh_mode=mode, **settings)


def refresh_within(connection: Any, memory: str, ivm: IvmEngine, view: str) -> Any:
    connection.execute(f"SET memory_limit = '{memory}'")
    try:
        return ivm.refresh(view)
    finally:
        connection.execute("SET memory_limit = '2GB'")
        assert connection.execute(SETTINGS).fetchall() == [(2, True)]


def assert_equal(connection: Any, view: str, query: str) -> None:
    """As bags, compared inside DuckDB: there are many rows."""
    for one, other in ((f"FROM {view}", query), (query, f"FROM {view}")):
        assert connection.execute(f"SELECT count(*) FROM (({one}) EXCEPT ALL ({other}))").fetchall() == [(0,)]


def test_groups_take_their_delta_in_batches(connection: Any) -> None:
    ivm = engine(connection, apply_strategy="merge")
    ivm.create_view("mv", GROUPS)
    ivm.create_view("reader", "SELECT n, count(*) AS groups FROM mv GROUP BY n")
    for change in CHANGES:
        connection.execute(change)
    result = refresh_within(connection, "28MB", ivm, "mv")
    assert (result.strategy, result.changed_rows) == ("incremental", 165_000)
    assert result.reason.startswith("done again with less memory (Out of Memory Error")
    assert result.reason in result.message
    assert_equal(connection, "mv", GROUPS)
    assert ivm.refresh("reader").strategy == "incremental"
    assert_equal(connection, "reader", "SELECT n, count(*) AS groups FROM mv GROUP BY n")
    said = (
        "SELECT reason FROM openivm.openivm_refresh_history WHERE view_key = 'a.main.mv' AND strategy = 'incremental'"
    )
    assert connection.execute(said).fetchall() == [(result.reason,)]


def test_what_has_no_batches_is_recomputed(connection: Any) -> None:
    ivm = engine(connection)
    ivm.create_view("mv", BAG)
    connection.execute("DELETE FROM t WHERE k % 2 = 0")
    result = refresh_within(connection, "14MB", ivm, "mv")
    assert result.strategy == "full"
    assert result.reason.startswith("too little memory to apply the change (Out of Memory Error")
    assert_equal(connection, "mv", BAG)
    connection.execute("DELETE FROM t WHERE k % 3 = 0")
    assert ivm.refresh("mv").reason is None
    assert_equal(connection, "mv", BAG)


def test_where_even_the_difference_is_too_much_consumers_start_anew(connection: Any) -> None:
    ivm, query = engine(connection), "SELECT x, count(*) AS n FROM mv GROUP BY x"
    ivm.create_view("mv", BAG)
    ivm.create_view("reader", query)
    connection.execute("DELETE FROM t WHERE k % 2 = 0")
    result = refresh_within(connection, "12MB", ivm, "mv")
    assert (result.strategy, result.reason[:43]) == ("rebuild", "too little memory to tell others what chang")
    assert_equal(connection, "mv", BAG)
    assert ivm.refresh("reader").strategy == "rebuild"
    assert_equal(connection, "reader", query)


def test_strict_never_recomputes(connection: Any) -> None:
    ivm = engine(connection, "strict")
    ivm.create_view("mv", BAG)
    connection.execute("CREATE TABLE before AS FROM mv")
    connection.execute("DELETE FROM t WHERE k % 2 = 0")
    with pytest.raises(duckdb.OutOfMemoryException):
        refresh_within(connection, "14MB", ivm, "mv")
    assert_equal(connection, "mv", "FROM before")
    assert ivm.refresh("mv").strategy == "incremental"
    assert_equal(connection, "mv", BAG)


def test_a_locked_configuration_stays_as_it_is(connection: Any) -> None:
    connection.execute("SET lock_configuration = true")
    with saving_memory(engine_session(connection)):
        assert connection.execute(SETTINGS).fetchall() == [(2, True)]


def test_settings_come_back_after_a_failure(connection: Any) -> None:
    def fail() -> None:
        with saving_memory(engine_session(connection)):
            assert connection.execute(SETTINGS).fetchall() == [(1, False)]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert connection.execute(SETTINGS).fetchall() == [(2, True)]


def engine_session(connection: Any) -> Any:
    return IvmEngine(connection).session


FULL = duckdb.OutOfMemoryException("Out of Memory Error: full\nhints")
AT_COMMIT = duckdb.TransactionException("TransactionContext Error: Failed to commit: Out of Memory Error: full")
OVERFLOW = duckdb.OutOfRangeException("Out of Range Error: Overflow")
SPARING = Way("", sparing=True)
SPARING_FULL = Way("", sparing=True, full=True)


@pytest.mark.parametrize(
    ("way", "error", "mode", "expected"),
    [
        (ASKED, FULL, "auto", (True, False)),
        (ASKED, AT_COMMIT, "strict", (True, False)),
        (ASKED, OVERFLOW, "auto", (False, True)),
        (ASKED, OVERFLOW, "incremental", None),
        (ASKED, UnsafeError("no"), "auto", None),
        (ASKED, duckdb.InterruptException("INTERRUPT Error: Interrupted!"), "auto", None),
        (SPARING, FULL, "incremental", (True, True)),
        (SPARING, FULL, "strict", None),
        (SPARING, OVERFLOW, "auto", (True, True)),
        (SPARING_FULL, FULL, "auto", (True, True)),
        (SPARING_FULL, OVERFLOW, "auto", None),
        (Way("", sparing=True, full=True, rebuild=True), FULL, "auto", None),
    ],
)
def test_what_comes_after_a_failure(way: Way, error: Exception, mode: str, expected: tuple[bool, bool] | None) -> None:
    following = next_way(way, error, mode)
    assert (following and (following.sparing, following.full)) == expected


def test_a_failed_commit_says_why_it_failed() -> None:
    """Not that there is nothing to roll back."""
    with duckdb.connect() as one:
        one.execute("CREATE TABLE t (i INTEGER PRIMARY KEY)")
        session, other = engine_session(one), one.cursor()
        session.begin()
        session.execute("INSERT INTO t VALUES (1)")
        other.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(duckdb.TransactionException, match="duplicate key"):
            session.commit()
        session.rollback()
        session.begin()
        session.rollback()

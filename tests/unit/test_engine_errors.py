"""Bad input: the message names view, construct and remedy, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dbt_openivm import IvmEngine
from dbt_openivm.engine import database
from dbt_openivm.errors import ConfigError, OpenIvmError, QueryError, UnsafeError
from tests.helpers import World
from tests.unit.engines import new_world, refused

SUM = "SELECT k, sum(x) AS s FROM t GROUP BY k"


@pytest.fixture
def world() -> World:
    made = new_world("diff", "CREATE TABLE t (k INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    made.create("mv", SUM)
    return made


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELEKT k FROM t", ["syntax error"]),
        ("SELECT k FROM", ["syntax error"]),
        ("SELECT k FROM no_such_table", ["no_such_table"]),
        ("SELECT no_such_column FROM t", ["no_such_column"]),
        ("SELECT no_such_function(k) FROM t", ["no_such_function"]),
        ("SELECT k, x FROM t GROUP BY k", ["GROUP BY"]),
        ("SELECT k FROM t WHERE k = 'a' + 1", ["a"]),
        ("", ["0 statements"]),
        ("SELECT 1; SELECT 2", ["2 statements"]),
        ("SELECT 1;; SELECT 2", ["2 statements"]),
        ("INSERT INTO t VALUES (1, 1)", ["INSERT"]),
        ("DROP TABLE t", ["DROP"]),
        ("CREATE TABLE other AS SELECT 1", ["CREATE"]),
        ("SELECT k AS openivm_k FROM t", ["openivm_k", "alias"]),
        ('SELECT k AS "OpenIVM_Count_Star" FROM t', ["OpenIVM_Count_Star", "alias"]),
        ("SELECT * FROM other_view", ["other_view"]),
    ],
)
def test_a_bad_query(world: World, query: str, words: list[str]) -> None:
    with refused(world, QueryError, *words):
        world.ivm.create_view("other_view", query)
    assert not world.query("SELECT * FROM duckdb_views() WHERE view_name = 'other_view'")


@pytest.mark.parametrize("query", ["SELEKT", "SELECT nope FROM t", "SELECT k AS openivm_k FROM t"])
def test_a_view_keeps_its_old_query(world: World, query: str) -> None:
    with refused(world, QueryError):
        world.ivm.create_view("mv", query)
    world.change("mv", "INSERT INTO t VALUES (1, 10)")


def test_a_view_that_would_read_itself(world: World) -> None:
    with refused(world, QueryError, "mv", "itself"):
        world.ivm.create_view("mv", "SELECT k, s FROM mv")


def test_views_that_would_read_each_other(world: World) -> None:
    world.create("second", "SELECT k, s FROM mv")
    with refused(world, OpenIvmError, "mv", "second"):
        world.ivm.create_view("mv", "SELECT k, s FROM second")


def test_a_source_column_under_our_name(world: World) -> None:
    world.run("CREATE TABLE odd (k INTEGER, openivm_multiplicity INTEGER)")
    with refused(world, QueryError, "openivm_multiplicity", "ename"):
        world.ivm.create_view("other", "SELECT k FROM odd WHERE openivm_multiplicity > 0")
    world.create("fine", "SELECT k FROM odd")


@pytest.mark.parametrize("statement", ["ALTER TABLE t DROP x", "DROP TABLE t", "ALTER TABLE t RENAME x TO z"])
def test_a_source_that_lost_what_the_view_reads(world: World, statement: str) -> None:
    world.run(statement)
    with refused(world, QueryError, "x" if "x" in statement.split("t", 1)[1] else "t"):
        world.ivm.refresh("mv")
    assert world.rows("mv") == [(1, 1), (2, 2)]


def test_it_carries_on_when_the_source_is_back(world: World) -> None:
    world.run("ALTER TABLE t RENAME TO away")
    with pytest.raises(QueryError):
        world.ivm.refresh("mv")
    world.run("ALTER TABLE away RENAME TO t", "INSERT INTO t VALUES (1, 10)")
    assert world.refresh("mv").strategy == "incremental"


@pytest.mark.parametrize("call", ["refresh", "drop_view"])
def test_a_view_that_is_not_there(world: World, call: str) -> None:
    with refused(world, QueryError, "nope", "create_view"):
        getattr(world.ivm, call)("nope")


def test_a_table_in_the_place_of_the_view(world: World) -> None:
    with refused(world, OpenIvmError, "t"):
        world.ivm.create_view("t", "SELECT 1 AS one")


def test_settings_are_checked_together() -> None:
    with pytest.raises(ConfigError) as caught:
        IvmEngine(duckdb.connect(), capture="cdc", captures={"t": "magic"}, refresh_mode="sometimes")
    for word in ("cdc", "magic", "sometimes", "diff", "strict"):
        assert word in str(caught.value)


def test_a_read_only_database(tmp_path: Path) -> None:
    path = str(tmp_path / "a.duckdb")
    duckdb.connect(path).close()
    with pytest.raises(OpenIvmError, match=r"read-only"):
        IvmEngine(duckdb.connect(path, read_only=True))


def test_an_old_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "duckdb_version", lambda session: (1, 3))
    with pytest.raises(ConfigError, match=r"1\.3 .*1\.4"):
        IvmEngine(duckdb.connect())


def test_a_catalog_of_another_layout(world: World) -> None:
    world.run("UPDATE openivm.openivm_catalog SET version = 99")
    with refused(world, UnsafeError, "99", "ivm_remove", "Nothing was changed"):
        world.new_engine().refresh("mv")


# --- errors in the middle ---------------------------------------------------------------------------------------------


def test_a_query_that_fails_on_new_rows(world: World) -> None:
    """The recompute fails as well; the old rows stay, and the view carries on when the row is gone."""
    world.run("CREATE TABLE words (w VARCHAR)", "INSERT INTO words VALUES ('1')")
    world.create("numbers", "SELECT w::INTEGER AS n FROM words")
    world.run("INSERT INTO words VALUES ('not a number')")
    with pytest.raises(duckdb.ConversionException):
        world.ivm.refresh("numbers")
    world.assert_rows("numbers", (1,))
    world.run("DELETE FROM words WHERE w LIKE 'not%'", "INSERT INTO words VALUES ('2')")
    world.refresh("numbers")
    world.assert_rows("numbers", (1,), (2,))


def test_a_sum_that_overflows(world: World) -> None:
    big = "99999999999999999999999999999999999999"
    world.run("CREATE TABLE big (k INTEGER, x DECIMAL(38, 0))", f"INSERT INTO big VALUES (1, {big})")
    world.create("sums", "SELECT k, sum(x) AS s FROM big GROUP BY k")
    before = world.rows("sums")
    world.run(f"INSERT INTO big VALUES (1, {big})")
    with pytest.raises(duckdb.Error):
        world.query("SELECT k, sum(x) AS s FROM big GROUP BY k")
    with pytest.raises(duckdb.Error):
        world.ivm.refresh("sums")
    assert world.rows("sums") == before
    world.run("DELETE FROM big WHERE rowid = 1", "INSERT INTO big VALUES (2, 1)")
    world.refresh("sums")


def test_a_view_with_its_own_transaction_open(world: World) -> None:
    """Each call is a transaction of its own; the caller's is left as it was."""
    world.run("BEGIN", "INSERT INTO t VALUES (1, 5)")
    with pytest.raises(OpenIvmError, match=r"transaction"):
        world.ivm.refresh("mv")
    world.run("COMMIT")
    world.refresh("mv")
    world.assert_rows("mv", (1, 6), (2, 2))


def test_a_crash_between_steps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever statement fails, the old state stays, and the next refresh does it all."""
    session = world.ivm.session
    execute, failing = session.execute, {"at": 0, "now": 0}

    def fail_once(sql: str) -> list[tuple[object, ...]]:
        failing["now"] += 1
        if failing["now"] == failing["at"]:
            raise KeyboardInterrupt
        return execute(sql)  # type: ignore[no-any-return] # of the untyped fixture

    world.create("child", "SELECT count(*) AS n, sum(s) AS s FROM mv")
    monkeypatch.setattr(session, "execute", fail_once)
    for at in range(1, 60):
        failing.update(at=at, now=0)
        world.connection.execute(f"INSERT INTO t VALUES ({at % 3}, {at})")
        old = world.rows("mv")
        try:
            world.ivm.refresh("mv")
        except KeyboardInterrupt:
            assert world.rows("mv") == old
            failing.update(at=0)
            world.ivm.refresh("mv")
        else:
            break
        world.ivm.refresh("child")
    failing.update(at=0)
    world.refresh("mv")
    world.refresh("child")
    assert at > 5

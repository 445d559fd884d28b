"""Cases 34 to 40: how changes are found, and what happens around a refresh."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from dbt_openivm.names import quote
from tests.helpers import World, assert_view_is_exact, connect, has_triggers

SUMS = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g"
ROWS = "SELECT id, g, x * 2 AS y FROM t WHERE x IS NOT NULL"


@pytest.fixture
def loaded(world: World) -> World:
    world.run("CREATE TABLE t (id INTEGER, g INTEGER, x INTEGER)")
    world.run("INSERT INTO t SELECT i, i % 3, i FROM range(20) AS r(i)")
    world.create("sums", SUMS)
    world.create("some", ROWS)
    return world


def refresh_all(world: World) -> None:
    for name in world.queries:
        world.refresh(name)


# -- 34: every kind of change -----------------------------------------------------------------------------------------

STATEMENTS = {
    "truncate": ["TRUNCATE t"],
    "delete all": ["DELETE FROM t"],
    "delete and fill": ["DELETE FROM t", "INSERT INTO t SELECT i, i % 3, i FROM range(15) AS r(i)"],
    "insert select": ["INSERT INTO t SELECT id + 100, g, x FROM t"],
    "insert by name": ["INSERT INTO t BY NAME SELECT 7 AS x, 1 AS g"],
    "insert defaults": ["INSERT INTO t (id) VALUES (99)"],
    "update from": ["UPDATE t SET x = s.x FROM (SELECT 4 AS id, 44 AS x) AS s WHERE s.id = t.id"],
    "update to itself": ["UPDATE t SET x = x"],
    "delete using": ["DELETE FROM t USING (SELECT 5 AS id) AS s WHERE s.id = t.id"],
    "with insert": ["INSERT INTO t WITH c AS (SELECT 50, 1, 1) FROM c"],
    "returning": ["DELETE FROM t WHERE id = 3 RETURNING id"],
    "transaction": ["BEGIN", "INSERT INTO t VALUES (1, 1, 1)", "DELETE FROM t WHERE id = 2", "COMMIT"],
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_case_34_statements(loaded: World, kind: str) -> None:
    """Each kind of statement reaches each view, and twice in a row as well."""
    for _ in range(2):
        loaded.run(*STATEMENTS[kind])
        refresh_all(loaded)


def test_case_34_copy_from(loaded: World, tmp_path: Path) -> None:
    """COPY FROM a file."""
    path = tmp_path / "rows.csv"
    path.write_text("id,g,x\n70,1,5\n71,2,\n")
    loaded.run(f"COPY t FROM '{path}' (HEADER)")
    refresh_all(loaded)


def test_case_34_appender(loaded: World) -> None:
    """Rows appended by Python, from a data frame and one by one."""
    loaded.connection.append("t", pd.DataFrame({"id": [1, 2], "g": [1, 1], "x": [1, 2]}))
    refresh_all(loaded)
    if not hasattr(loaded.connection, "appender"):
        return
    appender = loaded.connection.appender("t")
    appender.append_row(3, 1, None)
    appender.append_row(4, 7, 7)
    appender.flush()
    refresh_all(loaded)


def _try(world: World, statement: str) -> bool:
    """Run a statement that a table with triggers refuses; whether it ran."""
    if world.capture == "trigger":
        with pytest.raises(duckdb.Error, match=r"(?i)not implemented|not yet supported"):
            world.run(statement)
        return False
    world.run(statement)
    return True


def test_case_34_merge(loaded: World) -> None:
    """MERGE INTO with all its arms; a table with triggers refuses it, and nothing breaks."""
    _try(
        loaded,
        "MERGE INTO t USING (SELECT i AS id, i + 5 AS x FROM range(15, 25) AS r(i)) AS s ON s.id = t.id "
        "WHEN MATCHED AND s.id = 16 THEN DELETE WHEN MATCHED THEN UPDATE SET x = s.x "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 9, s.x)",
    )
    refresh_all(loaded)


def test_case_34_insert_or_replace(world: World) -> None:
    """Upserts on a primary key."""
    world.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)"
    )
    world.create("sums", SUMS)
    world.create("some", ROWS)
    _try(world, "INSERT OR REPLACE INTO t VALUES (1, 3, 9), (3, 3, 3)")
    refresh_all(world)
    _try(world, "INSERT INTO t VALUES (1, 5, 5), (4, 4, 4) ON CONFLICT DO UPDATE SET x = excluded.x")
    refresh_all(world)


@pytest.mark.parametrize(
    "swap",
    [
        ["CREATE OR REPLACE TABLE t AS SELECT * FROM t WHERE id < 7"],
        ["CREATE OR REPLACE TABLE t AS SELECT id, g, x + 1 AS x FROM t"],
        [
            "CREATE TABLE fresh AS SELECT id, g, x + 1 AS x FROM t WHERE id > 3",
            "DROP TABLE t",
            "ALTER TABLE fresh RENAME TO t",
        ],
        [
            "CREATE TABLE fresh AS FROM t",
            "DROP TABLE t",
            "ALTER TABLE fresh RENAME TO t",
            "INSERT INTO t VALUES (1, 1, 1)",
        ],
        ["DROP TABLE t", "CREATE TABLE t (x INTEGER, g INTEGER, id INTEGER)", "INSERT INTO t VALUES (1, 2, 3)"],
    ],
)
def test_case_34_a_swapped_table(loaded: World, swap: list[str]) -> None:
    """The table is replaced by another of its name, with other rows, or its columns in another order."""
    loaded.run("UPDATE t SET x = 7 WHERE id = 1")
    loaded.run(*swap)
    refresh_all(loaded)
    loaded.run("INSERT INTO t (id, g, x) VALUES (1000, 1, 1)", "UPDATE t SET x = 3 WHERE g = 1")
    refresh_all(loaded)


def test_case_34_a_dropped_trigger(loaded: World) -> None:
    """Changes made while a trigger was missing are not lost."""
    if loaded.capture != "trigger":
        pytest.skip("only triggers can be dropped")
    names = [row[0] for row in loaded.query("SELECT trigger_name FROM duckdb_triggers()")]
    assert names
    loaded.run(f'DROP TRIGGER "{names[0]}" ON t')
    loaded.run("INSERT INTO t VALUES (500, 1, 1)", "UPDATE t SET x = 8 WHERE id = 2", "DELETE FROM t WHERE id = 3")
    refresh_all(loaded)
    loaded.run("INSERT INTO t VALUES (501, 1, 1)", "UPDATE t SET x = 9 WHERE id = 2", "DELETE FROM t WHERE id = 4")
    refresh_all(loaded)


def test_case_34_a_checkpoint_renumbers_rows(tmp_path: Path) -> None:
    """Row ids change when a checkpoint compacts deleted rows of a database on disk."""
    for capture in ("diff", "trigger") if has_triggers() else ("diff",):
        with connect(str(tmp_path / f"{capture}.db")) as connection:
            world = World(connection, capture)
            world.run("CREATE TABLE t (id INTEGER, g INTEGER, x INTEGER)")
            world.run("INSERT INTO t SELECT i, i % 3, i FROM range(300000) AS r(i)")
            world.create("sums", SUMS)
            world.run("DELETE FROM t WHERE id < 200000", "CHECKPOINT")
            world.run("INSERT INTO t VALUES (1, 1, 1)", "UPDATE t SET x = 0 WHERE id = 250000")
            refresh_all(world)


# -- 35 to 37 ----------------------------------------------------------------------------------------------------


def test_case_35_what_failed_leaves_no_trace(loaded: World) -> None:
    """A rolled-back transaction, a statement that fails, and a transaction that fails in the middle."""
    before = loaded.rows("sums")
    loaded.run("BEGIN", "INSERT INTO t VALUES (1, 1, 1)", "UPDATE t SET x = 0", "DELETE FROM t", "ROLLBACK")
    with pytest.raises(duckdb.Error):
        loaded.run("INSERT INTO t SELECT i, i, CAST(if(i = 50, 'no number', '1') AS INTEGER) FROM range(99) r(i)")
    loaded.run("BEGIN", "INSERT INTO t VALUES (2, 2, 2)")
    with pytest.raises(duckdb.Error):
        loaded.run("INSERT INTO t VALUES ('no number', 1, 1)")
    loaded.run("ROLLBACK")
    for name in loaded.queries:
        assert loaded.refresh(name).strategy == "none"
    assert loaded.rows("sums") == before


def test_case_36_only_the_net_change_counts(loaded: World) -> None:
    """A row comes, changes, goes and comes again within one batch; an unrelated row only comes and goes."""
    loaded.run("INSERT INTO t VALUES (100, 7, 3)", "UPDATE t SET x = 6 WHERE id = 100")
    refresh_all(loaded)
    assert (7, 1, 6) in loaded.rows("sums")
    loaded.run("DELETE FROM t WHERE id = 100", "INSERT INTO t VALUES (100, 7, 3)", "DELETE FROM t WHERE id = 100")
    loaded.run("INSERT INTO t VALUES (100, 7, 6), (200, 8, 1)", "DELETE FROM t WHERE id = 200")
    result = loaded.refresh("sums")
    assert not result.changed_rows
    loaded.refresh("some")


def test_case_37_many_tiny_refreshes(loaded: World) -> None:
    """Fifty refreshes of one row each, a forced full one among them, never apply a change twice."""
    for i in range(50):
        loaded.run(f"INSERT INTO t VALUES ({100 + i}, 9, 1)")
        loaded.ivm.refresh("sums", full=i == 25)
        assert (9, i + 1, i + 1) in loaded.rows("sums")
    assert loaded.ivm.refresh("sums").strategy == "none"
    refresh_all(loaded)


# -- 38: a crash ----------------------------------------------------------------------------------------------------

CRASH = """
import os, sys
import duckdb
from dbt_openivm import IvmEngine
from dbt_openivm.engine.session import DuckDBSession

path, capture, when = sys.argv[1:]
con = duckdb.connect(path)
ivm = IvmEngine(con, capture=capture)
commit, execute = DuckDBSession.commit, DuckDBSession.execute
calls = 0


def dying_commit(self):
    if when == "after":
        commit(self)
    os._exit(9)


def dying_execute(self, sql):
    global calls
    calls += 1
    if calls == int(when):
        os._exit(9)
    return execute(self, sql)


if when in ("before", "after"):
    DuckDBSession.commit = dying_commit
else:
    DuckDBSession.execute = dying_execute
ivm.refresh("mv")
ivm.refresh("child")
os._exit(0)
"""


@pytest.mark.parametrize("when", ["before", "after", "5", "12", "20", "30", "45"])
@pytest.mark.parametrize("capture", ["diff", "trigger"])
def test_case_38_a_kill_is_all_or_nothing(tmp_path: Path, capture: str, when: str) -> None:
    """The process dies before or after its commit, or at some statement: the next run finds one state or the other."""
    if capture == "trigger" and not has_triggers():
        pytest.skip("triggers need DuckDB 2")
    path = tmp_path / "crash.db"
    child = "SELECT COUNT(*) AS n, SUM(s) AS s FROM mv"
    with connect(str(path)) as connection:
        world = World(connection, capture)
        world.run(
            "CREATE TABLE t (id INTEGER, g INTEGER, x INTEGER)", "INSERT INTO t SELECT i, i % 3, i FROM range(20) r(i)"
        )
        world.create("mv", SUMS)
        world.create("child", child)
        old = world.rows("mv")
        world.run("INSERT INTO t VALUES (100, 1, 50), (101, 7, 1)", "DELETE FROM t WHERE g = 2")
    script = tmp_path / "crash.py"
    script.write_text(CRASH)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(script), str(path), capture, when], cwd=root, env={"PYTHONPATH": str(root)}, check=False
    )
    assert done.returncode in (0, 9)
    with connect(str(path)) as connection:
        world = World(connection, capture)
        world.queries = {"mv": SUMS, "child": child}
        new = sorted(world.query(SUMS))
        assert world.rows("mv") in (old, new)
        if when == "before":
            assert world.rows("mv") == old
        if when == "after":
            assert world.rows("mv") == new
        refresh_all(world)
        world.run("INSERT INTO t VALUES (300, 1, 1)")
        refresh_all(world)


# -- 39 and 40: at the same time -------------------------------------------------------------------------------------


class Interleaved:
    """Runs something once, before the n-th statement of an engine's session."""

    def __init__(self, session: Any, number: int, work: Callable[[], None]) -> None:
        self.original = session.execute
        self.session = session
        self.left = number
        self.work = work
        session.execute = self

    def __call__(self, sql: str) -> Any:
        self.left -= 1
        if self.left == 0:
            self.work()
        return self.original(sql)

    def stop(self) -> None:
        self.session.execute = self.original


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 22, 26, 30, 40])
def test_case_39_a_writer_commits_in_the_middle_of_a_refresh(loaded: World, number: int) -> None:
    """Wherever in the refresh the commit falls, its change is applied exactly once, now or next time."""
    writer = loaded.connection.cursor()

    def write() -> None:
        writer.execute("BEGIN")
        writer.execute("INSERT INTO t VALUES (900, 1, 100), (901, 9, 9)")
        writer.execute("DELETE FROM t WHERE id = 5")
        writer.execute("UPDATE t SET x = x + 1 WHERE id = 7")
        writer.execute("COMMIT")

    loaded.run("INSERT INTO t VALUES (800, 1, 1)", "DELETE FROM t WHERE id = 4")
    old_truth = sorted(loaded.query(SUMS))
    interleaved = Interleaved(loaded.ivm.session, number, write)
    loaded.ivm.refresh("sums")
    interleaved.stop()
    new_truth = sorted(loaded.query(SUMS))
    assert loaded.rows("sums") in (old_truth, new_truth)
    refresh_all(loaded)


def test_case_39_writers_and_refreshes_side_by_side(loaded: World) -> None:
    """Two writers insert and delete while a third thread refreshes: nothing is lost or doubled."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                errors.append(error)

        return run

    def writing(base: int) -> Callable[[], None]:
        connection = loaded.connection.cursor()

        def work() -> None:
            for i in range(60):
                connection.execute(f"INSERT INTO t VALUES ({base + i}, {i % 4}, {i})")
                if i % 5 == 4:
                    connection.execute(f"DELETE FROM t WHERE id = {base + i - 2}")

        return work

    refresher = loaded.connection.cursor()
    ivm = loaded.new_engine(refresher)

    def refreshing() -> None:
        while not stop.is_set():
            ivm.refresh("sums")
            ivm.refresh("some")

    writers = [threading.Thread(target=guarded(writing(base))) for base in (1000, 2000)]
    reader = threading.Thread(target=guarded(refreshing))
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert not errors, errors[0]
    refresh_all(loaded)


def _in_threads(world: World, names: list[str], rounds: int) -> None:
    """Refresh each of the names in a thread and on a cursor of its own, several times."""
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            ivm = world.new_engine(world.connection.cursor())
            for _ in range(rounds):
                ivm.refresh(name)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def test_case_40_one_view_refreshed_twice_at_a_time(loaded: World) -> None:
    """Two refreshes of one view: each change is applied once."""
    for i in range(8):
        loaded.run(f"INSERT INTO t VALUES ({500 + i}, 1, 1)", f"DELETE FROM t WHERE id = {i}")
        _in_threads(loaded, ["sums", "sums"], 2)
        refresh_all(loaded)


def test_case_40_siblings_on_eight_threads(loaded: World) -> None:
    """Eight views of one source, a chain among them, each on a thread."""
    loaded.create("total", "SELECT COUNT(*) AS n, SUM(s) AS s FROM sums")
    loaded.create("once", "SELECT DISTINCT g FROM t")
    loaded.create("low", "SELECT g, MIN(x) AS lo FROM t GROUP BY g")
    loaded.create("pairs", "SELECT a.id, b.id AS other FROM t AS a JOIN t AS b ON a.g = b.g AND a.x < b.x")
    loaded.create("list", "SELECT g, list(x ORDER BY x) AS xs FROM t GROUP BY g")
    loaded.create("more", "SELECT g FROM sums WHERE n > 3")
    assert len(loaded.queries) == 8
    for i in range(4):
        loaded.run(
            f"INSERT INTO t SELECT 100 * {i + 1} + i, i % 4, i FROM range(10) AS r(i)", f"DELETE FROM t WHERE id = {i}"
        )
        _in_threads(loaded, list(loaded.queries), 1)
    refresh_all(loaded)
    for name, sql in loaded.queries.items():
        assert_view_is_exact(loaded.connection, quote(name), sql)

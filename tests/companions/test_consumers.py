"""Who consumes companion rows, and how long they are kept."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from dbt_openivm import IvmEngine
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.errors import ConfigError, QueryError, UnsafeError
from tests.companions.bags import assert_transition
from tests.helpers import World, connect, has_triggers
from tests.unit.engines import refused

SUMS = "SELECT g, SUM(x) AS s FROM t GROUP BY g"
TABLE = "openivm_main.openivm_delta_mv"


@pytest.fixture
def world() -> World:
    """Refreshes are quick ones where they can be."""
    world = World(connect(), "trigger" if has_triggers() else "diff")
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 100), (2, 200)")
    world.create("mv", SUMS)
    return world


def tables(world: World) -> list[str]:
    found = world.query("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'openivm_delta_mv%'")
    return [row[0] for row in found]


def rows(world: World, since: int = 0) -> list[tuple[Any, ...]]:
    found = world.query(f"SELECT openivm_batch, * EXCLUDE (openivm_timestamp, openivm_batch) FROM {TABLE} ORDER BY ALL")
    return [row[1:] for row in found if row[0] > since]


def versions(world: World) -> list[tuple[str, int, int, bool]]:
    return [(c.name, c.cursor, c.version, c.complete) for c in world.ivm.consumers("mv")]


def test_without_a_consumer_there_is_nothing(world: World) -> None:
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    assert tables(world) == []
    assert world.query("SELECT companion_table FROM openivm.openivm_views") == [(None,)]


def test_rows_are_kept_until_every_consumer_has_them(world: World) -> None:
    fast, slow = (world.ivm.register_consumer("mv", name) for name in ("fast", "slow"))
    assert fast.table == slow.table == '"memory"."openivm_main"."openivm_delta_mv"'
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    world.change("mv", "INSERT INTO t VALUES (3, 3)")
    both = [(1, 100, -1), (1, 101, 1), (3, 3, 1)]
    assert rows(world) == both
    [now, _] = world.ivm.consumers("mv")
    assert now.version == fast.version + 2
    world.ivm.acknowledge("mv", "fast", now.version)
    world.change("mv", "INSERT INTO t VALUES (4, 4)")
    assert rows(world) == [*both, (4, 4, 1)]  # slow has seen none of them
    world.ivm.acknowledge("mv", "slow", slow.cursor + 1)
    world.change("mv", "INSERT INTO t VALUES (5, 5)")
    assert rows(world) == [(3, 3, 1), (4, 4, 1), (5, 5, 1)]
    assert rows(world, now.version) == [(4, 4, 1), (5, 5, 1)]


def test_a_consumer_is_registered_from_now_on(world: World) -> None:
    world.run("INSERT INTO t VALUES (1, 1)")
    first = world.ivm.register_consumer("mv", "reader")
    world.refresh("mv")
    assert world.ivm.register_consumer("mv", "reader").cursor == first.cursor
    late = world.ivm.register_consumer("mv", "late")
    assert rows(world, first.cursor) == [(1, 100, -1), (1, 101, 1)]
    assert rows(world, late.cursor) == []


def test_the_table_goes_with_the_last_consumer(world: World) -> None:
    for name in ("a", "b"):
        world.ivm.register_consumer("mv", name)
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    world.ivm.unregister_consumer("mv", "a")
    assert len(rows(world)) == 2
    world.ivm.unregister_consumer("mv", "b")
    assert tables(world) == []
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    assert tables(world) == []


def test_refusals(world: World) -> None:
    with refused(world, QueryError, "no incremental view"):
        world.ivm.register_consumer("nothing", "reader")
    for name in ("", " ", "a.b.c", 1, None):
        with refused(world, ConfigError, "no name of a consumer"):
            world.ivm.register_consumer("mv", name)
    for call in (
        lambda: world.ivm.acknowledge("mv", "nobody", 1),
        lambda: world.ivm.unregister_consumer("mv", "nobody"),
    ):
        with refused(world, ConfigError, "no consumer 'nobody'"):
            call()
    reader = world.ivm.register_consumer("mv", "reader")
    for version in (reader.version + 1, reader.cursor - 1, True, "1", None):
        with refused(world, ConfigError, "acknowledges batch"):
            world.ivm.acknowledge("mv", "reader", version)
    with refused(world, UnsafeError, "is read by reader", "unregister"):
        world.ivm.drop_view("mv")
    world.ivm.unregister_consumer("mv", "reader")
    world.ivm.drop_view("mv")


def test_a_consumer_is_no_reader_of_the_boundary(world: World) -> None:
    """The change log of the boundary is for views only; a view that reads the boundary keeps no companion rows."""
    world.ivm.register_consumer("mv", "reader")
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    assert world.query("FROM openivm_main.openivm_delta_openivm_visible_mv") == []
    world.ivm.unregister_consumer("mv", "reader")
    world.create("child", "SELECT COUNT(*) AS n FROM mv")
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    assert len(world.query("FROM openivm_main.openivm_delta_openivm_visible_mv")) == 2
    assert tables(world) == []


def test_forced_rows_are_those_of_the_last_refresh(world: World) -> None:
    world.ivm.force_view_delta_cascade = True
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    assert rows(world) == [(1, 100, -1), (1, 101, 1)]
    world.change("mv", "INSERT INTO t VALUES (9, 9)")
    assert rows(world) == [(9, 9, 1)]
    world.ivm.register_consumer("mv", "reader")
    world.ivm.unregister_consumer("mv", "reader")
    assert rows(world) == [(9, 9, 1)]
    world.ivm.force_view_delta_cascade = False
    world.change("mv", "INSERT INTO t VALUES (9, 9)")
    assert tables(world) == []


def test_a_rebuild_writes_the_difference(world: World) -> None:
    """Other rows under the same columns: the consumer follows; so does one of a child beside it."""
    reader = world.ivm.register_consumer("mv", "reader")
    world.run("CREATE TEMP TABLE old AS FROM mv", "INSERT INTO t VALUES (2, 5)")
    world.create("mv", "SELECT g, SUM(x) AS s FROM t WHERE g > 1 GROUP BY g")
    written = f"SELECT * FROM {TABLE} WHERE openivm_batch > {reader.cursor}"
    assert_transition(world.connection, "old", written, "mv")
    world.create("child", "SELECT COUNT(*) AS n FROM mv")
    world.create("mv", SUMS)
    assert_transition(world.connection, "old", written, "mv")
    assert world.refresh("child").strategy == "incremental"
    world.ivm.refresh("mv", full=True)
    assert_transition(world.connection, "old", written, "mv")
    assert versions(world)[0][3]


def test_other_columns_leave_consumers_behind(world: World) -> None:
    """They are told, and start anew from the view."""
    world.ivm.register_consumer("mv", "reader")
    world.create("mv", "SELECT g, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY g")
    [(_, _, version, complete)] = versions(world)
    assert not complete
    with refused(world, ConfigError, "missed"):
        world.ivm.acknowledge("mv", "reader", version)
    with refused(world, ConfigError, "missed", "Unregister"):  # a program that registers when it starts is told, too
        world.ivm.register_consumer("mv", "reader")
    world.ivm.unregister_consumer("mv", "reader")
    again = world.ivm.register_consumer("mv", "reader")
    assert again.complete
    world.change("mv", "INSERT INTO t VALUES (7, 7)")
    assert rows(world, again.cursor) == [(7, 7, 1, 1)]


@pytest.mark.parametrize(
    "damage",
    [f"DROP TABLE {TABLE}", f"ALTER TABLE {TABLE} DROP s", "UPDATE openivm.openivm_views SET companion_table = NULL"],
)
def test_a_damaged_table_leaves_consumers_behind(world: World, damage: str) -> None:
    world.ivm.register_consumer("mv", "reader")
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    world.run(damage)
    world.ivm = world.new_engine()
    world.change("mv", "INSERT INTO t VALUES (7, 7)")
    [reader] = world.ivm.consumers("mv")
    assert world.query(f"SELECT g, s, openivm_multiplicity FROM {reader.table}") == [(7, 7, 1)]
    assert not reader.complete


def test_a_consumer_left_behind_holds_back_nothing(world: World) -> None:
    for name in ("dead", "live"):
        world.ivm.register_consumer("mv", name)
    world.create("mv", "SELECT g, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY g")
    world.change("mv", "INSERT INTO t VALUES (6, 6)")
    world.change("mv", "INSERT INTO t VALUES (7, 7)")
    assert rows(world) == [(7, 7, 1, 1)]  # nobody can read more than the last ones
    world.ivm.unregister_consumer("mv", "live")
    live = world.ivm.register_consumer("mv", "live")
    world.change("mv", "INSERT INTO t VALUES (8, 8)")
    world.change("mv", "INSERT INTO t VALUES (9, 9)")
    assert rows(world, live.cursor) == [(8, 8, 1, 1), (9, 9, 1, 1)]


def test_a_table_dropped_between_two_refreshes_of_one_engine(world: World) -> None:
    world.ivm.register_consumer("mv", "reader")
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    world.run(f"DROP TABLE {TABLE}")
    world.change("mv", "INSERT INTO t VALUES (7, 7)")
    assert rows(world) == [(7, 7, 1)]
    assert not versions(world)[0][3]


def test_a_view_with_any_name() -> None:
    world = World(connect(), "diff")
    world.run("CREATE TABLE t AS SELECT 1 AS g, 1 AS x")
    name = 'My "view" of -- it'
    world.create(name.replace('"', ""), SUMS)
    world.create("plain", SUMS)
    quoted = '"' + name.replace('"', '""') + '"'
    world.ivm.create_view(quoted, SUMS)
    reader = world.ivm.register_consumer(quoted, "the reader")
    world.run("INSERT INTO t VALUES (1, 2)")
    world.ivm.refresh(quoted)
    assert sorted(world.query(f"SELECT g, s, openivm_multiplicity FROM {reader.table}")) == [(1, 1, -1), (1, 3, 1)]


@pytest.mark.parametrize("child", [False, True])
def test_a_full_refresh_writes_the_difference(child: bool) -> None:
    """Of all rows, those that changed."""
    with connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT i AS g, i AS x FROM range(5) r(i)")
        ivm = IvmEngine(connection, refresh_mode="full")
        ivm.create_view("mv", SUMS)
        reader = ivm.register_consumer("mv", "reader")
        if child:
            ivm.create_view("child", "SELECT COUNT(*) AS n FROM mv")
        connection.execute("CREATE TEMP TABLE old AS FROM mv")
        connection.execute("INSERT INTO t VALUES (1, 1), (7, 7)")
        result = ivm.refresh("mv")
        assert (result.strategy, result.changed_rows) == ("full", 3)
        written = f"FROM {reader.table} WHERE openivm_batch > {reader.cursor}"
        assert len(connection.execute(written).fetchall()) == 3
        assert_transition(connection, "old", written, "mv")


def test_an_edited_state_leaves_consumers_behind(world: World) -> None:
    """What they have seen is not what the view showed."""
    world.ivm.register_consumer("mv", "reader")
    world.run("DELETE FROM openivm_main.openivm_data_mv WHERE g = 1")
    assert world.change("mv", "INSERT INTO t VALUES (7, 7)").strategy == "rebuild"
    assert not versions(world)[0][3]
    assert rows(world) == []


def test_a_name_that_is_taken(world: World) -> None:
    """A table `mv` of another database has its change log under the name already."""
    world.run(
        "ATTACH ':memory:' AS other", "CREATE TABLE other.main.mv (i INTEGER)", "INSERT INTO other.main.mv VALUES (1)"
    )
    world.create("elsewhere", "SELECT i FROM other.main.mv")
    reader = world.ivm.register_consumer("mv", "reader")
    assert reader.table.endswith('"openivm_delta_mv_2"')
    world.change("mv", "INSERT INTO t VALUES (7, 7)")
    assert world.query(f"SELECT g, s FROM {reader.table}") == [(7, 7)]
    world.change("elsewhere", "INSERT INTO other.main.mv VALUES (2)")


def test_another_engine_finds_the_consumers(world: World) -> None:
    world.ivm.register_consumer("mv", "reader")
    world.ivm = world.new_engine()
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    assert rows(world) == [(1, 100, -1), (1, 101, 1)]


def statements_of(world: World, monkeypatch: pytest.MonkeyPatch, *changes: str) -> list[str]:
    """What a refresh sends to DuckDB."""
    seen: list[str] = []
    execute = DuckDBSession.execute

    def recorded(session: DuckDBSession, sql: str) -> list[tuple[Any, ...]]:
        seen.append(sql)
        return execute(session, sql)

    world.run(*changes)
    with monkeypatch.context() as patch:
        patch.setattr(DuckDBSession, "execute", recorded)
        world.ivm.refresh("mv")
    return seen


def test_a_view_without_consumers_pays_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many statements after a consumer has left as before it came, and none of them about companion rows."""
    world.ivm.refresh("mv", full=True)
    changes = "INSERT INTO t VALUES (1, 1)", "DELETE FROM t WHERE x = 200"
    for properly in (False, True):
        counts = []
        for consumed in (False, True, False):
            if consumed:
                world.ivm.register_consumer("mv", "reader")
            for _ in range(2):  # the first refresh after an event is a proper one, the second may be quick
                if properly:
                    world.ivm.maintainer.quick.forget("memory.main.mv")
                seen = statements_of(world, monkeypatch, *changes, "INSERT INTO t VALUES (2, 200)")
            counts.append(len(seen))
            assert any("openivm_delta_mv" in text for text in seen) == consumed
            if consumed:
                world.ivm.unregister_consumer("mv", "reader")
        assert counts[0] == counts[2] < counts[1], counts


def test_quick_refreshes_write_them_too() -> None:
    if not has_triggers():
        pytest.skip("triggers need DuckDB 2")
    world = World(connect(), "trigger")
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 100)")
    world.create("mv", SUMS)
    reader = world.ivm.register_consumer("mv", "reader")
    world.run("CREATE TEMP TABLE old AS FROM mv")
    for i in range(6):
        world.change("mv", f"INSERT INTO t VALUES ({i % 3}, {i})", f"DELETE FROM t WHERE x = {i - 2}")
        assert world.ivm.maintainer.quick.knows("memory.main.mv")
        assert_transition(world.connection, "old", f"FROM {TABLE} WHERE openivm_batch > {reader.cursor}", "mv")
        if i % 2:
            reader = world.ivm.acknowledge("mv", "reader", world.ivm.consumers("mv")[0].version)
            world.run("CREATE OR REPLACE TEMP TABLE old AS FROM mv")


def test_status_says_what_waits_for_whom(world: World) -> None:
    from dbt_openivm.engine.report import status

    world.ivm.register_consumer("mv", "reader")
    world.change("mv", "INSERT INTO t VALUES (1, 1)")
    lines = status(world.ivm.session, "memory").splitlines()
    assert any(line.split() == ["main.mv", "companion", "rows", "2", "reader"] for line in lines), lines


def test_the_example_of_the_documentation() -> None:
    page = Path(__file__).parents[2] / "docs" / "companion-rows.md"
    [example] = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    scope: dict[str, Any] = {}
    exec(example, scope)
    assert sorted(scope["rows"]) == [("US", 100, -1), ("US", 150, 1)]
    assert f"# {sorted(scope['rows'])}" in example
    scope["con"].close()


def test_switches_are_checked() -> None:
    with connect() as connection, pytest.raises(ConfigError, match="skip_empty_deltas is 'yes', expected True or Fal"):
        IvmEngine(connection, skip_empty_deltas="yes")


def test_a_new_view_with_forced_rows() -> None:
    with connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS g, 1 AS x")
        ivm = IvmEngine(connection, force_view_delta_cascade=True)
        ivm.create_view("mv", SUMS)
        assert connection.execute(f"FROM {TABLE}").fetchall() == []
        ivm.drop_view("mv")
        assert not connection.execute("FROM duckdb_tables() WHERE table_name LIKE 'openivm_delta_mv%'").fetchall()


def test_explain_shows_how_they_are_written(world: World) -> None:
    query = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
    assert "openivm_old_snapshot" not in world.ivm.explain(query)
    world.ivm.force_view_delta_cascade = True
    text = world.ivm.explain(query)
    assert all(name in text for name in ("openivm_old_affected_new_view", "openivm_old_snapshot_new_view"))
    assert "openivm_delta_new_view" in text


def test_a_copied_database_leaves_consumers_behind(tmp_path: Path) -> None:
    """They may go on with the original."""
    with connect(str(tmp_path / "first.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS g, 1 AS x")
        ivm = IvmEngine(connection)
        ivm.create_view("mv", SUMS)
        ivm.register_consumer("mv", "reader")
    shutil.copy(tmp_path / "first.duckdb", tmp_path / "second.duckdb")
    with connect(str(tmp_path / "second.duckdb")) as connection:
        ivm = IvmEngine(connection)
        [reader] = ivm.consumers("mv")
        assert not reader.complete
        connection.execute("INSERT INTO t VALUES (2, 2)")
        ivm.refresh("mv")
        ivm.unregister_consumer("mv", "reader")
        reader = ivm.register_consumer("mv", "reader")
        connection.execute("INSERT INTO t VALUES (2, 2)")
        ivm.refresh("mv")
        written = f"SELECT g, s, openivm_multiplicity FROM {reader.table} WHERE openivm_batch > {reader.cursor}"
        assert sorted(connection.execute(written).fetchall()) == [(2, 2, -1), (2, 4, 1)]

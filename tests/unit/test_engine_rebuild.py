"""A view is rebuilt by itself when it must be, says why, and is never rebuilt otherwise."""

from __future__ import annotations

import pytest

from dbt_openivm.compiler import compile as compiler
from dbt_openivm.engine import planning
from tests.helpers import World
from tests.unit.engines import history, new_world

SUM = "SELECT k, sum(x) AS s FROM t GROUP BY k"


@pytest.fixture
def world() -> World:
    made = new_world(
        "diff", "CREATE TABLE t (k INTEGER, x INTEGER, note VARCHAR)", "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, NULL)"
    )
    made.create("mv", SUM)
    return made


def assert_rebuilt(world: World, reason: str) -> None:
    result = world.refresh("mv")
    assert result.strategy == "rebuild", result
    assert reason in result.reason, result.reason


def test_nothing_changed(world: World) -> None:
    assert world.ivm.refresh("mv").strategy == "none"
    assert world.new_engine().refresh("mv").strategy == "none"


def test_created_again_with_the_same_query(world: World) -> None:
    world.ivm.create_view("mv", f"-- the same\n{SUM.lower()};")
    assert [row[0] for row in history(world, "mv")] == ["build"]


def test_another_query(world: World) -> None:
    world.create("mv", "SELECT k, sum(x) + 1 AS s FROM t GROUP BY k")
    assert history(world, "mv")[-1][:2] == ("rebuild", "the query changed")


def test_another_query_with_other_columns(world: World) -> None:
    world.create("mv", "SELECT k, note FROM t")
    world.change("mv", "INSERT INTO t VALUES (3, 3, 'c')")
    world.assert_rows("mv", (1, "a"), (2, None), (3, "c"))


def test_a_retyped_column(world: World) -> None:
    world.run("ALTER TABLE t ALTER x TYPE DOUBLE")
    assert_rebuilt(world, "the column memory.main.t.x changed its type from INTEGER to DOUBLE")


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ALTER note TYPE BLOB USING note::BLOB",
        "ALTER TABLE t DROP note",
        "ALTER TABLE t RENAME note TO remark",
        "ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7",
    ],
)
def test_an_unused_column(world: World, statement: str) -> None:
    world.run(statement)
    assert world.ivm.refresh("mv").strategy == "none"
    world.run("INSERT INTO t (k, x) VALUES (1, 10)")
    assert world.refresh("mv").strategy == "incremental"


def test_columns_in_another_order(world: World) -> None:
    world.run("CREATE OR REPLACE TABLE t AS SELECT note, x, k FROM t")
    world.run("INSERT INTO t VALUES ('z', 5, 1)")
    assert world.refresh("mv").strategy == "incremental"


def test_another_compiler(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (compiler, planning):
        monkeypatch.setattr(module, "version", "99.0.0")
    result = world.new_engine().refresh("mv")
    assert (result.strategy, result.reason) == ("rebuild", "dbt-openivm was upgraded")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE openivm_main.openivm_data_mv",
        "DROP VIEW openivm_main.openivm_visible_mv",
        "DROP TABLE openivm_main.openivm_delta_openivm_visible_mv",
        "DELETE FROM openivm_main.openivm_data_mv WHERE k = 1",
        "INSERT INTO openivm_main.openivm_data_mv FROM openivm_main.openivm_data_mv",
        "TRUNCATE openivm_main.openivm_data_mv",
    ],
)
def test_internal_objects_changed_by_hand(world: World, statement: str) -> None:
    world.run(statement)
    assert_rebuilt(world, "changed from outside")


GONE = "internal tables of the capture of memory.main.t were dropped or altered"


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DROP TABLE openivm_main.openivm_delta_t", GONE),
        ("DROP TABLE openivm_main.openivm_copy_t", GONE),
        ("DROP TABLE openivm_main.openivm_buckets_t", GONE),
        ("DELETE FROM openivm_main.openivm_copy_t WHERE k = 1", "the kept copy of memory.main.t was edited"),
        ("DELETE FROM openivm_main.openivm_buckets_t", "the kept copy of memory.main.t was edited"),
    ],
)
def test_a_capture_changed_by_hand(world: World, statement: str, reason: str) -> None:
    world.run("INSERT INTO t VALUES (7, 7, 'g')", statement)
    assert_rebuilt(world, reason)


def test_a_new_capture_of_which_this_process_knows_no_more(world: World) -> None:
    world.run("DELETE FROM openivm_main.openivm_copy_t WHERE k = 1")
    world.create("other", "SELECT k FROM t")
    world.ivm.maintainer.coordinator.causes.clear()
    assert_rebuilt(world, "memory.main.t has a new capture, so that its changes since the last refresh are not known")


def test_the_whole_internal_schema_is_gone(world: World) -> None:
    world.run("DROP SCHEMA openivm_main CASCADE")
    assert world.refresh("mv").strategy == "rebuild"


def test_the_user_facing_view_is_gone(world: World) -> None:
    world.run("DROP VIEW mv", "INSERT INTO t VALUES (1, 5, NULL)")
    world.refresh("mv")


def test_asked_for(world: World) -> None:
    result = world.ivm.refresh("mv", full=True)
    assert (result.strategy, result.reason) == ("rebuild", "a full refresh was asked for")


def test_another_table_of_the_same_name(world: World) -> None:
    """The key is the same, and the difference is found like any other change."""
    world.run("DROP TABLE t", "CREATE TABLE t (k INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (9, 9)")
    assert world.refresh("mv").strategy == "incremental"
    world.assert_rows("mv", (1, 1), (9, 9))


# --- what the query reads through views and macros --------------------------------------------------------------------


def test_a_plain_view_with_another_definition(world: World) -> None:
    world.run("CREATE VIEW v AS SELECT k, x FROM t")
    world.create("mv", "SELECT k, count(*) AS n FROM v GROUP BY k")
    world.run("CREATE OR REPLACE VIEW v AS SELECT k + 1 AS k, x FROM t")
    assert_rebuilt(world, "the query changed")
    world.run("INSERT INTO t VALUES (5, 5, NULL)")
    assert world.refresh("mv").strategy == "incremental"


def test_a_plain_view_below_a_plain_view(world: World) -> None:
    world.run("CREATE VIEW v AS SELECT k, x FROM t", "CREATE VIEW w AS SELECT k FROM v")
    world.create("mv", "SELECT k FROM w")
    world.run("CREATE OR REPLACE VIEW v AS SELECT x AS k, x FROM t")
    assert_rebuilt(world, "the query changed")


def test_a_scalar_macro_with_another_body(world: World) -> None:
    world.run("CREATE MACRO f(a) AS a + 1")
    world.create("mv", "SELECT f(x) AS y FROM t")
    world.run("CREATE OR REPLACE MACRO f(a) AS a + 2")
    assert_rebuilt(world, "the query changed")


def test_a_table_macro_with_another_body(world: World) -> None:
    world.run("CREATE MACRO rows_of(a) AS TABLE SELECT k, x FROM t WHERE k = a")
    world.create("mv", "SELECT x FROM rows_of(1)")
    world.run("CREATE OR REPLACE MACRO rows_of(a) AS TABLE SELECT k, x + 1 AS x FROM t WHERE k = a")
    assert_rebuilt(world, "the query changed")


def test_tables_in_macros_are_sources(world: World) -> None:
    world.run(
        "CREATE MACRO rows_of(a) AS TABLE SELECT k, x FROM t WHERE k = a",
        "CREATE MACRO biggest() AS (SELECT max(x) FROM t)",
        "CREATE TABLE one (i INTEGER)",
        "INSERT INTO one VALUES (1)",
    )
    world.ivm.create_view("by_table_macro", "SELECT x FROM rows_of(1)")
    world.ivm.create_view("by_scalar_macro", "SELECT i, biggest() AS b FROM one")
    world.run("INSERT INTO t VALUES (1, 100, NULL)")
    world.ivm.refresh("by_table_macro")
    world.ivm.refresh("by_scalar_macro")
    world.assert_rows("by_table_macro", (1,), (100,))
    world.assert_rows("by_scalar_macro", (1, 100))


def test_a_table_replaced_by_a_view(world: World) -> None:
    world.run("ALTER TABLE t RENAME TO raw", "CREATE VIEW t AS SELECT k, x FROM raw WHERE k < 2")
    result = world.refresh("mv")
    assert result.strategy == "rebuild"
    world.change("mv", "INSERT INTO raw VALUES (1, 4, NULL)")
    world.assert_rows("mv", (1, 5))

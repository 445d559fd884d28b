"""Captures follow what views need: more columns, another kind, files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_openivm.errors import ConfigError
from tests.helpers import World, has_triggers
from tests.unit.engines import capture_of, columns_kept, new_world, refused

TABLE = "CREATE TABLE t (k INTEGER, x INTEGER, y VARCHAR)"
ROWS = "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (2, 2, 'b')"

needs_triggers = pytest.mark.skipif(not has_triggers(), reason="triggers need DuckDB 2")
KINDS = ["diff", pytest.param("trigger", marks=needs_triggers)]


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest) -> World:
    return new_world(request.param, TABLE, ROWS)


def test_only_used_columns_are_kept(world: World) -> None:
    world.create("a", "SELECT k FROM t")
    assert columns_kept(world, "t") == {"k"}


def test_a_second_view_widens_the_capture(world: World) -> None:
    """The first view, which has a change waiting, is not disturbed."""
    world.create("a", "SELECT k, count(*) AS n FROM t GROUP BY k")
    world.run("INSERT INTO t VALUES (1, 5, 'c')", "DELETE FROM t WHERE k = 2")
    world.create("b", "SELECT y, sum(x) AS s FROM t GROUP BY y")
    assert columns_kept(world, "t") == {"k", "x", "y"}
    assert world.refresh("a").strategy == "incremental"
    world.run("UPDATE t SET y = 'z', x = 9 WHERE x = 5", "INSERT INTO t VALUES (4, NULL, NULL)")
    assert world.refresh("b").strategy == "incremental"
    assert world.refresh("a").strategy == "incremental"
    world.assert_rows("a", (1, 2), (4, 1))


def test_widening_once_more(world: World) -> None:
    for name, query in (("a", "SELECT count(*) AS n FROM t"), ("b", "SELECT x FROM t"), ("c", "SELECT * FROM t")):
        world.create(name, query)
        world.run("INSERT INTO t VALUES (7, 7, 'g')", "DELETE FROM t WHERE k = 2")
    for name in "abc":
        assert world.refresh(name).strategy == "incremental"


def test_a_change_of_an_unused_column_is_none(world: World) -> None:
    world.create("a", "SELECT k FROM t")
    world.run("UPDATE t SET y = 'other'")
    world.refresh("a")
    world.create("b", "SELECT y FROM t")
    world.assert_rows("b", ("other",), ("other",), ("other",))


@needs_triggers
def test_another_kind_of_capture() -> None:
    world = new_world("diff", TABLE, ROWS)
    world.create("mv", "SELECT k, sum(x) AS s FROM t GROUP BY k")
    world.run("INSERT INTO t VALUES (1, 10, NULL)")
    for kind in ("trigger", "diff"):
        world.captures = {"t": kind}
        world.ivm = world.new_engine()
        result = world.refresh("mv")
        assert (result.strategy, capture_of(world, "t")) == ("rebuild", kind)
        world.run("INSERT INTO t VALUES (1, 100, NULL)", "DELETE FROM t WHERE x = 2")
        assert world.refresh("mv").strategy == "incremental"
    assert not world.query("SELECT * FROM duckdb_triggers()")


@needs_triggers
def test_another_default_moves_no_source() -> None:
    """The capture of a source stays what it is until somebody names another one for this very source."""
    world = new_world("diff", TABLE, ROWS)
    world.create("mv", "SELECT k FROM t")
    world.capture = "trigger"
    world.ivm = world.new_engine()
    assert world.ivm.refresh("mv").strategy == "none"
    assert capture_of(world, "t") == "diff"


@needs_triggers
def test_a_table_of_another_database_cannot_have_triggers() -> None:
    world = new_world("diff")
    world.run("ATTACH ':memory:' AS far", "CREATE TABLE far.main.v AS SELECT 1 AS k")
    with refused(world, ConfigError, "far", "diff"):
        World(world.connection, "diff", {"far.main.v": "trigger"}).create("mv", "SELECT k FROM far.main.v")


# --- files ------------------------------------------------------------------------------------------------------------


def write(world: World, path: Path, query: str) -> None:
    options = "FORMAT parquet" if path.suffix == ".parquet" else "FORMAT csv, HEADER"
    world.run(f"COPY ({query}) TO '{path}' ({options})")


@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
@pytest.mark.parametrize("reader", ["FROM '{}'", "FROM {}('{}')"])
def test_a_file(tmp_path: Path, name: str, reader: str) -> None:
    world = new_world("diff")
    path = tmp_path / name
    function = "read_parquet" if name.endswith("parquet") else "read_csv"
    source = reader.format(path) if reader.count("{}") == 1 else reader.format(function, path)
    write(world, path, "SELECT i % 3 AS k, i AS x, 'text' AS y FROM range(10) AS r(i)")
    world.create("mv", f"SELECT k, sum(x) AS s {source} GROUP BY k", "AGGREGATE_GROUP")
    write(world, path, "SELECT i % 3 AS k, i AS x, 'text' AS y FROM range(2, 15) AS r(i)")
    result = world.refresh("mv")
    assert (result.strategy, result.delta_rows) == ("incremental", 7)


def test_a_glob_of_files(tmp_path: Path) -> None:
    world = new_world("diff")
    write(world, tmp_path / "a.parquet", "SELECT 1 AS k, 10 AS x")
    world.create("mv", f"SELECT k, x FROM read_parquet('{tmp_path}/*.parquet')")
    write(world, tmp_path / "b.parquet", "SELECT 2 AS k, 20 AS x")
    assert world.refresh("mv").strategy == "incremental"
    (tmp_path / "a.parquet").unlink()
    world.refresh("mv")
    world.assert_rows("mv", (2, 20))


def test_a_file_joined_with_a_table(tmp_path: Path) -> None:
    world = new_world("diff", TABLE, ROWS)
    write(world, tmp_path / "d.parquet", "SELECT 1 AS k, 'one' AS name UNION ALL SELECT 2, 'two'")
    world.create("mv", f"SELECT t.x, d.name FROM t JOIN '{tmp_path / 'd.parquet'}' AS d ON t.k = d.k")
    write(world, tmp_path / "d.parquet", "SELECT 1 AS k, 'uno' AS name UNION ALL SELECT 2, 'two'")
    world.change("mv", "INSERT INTO t VALUES (1, 7, NULL)")
    world.assert_rows("mv", (1, "uno"), (2, "two"), (2, "two"), (7, "uno"))


def test_a_file_with_options(tmp_path: Path) -> None:
    world = new_world("diff")
    (tmp_path / "d.csv").write_text("k;x\n1;10\n2;20\n")
    world.create(
        "mv", f"SELECT k, sum(x) AS s FROM read_csv('{tmp_path}/d.csv', delim = ';', header = true) GROUP BY k"
    )
    (tmp_path / "d.csv").write_text("k;x\n1;10\n1;5\n")
    world.refresh("mv")
    world.assert_rows("mv", (1, 15))

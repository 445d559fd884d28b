"""What callers get wrong, and what stands in the way: names, types, settings, macros and functions of their own."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pytest

from dbt_openivm import IvmEngine
from dbt_openivm.engine.render import template_files
from dbt_openivm.engine.shadowed import CALLED
from dbt_openivm.errors import ConfigError, QueryError, UnsafeError
from tests.helpers import FULL, World
from tests.unit.engines import new_world, refused


@pytest.fixture
def world() -> World:
    return new_world("diff", "CREATE TABLE t (k INTEGER, s VARCHAR)", "INSERT INTO t VALUES (1, 'a'), (2, NULL)")


NO_NAMES = ['"unclosed', "main.", "", ".", "a..b", '"a"b', 'main."x', "a.b.c.d", '""', '"a".""', None, 3]


@pytest.mark.parametrize("name", NO_NAMES)
def test_no_name(world: World, name: Any) -> None:
    with refused(world, ConfigError, "name"):
        world.ivm.create_view(name, "SELECT k FROM t")
    with refused(world, ConfigError, "name"):
        world.ivm.refresh(name)
    with refused(world, ConfigError, "name"):
        world.ivm.drop_view(name)
    with pytest.raises(ConfigError):
        IvmEngine(world.connection, captures={name: "diff"})


@pytest.mark.parametrize("schema", ["nowhere", "information_schema", "pg_catalog", "temp"])
def test_an_unknown_schema(world: World, schema: str) -> None:
    with refused(world, ConfigError, schema, "CREATE SCHEMA"):
        world.ivm.create_view(f"{schema}.v", "SELECT k FROM t")


@pytest.mark.parametrize("name", ["openivm_v", "OpenIVM_v", "openivm.v", "openivm_main.v"])
def test_a_name_of_ours(world: World, name: str) -> None:
    with refused(world, ConfigError, "openivm_"):
        world.ivm.create_view(name, "SELECT k FROM t")


@pytest.mark.parametrize("sql", [None, 5, b"SELECT 1", ["SELECT 1"]])
def test_no_query(world: World, sql: Any) -> None:
    with refused(world, QueryError, "SELECT"):
        world.ivm.create_view("v", sql)
    with refused(world, QueryError, "SELECT"):
        world.ivm.explain(sql)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"connection": None}, "duckdb.connect"),
        ({"connection": "x.db"}, "duckdb.connect"),
        ({"captures": ["t"]}, "mapping"),
        ({"captures": {"t": None}}, "expected one of"),
        ({"capture": None}, "expected one of"),
        ({"refresh_mode": 3}, "expected one of"),
    ],
)
def test_wrong_types(world: World, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        IvmEngine(**{"connection": world.connection, **arguments})


def test_captures_of_nothing(world: World) -> None:
    engine = IvmEngine(world.connection, captures={"main.typo": "diff"})
    with refused(world, ConfigError, "main.typo"):
        engine.create_view("v", "SELECT k FROM t")
    world.run("CREATE TABLE typo (k INTEGER)")
    engine.create_view("v", "SELECT k FROM t")


def test_a_parent_that_lost_a_column_of_its_child(world: World) -> None:
    world.create("p", "SELECT k, s FROM t")
    world.create("c", "SELECT s, count(*) AS n FROM p GROUP BY s")
    world.create("p", "SELECT k FROM t")
    with refused(world, QueryError, "main.c", '"s"'):
        world.ivm.refresh("c")
    world.create("c", "SELECT count(*) AS n FROM p")


def test_a_failed_transaction(world: World) -> None:
    world.create("v", "SELECT k FROM t")
    world.run("BEGIN")
    with pytest.raises(QueryError):
        world.ivm.explain("SELECT nothing FROM t")
    with pytest.raises(UnsafeError, match="Roll it back"):
        world.ivm.refresh("v")
    world.run("ROLLBACK")
    world.refresh("v")


@pytest.mark.parametrize("select", ["k AS rowid, s", 'k AS "RowId", s, count(*) OVER () AS n', "s, k AS rowid"])
def test_a_column_named_rowid(world: World, select: str) -> None:
    query = f"SELECT {select} FROM t"
    world.ivm.create_view("v", query)
    world.queries["v"] = query
    world.create("below", "SELECT s, count(*) AS n FROM v GROUP BY s")
    world.change("v", "INSERT INTO t VALUES (1, 'b'), (1, 'a'), (NULL, 'z'), (NULL, 'z')")
    world.refresh("below")
    for gone in ("k = 1 AND s = 'b'", "s = 'a'", "s = 'z'"):
        result = world.change("v", f"DELETE FROM t WHERE {gone}")
        assert result.strategy == "incremental", result
        assert world.refresh("below").strategy == "incremental"


@pytest.mark.parametrize("macro", ["now()", "hash(x)", "sum(x)", "range(x)", "duckdb_tables()", "COUNT(x)"])
def test_a_macro_in_the_place_of_a_function_that_refreshes_call(world: World, macro: str) -> None:
    world.create("v", "SELECT s, count(*) AS n, max(k) AS m FROM t GROUP BY s")
    body = "TABLE SELECT 42 AS x" if macro == "duckdb_tables()" else "42"
    world.run(f"CREATE MACRO {macro} AS {body}")
    with pytest.raises(UnsafeError, match=re.escape(macro.split("(", 1)[0])):
        world.new_engine()
    world.run(f"DROP MACRO {'TABLE ' if 'TABLE' in body else ''}{macro.split('(', 1)[0]}")
    world.ivm = world.new_engine()
    world.change("v", "INSERT INTO t VALUES (1, 'b'), (1, 'a'), (NULL, 'z'), (NULL, 'z')")


def test_a_macro_elsewhere_is_in_nobodys_way(world: World) -> None:
    world.run("CREATE SCHEMA other", "CREATE MACRO other.now() AS 42", "CREATE MACRO twice(x) AS x * 2")
    world.ivm = world.new_engine()
    world.create("v", "SELECT twice(k) AS k FROM t")


def test_every_function_in_the_templates_is_watched() -> None:
    text = "\n".join(path.read_text() for path in template_files())
    text = re.sub(r"macro postgres__.*?endmacro", "", text, flags=re.DOTALL)  # what never runs in DuckDB
    calls = {name.lower() for name in re.findall(r"(?<![.\w])([a-z_]+)\(", text)}
    rows = duckdb.sql("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    assert (calls & {name for (name,) in rows}) - {"map", "format", "replace"} <= CALLED


@pytest.mark.parametrize(
    ("name", "function", "types", "call"),
    [
        ("nvl", lambda x, y: x or y, ["VARCHAR", "VARCHAR"], "nvl(s, 'none')"),
        ("nvl", lambda x, y: "mine", ["VARCHAR", "VARCHAR"], "nvl(s, 'none')"),
        ("initcap", lambda x: f"<{x}>", ["VARCHAR"], "initcap(s)"),
    ],
)
@pytest.mark.parametrize("through_a_view", [False, True])
def test_a_python_function_that_the_compiler_reads_as_another(
    name: str, function: Any, types: list[str], call: str, through_a_view: bool
) -> None:
    """Registered before the first engine of the process looks at DuckDB's functions, or after: either way."""
    connection = duckdb.connect()
    connection.create_function(name, function, types, "VARCHAR", null_handling="special")
    world = World(connection, "diff")
    world.run("CREATE TABLE t (k INTEGER, s VARCHAR)", "INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, '')")
    query = f"SELECT k, {call} AS v FROM t"
    if through_a_view:
        world.run(f"CREATE VIEW plain AS {query}")
        query = "SELECT k, v FROM plain"
    info = world.create("v", query, FULL)
    assert name in info.reason
    world.change("v", "INSERT INTO t VALUES (4, NULL), (5, '')")


def test_a_python_function_under_a_name_of_its_own(world: World) -> None:
    world.connection.create_function("my_own", lambda x: x + 1, ["INTEGER"], "INTEGER")
    world.create("v", "SELECT my_own(k) AS k, len(s) AS n, substr(s, 1, 1) AS c FROM t")
    world.change("v", "INSERT INTO t VALUES (4, 'abc')")

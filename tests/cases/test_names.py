"""Cases 41 to 44: names and schemas."""

from __future__ import annotations

import pytest

from dbt_openivm.names import quote
from tests.helpers import World, assert_view_is_exact
from tests.property.identifiers import NASTY


def test_case_41_names_in_another_case(world: World) -> None:
    """The query, the DML and the calls spell names as they like."""
    world.run("CREATE TABLE Msg (Id INTEGER, Body VARCHAR, n INTEGER)", "INSERT INTO msg VALUES (1, 'a', 1)")
    world.create(
        "Mv", "SELECT ID, m.BODY, M.N FROM MSG AS m WHERE msg_length(body) > 0".replace("msg_length", "length")
    )
    world.create("Sums", 'SELECT body, SUM("N") AS S FROM mSg GROUP BY Body')
    world.run("INSERT INTO MSG VALUES (2, 'b', 5), (3, 'a', 6)", "UPDATE Msg SET BODY = 'c' WHERE ID = 1")
    world.refresh("Mv")
    world.refresh("Sums")
    world.run("INSERT INTO msg VALUES (4, 'b', 1)")
    world.ivm.refresh("MV")
    world.ivm.refresh("sums")
    assert_view_is_exact(world.connection, "mv", world.queries["Mv"])
    assert_view_is_exact(world.connection, "SUMS", world.queries["Sums"])


@pytest.mark.parametrize("name", NASTY)
def test_case_42_odd_columns_tables_and_views(world: World, name: str) -> None:
    """One odd name for a column, its table and the view, as key, measure and join column."""
    odd, table = quote(name), quote(f"{name} t")
    world.run(f"CREATE TABLE {table} ({odd} INTEGER, x INTEGER)", f"INSERT INTO {table} VALUES (1, 2), (1, 3), (2, 4)")
    queries = {
        f"{name} p": f"SELECT {odd}, x FROM {table} WHERE {odd} > 0",
        f"{name} g": f"SELECT {odd}, SUM(x) AS {quote(name + 's')}, MIN({odd}) FROM {table} GROUP BY {odd}",
        f"{name} j": f"SELECT a.{odd}, b.x FROM {table} AS a JOIN {table} AS b USING ({odd})",
        f"{name} l": f"SELECT x, list({odd} ORDER BY {odd}) AS {odd} FROM {table} GROUP BY x",
        f"{name} d": f"SELECT DISTINCT {odd} FROM {table}",
        f"{name} c": f"SELECT COUNT(*) AS {odd} FROM {quote(name + ' d')}",
    }
    for view, sql in queries.items():
        world.ivm.create_view(quote(view), sql)
    for statement in (
        f"INSERT INTO {table} VALUES (3, 1), (1, 1)",
        f"DELETE FROM {table} WHERE x = 4",
        f"TRUNCATE {table}",
    ):
        world.run(statement)
        for view, sql in queries.items():
            world.ivm.refresh(quote(view))
            assert_view_is_exact(world.connection, quote(view), sql)
            assert world.ivm.refresh(quote(view)).strategy == "none"


def test_case_42_an_attached_database(world: World) -> None:
    """Sources in a database called hyphen-cat, beside one of the same name here."""
    world.run("ATTACH ':memory:' AS \"hyphen-cat\"")
    world.run('CREATE TABLE "hyphen-cat".main.t (k INTEGER, x INTEGER)', "CREATE TABLE t (k INTEGER, y INTEGER)")
    world.run('INSERT INTO "hyphen-cat".main.t VALUES (1, 10)', "INSERT INTO t VALUES (1, 5), (2, 6)")
    world.captures = {'"hyphen-cat".main.t': "diff"}
    world.ivm = world.new_engine()
    world.create("mv", 'SELECT a.k, x, y FROM "hyphen-cat".main.t AS a JOIN t AS b ON a.k = b.k')
    world.create("s", 'SELECT k, SUM(x) AS s FROM "hyphen-cat".t GROUP BY k')
    world.run('INSERT INTO "hyphen-cat".main.t VALUES (2, 20), (2, 21)')
    world.run("DELETE FROM t WHERE k = 1")
    assert world.refresh("mv").strategy == "incremental"
    world.refresh("s")
    world.assert_rows("mv", (2, 20, 6), (2, 21, 6))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*), SUM(x), MAX(x) + 1, SUM(x) FROM t",
        "SELECT g, COUNT(*), SUM(x), SUM(x) FROM t GROUP BY g",
        "SELECT g, g, x, x + 0 FROM t",
        "SELECT * FROM t AS a JOIN t AS b ON a.g = b.g",
        "SELECT a.*, b.g, b.* FROM t AS a JOIN t AS b ON a.x = b.x",
        "SELECT 'all', 1, COUNT(*) FROM t GROUP BY 1, 2",
        "SELECT 'all' AS k, SUM(x) FROM t GROUP BY k",
        "SELECT SUM(x) FROM t GROUP BY g",
        "SELECT g + 1, upper('x'), COUNT(*) FROM t GROUP BY ALL",
        "SELECT 1 FROM t",
        "SELECT DISTINCT 1, g FROM t",
        "SELECT g FROM t GROUP BY g",
        "SELECT 1 FROM t GROUP BY g, x",
        "SELECT x AS g, SUM(g) AS x FROM t GROUP BY t.x",
        "SELECT g AS a, a + 1 AS b, b * 2 AS c FROM t",
        "FROM t",
        "FROM t SELECT g, x WHERE x > 1",
        "SELECT count() FROM t HAVING count() > 2",
    ],
)
def test_case_43_columns_without_or_with_equal_names(world: World, sql: str) -> None:
    """Names are those DuckDB gives in a CTAS, whatever the query leaves open."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 2), (1, 3), (2, 2)")
    world.create("mv", sql)
    world.change("mv", "INSERT INTO t VALUES (3, 2), (1, 2)")
    world.change("mv", "DELETE FROM t WHERE x = 2")
    world.change("mv", "DELETE FROM t")


def test_case_44_a_view_under_another_name(world: World) -> None:
    """A view moves to another name and another schema; its old place can be dropped and used again."""
    world.run("CREATE SCHEMA side", "CREATE TABLE t (x INTEGER)", "INSERT INTO t VALUES (1), (2)")
    sql = "SELECT x, COUNT(*) AS n FROM t GROUP BY x"
    world.create("before", sql)
    world.ivm.create_view("after", sql)
    world.ivm.create_view("side.before", sql)
    world.ivm.drop_view("before")
    assert not world.query("SELECT * FROM duckdb_views() WHERE view_name = 'before' AND schema_name = 'main'")
    world.run("CREATE TABLE before AS SELECT 1 AS mine", "INSERT INTO t VALUES (2), (3)")
    for name in ("after", "side.before"):
        assert world.ivm.refresh(name).strategy == "incremental"
        assert_view_is_exact(world.connection, name, sql)
    assert world.query("FROM before") == [(1,)]


def test_case_44_one_name_in_two_schemas(world: World) -> None:
    """Tables and views of equal names in two schemas are told apart."""
    world.run("CREATE SCHEMA side", "CREATE TABLE t (x INTEGER)", "CREATE TABLE side.t (x INTEGER, y INTEGER)")
    world.run("INSERT INTO t VALUES (1)", "INSERT INTO side.t VALUES (7, 1)")
    queries = {
        "mv": "SELECT x FROM t",
        "side.mv": "SELECT SUM(x) AS s FROM side.t",
        "pairs": "SELECT * FROM mv, side.mv",
    }
    for name, sql in queries.items():
        world.ivm.create_view(name, sql)
    world.run("INSERT INTO t VALUES (2)", "UPDATE side.t SET x = 8")
    for name, sql in queries.items():
        world.ivm.refresh(name)
        assert_view_is_exact(world.connection, name, sql)


OVERRIDES = {
    "scalar": ("SELECT upper(s) AS r FROM t", "upper(a) AS 'Q' || a"),
    "operator": ("SELECT s LIKE 'a%' AS r FROM t", '"~~"(a, b) AS true'),
    "aggregate": ("SELECT product(x) AS r FROM t", "product(a) AS a"),
    "of rows": ("SELECT x, i FROM t, range(x) AS g(i)", "range(a) AS TABLE SELECT a - 5"),
    "by the parser's own name": ("SELECT char_length(s) AS r FROM t", "char_length(a) AS 42"),
    "of a list": ("SELECT list_contains([x], 1) AS r FROM t", "list_contains(a, b) AS a[1] = 2"),
    "shortened": ("SELECT len(s) AS r FROM t", "len(a) AS 42"),
    "not called": ("SELECT x ** 2 AS r FROM t", "power(a, b) AS 7"),
}


@pytest.mark.parametrize(("sql", "macro"), OVERRIDES.values(), ids=OVERRIDES.keys())
def test_a_macro_that_takes_the_place_of_a_function(world: World, sql: str, macro: str) -> None:
    """It may come after the view, and go again; nothing else changed then."""
    world.run("CREATE TABLE t (x INTEGER, d DATE, s VARCHAR)", "INSERT INTO t VALUES (1, '2024-01-01', 'a')")
    world.create("mv", sql)
    world.change("mv", "INSERT INTO t VALUES (2, '2025-01-01', 'b')")
    world.change("mv", f"CREATE MACRO {macro}")
    world.change("mv", "INSERT INTO t VALUES (3, '2026-01-01', 'c')")
    kind = "MACRO TABLE" if " AS TABLE " in macro else "MACRO"
    name = macro.partition("(")[0]
    world.change("mv", f"DROP {kind} {name}", "INSERT INTO t VALUES (4, '2027-01-01', 'd')")
    assert world.change("mv", "DELETE FROM t WHERE x = 1").strategy == "incremental"

"""Cases 49 and 50: DuckDB's own sharp edges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import World, connect, has_triggers


def test_case_49_groups_go_change_and_come_in_one_merge(world: World) -> None:
    """One batch empties a group, changes one, starts one and brings several rows for each."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (1, 2), (2, 3), (3, 4), (NULL, 5)")
    world.create("mv", "SELECT g, SUM(x) AS s, COUNT(*) AS n, MIN(x) AS lo FROM t GROUP BY g", "AGGREGATE_GROUP")
    world.create("once", "SELECT DISTINCT g FROM t", "DISTINCT_INCREMENTAL")
    world.run(
        "DELETE FROM t WHERE g = 1 OR g IS NULL",
        "INSERT INTO t VALUES (2, 10), (2, 20), (4, 1), (4, 2), (4, 3), (5, 1), (NULL, 1), (NULL, 2)",
        "DELETE FROM t WHERE g = 5",
        "UPDATE t SET g = 6 WHERE g = 3",
    )
    assert world.refresh("mv").strategy == "incremental"
    world.refresh("once")
    world.assert_rows("mv", (2, 33, 3, 3), (4, 6, 3, 1), (6, 4, 1, 4), (None, 3, 2, 1))


def test_case_49_many_rows_of_one_group(world: World) -> None:
    """The delta holds a thousand rows of one group: one state row, changed once."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1)")
    world.create("mv", "SELECT g, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY g")
    world.change("mv", "INSERT INTO t SELECT i % 2, 1 FROM range(1000) AS r(i)")
    world.assert_rows("mv", (0, 500, 500), (1, 501, 501))


def test_case_50_null_keys_and_reinsertion(world: World) -> None:
    """Two kinds of NULL keys; a group deleted and inserted again within one transaction, many times over."""
    world.run("CREATE TABLE t (a INTEGER, b VARCHAR, x INTEGER)", "INSERT INTO t VALUES (NULL, NULL, 1), (1, NULL, 2)")
    world.create("mv", "SELECT a, b, SUM(x) AS s FROM t GROUP BY a, b", "AGGREGATE_GROUP")
    for i in range(10):
        world.run(
            "BEGIN",
            "DELETE FROM t WHERE a IS NULL",
            f"INSERT INTO t VALUES (NULL, NULL, {i}), (NULL, 'x', 1)",
            "COMMIT",
        )
        world.refresh("mv")
    world.assert_rows("mv", (1, None, 2), (None, "x", 1), (None, None, 9))


def test_case_50_no_index_on_state(world: World) -> None:
    """State tables carry no unique index and no primary key."""
    world.run("CREATE TABLE t (g INTEGER PRIMARY KEY, x INTEGER)", "INSERT INTO t VALUES (1, 1)")
    world.create("mv", "SELECT g, SUM(x) AS s FROM t GROUP BY g")
    internal = "starts_with(schema_name, 'openivm')"
    assert not world.query(f"SELECT * FROM duckdb_indexes() WHERE {internal}")
    assert not world.query(
        f"SELECT * FROM duckdb_constraints() WHERE {internal} AND constraint_type IN ('PRIMARY KEY', 'UNIQUE')"
    )


@pytest.mark.parametrize("capture", ["diff", "trigger"])
def test_case_50_restarts(tmp_path: Path, capture: str) -> None:
    """The database is closed and opened between refreshes, and once between a change and its refresh."""
    if capture == "trigger" and not has_triggers():
        pytest.skip("triggers need DuckDB 2")
    path = str(tmp_path / "restart.db")
    queries = {
        "mv": "SELECT g, SUM(x) AS s, MAX(x) AS hi FROM t GROUP BY g",
        "child": "SELECT COUNT(*) AS n, SUM(s) AS s FROM mv",
        "rows": "SELECT a.x, b.x AS y FROM t AS a JOIN t AS b ON a.g = b.g",
    }
    with connect(path) as connection:
        world = World(connection, capture)
        world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (NULL, 2), (2, 3)")
        for name, sql in queries.items():
            world.create(name, sql)
    for i in range(3):
        with connect(path) as connection:
            connection.execute("DELETE FROM t WHERE g IS NULL")
            connection.execute(f"INSERT INTO t VALUES (NULL, {i}), ({i}, 7), (1, {i})")
        with connect(path) as connection:
            world = World(connection, capture)
            world.queries = queries
            for name in queries:
                assert world.refresh(name).strategy == "incremental"

"""The apply strategies of grouped aggregates: their results, which of them is taken, and that they share a state."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_openivm import IvmEngine
from dbt_openivm.choices import APPLY_STRATEGIES, AUTO, DELETE_INSERT, MERGE, UPDATE_INSERT_DELETE
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.compiler.strategies import batches
from dbt_openivm.engine import ways
from dbt_openivm.engine.cost import MANY_VECTORS, VECTOR, apply_strategy
from dbt_openivm.errors import ConfigError
from tests.cases import test_groups
from tests.helpers import World, connect, has_triggers

CASES = [case for name, case in sorted(vars(test_groups).items()) if name.startswith("test_case_")]
PLAIN = [case for case in CASES if not hasattr(case, "pytestmark")]
SPARED = "SELECT count(*) FROM openivm.openivm_refresh_history WHERE reason = 'as in a test'"
QUERIES = {
    "sums": "SELECT g, h, sum(x) AS s, count(*) AS n, avg(x) AS a FROM t GROUP BY g, h",
    "having": "SELECT g, sum(x) AS s FROM t GROUP BY g HAVING sum(x) > 5",
    "extrema": "SELECT g, min(x) AS lo, max(x) AS hi, count(x) AS n FROM t GROUP BY g",
    "keys": "SELECT DISTINCT g, h FROM t",
    "hidden": "SELECT sum(x) AS s FROM t GROUP BY g, h",
    "lists": "SELECT h, [sum(x), count(g)] AS l FROM t GROUP BY h",
}
CHANGES = (
    ("INSERT INTO t VALUES ('a', NULL, 1), (NULL, NULL, 2), (NULL, 1, 3), ('b', 1, NULL)",),
    ("INSERT INTO t VALUES ('a', NULL, 7), ('c', 3, 9)",),
    ("DELETE FROM t WHERE x = 7", "INSERT INTO t VALUES ('d', 4, 6)"),
    ("UPDATE t SET g = NULL WHERE g = 'a'", "UPDATE t SET x = x + 5 WHERE g = 'b' OR h = 1"),
    ("DELETE FROM t WHERE g IS NULL",),
    ("DELETE FROM t",),
    ("INSERT INTO t VALUES (NULL, NULL, 1), ('a', 1, 8)",),
)


@pytest.fixture(params=["diff", "trigger"])
def capture(request: pytest.FixtureRequest) -> str:
    """Without triggers the engine compares, as it does anyway."""
    return str(request.param) if has_triggers() else "diff"


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.__name__)
def test_cases_of_groups_in_batches(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases that need nothing but a world, in the way of a refresh with little memory."""
    monkeypatch.setattr(ways, "BATCHES", 2)
    monkeypatch.setattr(ways, "ASKED", ways.Way("as in a test", sparing=True))
    with connect() as connection:
        case(World(connection, "diff"))
        assert connection.execute(SPARED).fetchone() > (0,)


@pytest.mark.parametrize(("strategy", "consumed"), [(UPDATE_INSERT_DELETE, False), (DELETE_INSERT, True)])
@pytest.mark.parametrize("name", QUERIES)
def test_changes_of_every_kind(name: str, strategy: str, consumed: bool) -> None:
    """New groups, changed, emptied ones, partly NULL keys; with a consumer that follows the published delta."""
    with connect() as connection:
        world = World(connection, "trigger" if has_triggers() and not consumed else "diff")
        world.ivm.apply_strategy = strategy
        changes_of_every_kind(world, QUERIES[name], consumed)


def changes_of_every_kind(world: World, query: str, consumed: bool) -> None:
    world.run("CREATE TABLE t (g VARCHAR, h INTEGER, x INTEGER)", "INSERT INTO t VALUES ('a', 1, 1), ('b', 2, 9)")
    world.create("mv", query)
    if consumed:
        world.create("reader", "SELECT count(*) AS n FROM mv")
        world.create("copy", "SELECT * FROM mv")
    for statements in CHANGES:
        result = world.change("mv", *statements)
        assert result.strategy == "incremental", result
        if consumed:
            world.refresh("reader")
            world.refresh("copy")


LABELS = {
    AUTO: "merge the delta",
    MERGE: "merge the delta",
    UPDATE_INSERT_DELETE: "update the groups",
    DELETE_INSERT: "insert the touched groups",
}


def last_steps(connection: Any) -> str:
    """The statements of the last refresh."""
    steps = "SELECT steps FROM openivm.openivm_refresh_history ORDER BY rowid DESC LIMIT 1"
    return str(connection.execute(steps).fetchone()[0])


def test_another_strategy_needs_no_rebuild(capture: str) -> None:
    """It is kept with the view, takes over the state of the last one, and counts the same rows."""
    with connect() as connection:
        connection.execute("CREATE TABLE t (g VARCHAR, x INTEGER)")
        connection.execute("INSERT INTO t VALUES ('a', 1), ('b', 2)")
        engine, query = IvmEngine(connection, capture), "SELECT g, sum(x) AS s FROM t GROUP BY g"
        for strategy in APPLY_STRATEGIES:
            engine.create_view("mv", query, strategy)
            connection.execute("DELETE FROM t WHERE g = 'b'")
            connection.execute("INSERT INTO t VALUES ('a', 1), ('c', 2)")
            result = IvmEngine(connection, capture).refresh("mv")
            assert (result.strategy, result.changed_rows) == ("incremental", 3)
            assert LABELS[strategy] in last_steps(connection)
            connection.execute("DELETE FROM t WHERE g = 'c'")
            connection.execute("INSERT INTO t VALUES ('b', 2)")
            assert engine.refresh("mv").changed_rows == 2
            assert LABELS[strategy] in last_steps(connection)


def test_auto_follows_the_sizes(capture: str) -> None:
    """Also in quick refreshes, which keep their programs."""
    with connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT i AS g, 1 AS x FROM range({MANY_VECTORS * VECTOR}) r(i)")
        world = World(connection, capture)
        world.create("mv", "SELECT g, sum(x) AS s, count(*) AS n FROM t GROUP BY g")
        few = "INSERT INTO t VALUES (1, 1), (-1, 1)"
        many = f"INSERT INTO t SELECT i, 1 FROM range({MANY_VECTORS}) r(i)"
        for change, strategy in ((few, MERGE), (many, DELETE_INSERT), (few, MERGE)):
            assert world.change("mv", change).strategy == "incremental"
            assert LABELS[strategy] in last_steps(connection)


@pytest.mark.parametrize(
    ("asked", "changes", "groups", "expected"),
    [
        (AUTO, 10**9, MANY_VECTORS * VECTOR - 1, MERGE),
        (AUTO, MANY_VECTORS, MANY_VECTORS * VECTOR, DELETE_INSERT),
        (AUTO, MANY_VECTORS - 1, 10**9, MERGE),
        (MERGE, 10**9, 10**9, MERGE),
        (UPDATE_INSERT_DELETE, 1, 1, UPDATE_INSERT_DELETE),
    ],
)
def test_choice_by_sizes(asked: str, changes: int, groups: int, expected: str) -> None:
    deltas = [SourceState("t", "log", 1, 2, changes - 1, 1)]
    assert apply_strategy(asked, deltas, groups) == expected


def test_an_unknown_strategy_is_refused() -> None:
    expected = "apply_strategy is 'upsert', expected one of auto, merge, update_insert_delete, delete_insert"
    with connect() as connection:
        with pytest.raises(ConfigError, match=expected):
            IvmEngine(connection, apply_strategy="upsert")
        with pytest.raises(ConfigError, match=f"The view memory.main.mv: {expected}"):
            IvmEngine(connection).create_view("mv", "SELECT 1 AS one", "upsert")


def test_batches_part_the_groups() -> None:
    """Each group is in one of them, also those of NULL."""
    with connect() as connection:
        connection.execute("CREATE TABLE d AS SELECT nullif(i, 0) AS g, nullif(i % 3, 0) AS h FROM range(90) r(i)")
        parts = list(batches("d", ['"g"', '"h"'], 4))
        found = connection.execute(" UNION ALL ".join(f"(FROM {part})" for part in parts)).fetchall()
        assert len(parts) == 4
        assert sorted(map(str, found)) == sorted(map(str, connection.execute("FROM d").fetchall()))
    assert list(batches("d", ['"g"'], 1)) == ["d"]

"""The apply strategies of grouped aggregates: each case under each, with both captures, checked after every refresh."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from dbt_openivm import IvmEngine
from dbt_openivm.choices import APPLY_STRATEGIES
from dbt_openivm.errors import ConfigError
from tests.cases import test_groups
from tests.helpers import World, connect, has_triggers

CASES = [case for name, case in sorted(vars(test_groups).items()) if name.startswith("test_case_")]
PLAIN = [case for case in CASES if not hasattr(case, "pytestmark")]
QUERIES = {
    "sums": "SELECT g, h, sum(x) AS s, count(*) AS n, avg(x) AS a FROM t GROUP BY g, h",
    "having": "SELECT g, sum(x) AS s FROM t GROUP BY g HAVING sum(x) > 5",
    "extrema": "SELECT g, min(x) AS lo, max(x) AS hi, count(x) AS n FROM t GROUP BY g",
    "keys": "SELECT DISTINCT g, h FROM t",
    "hidden": "SELECT sum(x) AS s FROM t GROUP BY g, h",
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


class Applying(World):
    """A world with an apply strategy."""

    strategy = "auto"

    def new_engine(self, connection: object = None) -> IvmEngine:
        return IvmEngine(connection or self.connection, capture=self.capture, apply_strategy=self.strategy)


@pytest.fixture(params=["diff", "trigger"])
def capture(request: pytest.FixtureRequest) -> str:
    if request.param == "trigger" and not has_triggers():
        pytest.skip("triggers need DuckDB 2")
    return str(request.param)


@pytest.fixture(params=APPLY_STRATEGIES[1:])
def world(request: pytest.FixtureRequest, capture: str) -> Iterator[Applying]:
    with connect() as connection:
        made = Applying(connection, capture)
        made.strategy = request.param
        made.ivm = made.new_engine()
        yield made


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.__name__)
def test_cases_of_groups(case: object, world: World) -> None:
    """The cases that need nothing but a world."""
    assert callable(case)
    case(world)


@pytest.mark.parametrize("consumed", [False, True], ids=["alone", "consumed"])
@pytest.mark.parametrize("name", QUERIES)
def test_changes_of_every_kind(world: World, name: str, consumed: bool) -> None:
    """New groups, changed, emptied ones, partly NULL keys; with a consumer that follows the published delta."""
    world.run("CREATE TABLE t (g VARCHAR, h INTEGER, x INTEGER)", "INSERT INTO t VALUES ('a', 1, 1), ('b', 2, 9)")
    world.create("mv", QUERIES[name])
    if consumed:
        world.create("reader", "SELECT count(*) AS n FROM mv")
        world.create("copy", "SELECT * FROM mv")
    for statements in CHANGES:
        result = world.change("mv", *statements)
        assert result.strategy == "incremental", result
        if consumed:
            world.refresh("reader")
            world.refresh("copy")


def test_all_strategies_count_the_same_rows_and_share_a_state(capture: str) -> None:
    """Another strategy takes over the state of the last one, without a rebuild."""
    with connect() as connection:
        connection.execute("CREATE TABLE t (g VARCHAR, x INTEGER)")
        connection.execute("INSERT INTO t VALUES ('a', 1), ('b', 2)")
        IvmEngine(connection, capture).create_view("mv", "SELECT g, sum(x) AS s FROM t GROUP BY g")
        for strategy in APPLY_STRATEGIES:
            connection.execute("DELETE FROM t WHERE g = 'b'")
            connection.execute("INSERT INTO t VALUES ('a', 1), ('c', 2)")
            engine = IvmEngine(connection, capture, apply_strategy=strategy)
            result = engine.refresh("mv")
            assert (result.strategy, result.changed_rows) == ("incremental", 3)
            connection.execute("DELETE FROM t WHERE g = 'c'")
            connection.execute("INSERT INTO t VALUES ('b', 2)")
            assert engine.refresh("mv").changed_rows == 2


@pytest.mark.parametrize("strategy", APPLY_STRATEGIES[1:])
def test_each_strategy_has_its_program(strategy: str) -> None:
    """The statements that `explain` shows are those of the strategy."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (g VARCHAR, x INTEGER)")
        text = IvmEngine(connection, apply_strategy=strategy).explain("SELECT g, sum(x) AS s FROM t GROUP BY g")
    found = [word for word in ("MERGE INTO", "ANTI JOIN", "openivm_merged") if word in text]
    assert (
        found
        == {
            "merge": ["MERGE INTO"],
            "update_insert_delete": ["ANTI JOIN"],
            "delete_insert": ["ANTI JOIN", "openivm_merged"],
        }[strategy]
    )


def test_an_unknown_strategy_is_refused() -> None:
    with duckdb.connect() as connection, pytest.raises(ConfigError, match="apply_strategy is 'upsert', expected one"):
        IvmEngine(connection, apply_strategy="upsert")

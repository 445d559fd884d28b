"""Values that DuckDB calls equal and a reader can tell apart reach every view below: as rows, through groups, full
refreshes, rebuilds and internal views."""

from __future__ import annotations

import pytest

from dbt_openivm import IvmEngine
from tests.helpers import World
from tests.unit.engines import new_world

#: type, two values that DuckDB's `=` takes for one
PAIRS = {
    "double": ("DOUBLE", "0.0::DOUBLE", "-0.0::DOUBLE"),
    "interval": ("INTERVAL", "INTERVAL 30 days", "INTERVAL 1 month"),
    "nocase": ("VARCHAR COLLATE NOCASE", "'a'", "'A'"),
    "accents": ("VARCHAR COLLATE NOACCENT", "'e'", "'é'"),
    "struct": ("STRUCT(x INTERVAL)", "{'x': INTERVAL 24 hours}", "{'x': INTERVAL 1 day}"),
    "list": ("DOUBLE[]", "[0.0::DOUBLE]", "[-0.0::DOUBLE]"),
}
# not any_value() or arg_max(): DuckDB's own turn a nested -0.0 into 0.0
GROUPED = "SELECT k, list(v)[1] AS v FROM t GROUP BY k"
PARENTS = {
    "bag": "SELECT k, v FROM t",
    "groups": GROUPED,
    "having": f"{GROUPED} HAVING count(*) > 0",
    "window": "SELECT k, v FROM t QUALIFY row_number() OVER (PARTITION BY k) = 1",
    "limit": "SELECT k, v FROM t ORDER BY k LIMIT 5",
    "internal": f"SELECT g.k, g.v FROM ({GROUPED}) AS g JOIN t ON t.k = g.k",
    "cte read twice": "WITH c AS (SELECT k, v FROM t WHERE k > 0) SELECT c.k, d.v FROM c JOIN c AS d ON c.k = d.k",
}


def texts(world: World, name: str) -> list[tuple[object, ...]]:
    return sorted(world.query(f"SELECT k, CAST(v AS VARCHAR) FROM {name}"))


def tables(pair: str) -> list[str]:
    kind, first, _ = PAIRS[pair]
    return [f"CREATE TABLE t (k INTEGER, v {kind})", f"INSERT INTO t VALUES (1, {first}), (2, {first})"]


def swap(pair: str) -> list[str]:
    """DELETE and INSERT: an UPDATE may leave the stored value as it is, since DuckDB calls the two equal."""
    return ["DELETE FROM t WHERE k = 1", f"INSERT INTO t VALUES (1, {PAIRS[pair][2]})"]


def expected_rows(world: World) -> list[tuple[object, ...]]:
    return sorted(world.query("SELECT k, CAST(v AS VARCHAR) FROM t"))


@pytest.mark.parametrize("mode", ["auto", "full"])
@pytest.mark.parametrize("parent", PARENTS)
@pytest.mark.parametrize("pair", PAIRS)
def test_reaches_the_child(pair: str, parent: str, mode: str) -> None:
    world = new_world("diff", *tables(pair))
    engine = IvmEngine(world.connection, refresh_mode=mode)
    engine.create_view("p", PARENTS[parent])
    world.ivm.create_view("c", "SELECT k, v FROM p")
    world.ivm.create_view("below", "SELECT k, v FROM c")
    world.run(*swap(pair))
    for name, maintained in (("p", engine), ("c", world.ivm), ("below", world.ivm)):
        maintained.refresh(name)
        assert texts(world, name) == expected_rows(world), name
    assert world.ivm.refresh("c").strategy == "none"


@pytest.mark.parametrize("pair", PAIRS)
def test_a_rebuild_hands_it_down(pair: str) -> None:
    world = new_world("diff", *tables(pair))
    world.ivm.create_view("p", "SELECT k, v FROM t")
    world.ivm.create_view("c", "SELECT k, v FROM p")
    world.run(*swap(pair))
    assert world.ivm.refresh("p", full=True).strategy == "rebuild"
    result = world.ivm.refresh("c")
    assert (result.strategy, result.delta_rows) == ("incremental", 2)
    assert texts(world, "c") == expected_rows(world)


def test_an_expression_over_aggregates_changes_to_an_equal_value() -> None:
    """DuckDB's UPDATE would keep the old value."""
    interval = "CASE WHEN sum(x) > 5 THEN INTERVAL 1 month ELSE INTERVAL 30 days END AS v"
    world = new_world("diff", "CREATE TABLE t (k INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 9)")
    world.create("grouped", f"SELECT k, {interval} FROM t GROUP BY k")
    world.create("single", f"SELECT 0 AS k, {interval} FROM t WHERE k = 1")
    world.create("nested", f"SELECT 0 AS k, list(v ORDER BY k)[1] AS v FROM (SELECT k, {interval} FROM t GROUP BY k)")
    world.run("INSERT INTO t VALUES (1, 10)")
    for name in ("grouped", "single", "nested"):
        world.refresh(name)
        assert texts(world, name)[0][1] == "1 month", name
    world.run("DELETE FROM t WHERE x = 10")
    for name in ("grouped", "single", "nested"):
        world.refresh(name)
        assert texts(world, name)[0][1] == "30 days", name

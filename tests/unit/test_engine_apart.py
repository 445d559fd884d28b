"""Prepared, then something happens, then applied: as dbt does it, with the model's hooks in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt_openivm.engine.maintain import Maintainer
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.errors import UnsafeError
from dbt_openivm.names import RelationName
from tests.helpers import World, assert_view_is_exact
from tests.unit.engines import new_world

PARENT = "SELECT k, sum(x) AS s FROM t GROUP BY k"
CHILD = "SELECT count(*) AS n, sum(s) AS z FROM p"
OTHER = "SELECT k, count(*) AS n FROM t GROUP BY k"


@pytest.fixture
def world() -> World:
    made = new_world("diff", "CREATE TABLE t (k INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    made.create("p", PARENT)
    return made


def apart(world: World, name: str, query: str, meanwhile: Callable[[], Any]) -> Any:
    """Refresh a view in two steps, with something in between."""
    session = DuckDBSession(world.connection.cursor())
    maintainer = Maintainer(session, "memory", render)
    prepared = maintainer.prepare(ViewSpec(RelationName("memory", "main", name), query))
    try:
        meanwhile()
        result = maintainer.transaction(lambda: maintainer.apply(prepared))
    finally:
        maintainer.release(prepared)
    world.queries[name] = query
    assert_view_is_exact(world.connection, name, query)
    world.change(name, "INSERT INTO t VALUES (1, 100)")
    return result


@pytest.mark.parametrize("change", [None, "DELETE FROM openivm_main.openivm_data_p WHERE k = 1"])
def test_the_parent_was_rebuilt(world: World, change: str | None) -> None:
    world.create("c", CHILD)

    def rebuild() -> None:
        world.run("INSERT INTO t VALUES (3, 3)", *([change] if change else []))
        world.refresh("p")

    assert apart(world, "c", CHILD, rebuild).strategy == ("rebuild" if change else "incremental")


@pytest.mark.parametrize("built", [False, True])
def test_the_parent_got_other_columns(world: World, built: bool) -> None:
    if built:
        world.create("c", CHILD)
    with pytest.raises(UnsafeError, match=r"main\.p.*Run again"):
        apart(world, "c", CHILD, lambda: world.create("p", "SELECT k, x AS s, x FROM t"))
    world.create("c", CHILD)


def test_the_parent_was_dropped(world: World) -> None:
    with pytest.raises(UnsafeError, match=r"main\.p.*Run again"):
        apart(world, "c", CHILD, lambda: world.ivm.drop_view("p"))


@pytest.mark.parametrize("built", [False, True])
def test_the_capture_began_anew(world: World, built: bool) -> None:
    if built:
        world.create("o", OTHER)

    def begin_anew() -> None:
        world.run("DELETE FROM openivm_main.openivm_copy_t WHERE k = 1", "INSERT INTO t VALUES (3, 3)")
        world.refresh("p")

    assert apart(world, "o", OTHER, begin_anew).strategy == ("rebuild" if built else "build")


def test_the_only_other_reader_was_dropped(world: World) -> None:
    assert apart(world, "o", OTHER, lambda: world.ivm.drop_view("p")).strategy == "build"


def test_the_capture_became_narrower(world: World) -> None:
    """It began anew for a view that needs other columns."""
    query = "SELECT x FROM t"

    def begin_anew() -> None:
        world.run("DROP TABLE openivm_main.openivm_copy_t")
        world.run('UPDATE openivm.openivm_sources SET columns = \'[["k", "INTEGER"]]\'')
        world.create("o", "SELECT k FROM t")

    with pytest.raises(UnsafeError, match=r"main\.t.*Run again"):
        apart(world, "v", query, begin_anew)
    world.create("v", query)

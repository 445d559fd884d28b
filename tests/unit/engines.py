"""What tests of the engine share: peeks into its catalog and logs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dbt_openivm.errors import OpenIvmError
from tests.helpers import World, connect, internal_rows


def new_world(capture: str = "diff", *statements: str) -> World:
    world = World(connect(), capture)
    world.run(*statements)
    return world


def log_rows(world: World, name: str) -> int:
    """Rows in the change log of a base table or of a view."""
    found = world.query(
        "SELECT table_name FROM duckdb_tables() WHERE table_name IN "
        f"('openivm_delta_{name}', 'openivm_delta_openivm_visible_{name}')"
    )
    [(table,)] = found
    return int(world.query(f"SELECT count(*) FROM openivm_main.{table}")[0][0])


def columns_kept(world: World, name: str) -> set[str]:
    """The columns of a base that are captured."""
    rows = world.query(f"DESCRIBE openivm_main.openivm_delta_{name}")
    return {row[0] for row in rows if not row[0].startswith("openivm_")}


def capture_of(world: World, name: str) -> str:
    [(kind,)] = world.query(f"SELECT capture FROM openivm.openivm_sources WHERE source_key = 'memory.main.{name}'")
    return str(kind)


def history(world: World, view: str) -> list[tuple[Any, ...]]:
    """(strategy, reason, delta_rows, changed_rows) of each refresh, oldest first."""
    return world.query(
        "SELECT strategy, reason, delta_rows, changed_rows FROM openivm.openivm_refresh_history "
        f"WHERE view_key = 'memory.main.{view}' ORDER BY started_at, rowid"
    )


@contextmanager
def refused(world: World, kind: type[OpenIvmError], *words: str) -> Iterator[None]:
    """The block raises an error of this kind that says all these words, and nothing that we keep has changed."""
    before = internal_rows(world.connection)
    with pytest.raises(kind) as caught:
        yield
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert internal_rows(world.connection) == before

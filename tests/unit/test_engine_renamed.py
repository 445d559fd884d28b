"""A database file under another name: views are rebuilt, and carry on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import World, connect, has_triggers

QUERIES = {"mv": "SELECT g, sum(x) AS s FROM t GROUP BY g", "child": "SELECT count(*) AS n, sum(s) AS s FROM mv"}


@pytest.mark.parametrize("capture", ["diff", "trigger"])
def test_a_renamed_file(tmp_path: Path, capture: str) -> None:
    if capture == "trigger" and not has_triggers():
        pytest.skip("triggers need DuckDB 2.0")
    with connect(str(tmp_path / "prod.duckdb")) as connection:
        world = World(connection, capture)
        world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2)")
        for name, query in QUERIES.items():
            world.create(name, query)
    (tmp_path / "prod.duckdb").rename(tmp_path / "dev.duckdb")
    with connect(str(tmp_path / "dev.duckdb")) as connection:
        world = World(connection, capture)
        world.queries = dict(QUERIES)
        assert [world.refresh(name).strategy for name in QUERIES] == ["rebuild", "rebuild"]
        world.run("INSERT INTO t VALUES (1, 5)", "DELETE FROM t WHERE g = 2")
        assert [world.refresh(name).strategy for name in QUERIES] == ["incremental", "incremental"]

"""Copies of a view in another database, kept by what a consumer reads."""

from __future__ import annotations

from typing import Any

from dbt_openivm.engine.types import Changes

HIDDEN = "openivm_multiplicity, openivm_batch, openivm_timestamp"


def replay(connection: Any, changes: Changes, copy: str) -> None:
    """Bring a copy from `changes.after` to `changes.version`, batch by batch: each takes away only what is there."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE changes AS {changes.sql}")
    for (batch,) in connection.execute("SELECT DISTINCT openivm_batch FROM changes ORDER BY 1").fetchall():
        rows = (
            f"SELECT * EXCLUDE ({HIDDEN}, openivm_copy) FROM (SELECT *, unnest(range(abs(openivm_multiplicity))) AS "
            f"openivm_copy FROM changes WHERE openivm_batch = {batch} AND openivm_multiplicity"
        )
        [(lacking,)] = connection.execute(f"SELECT count(*) FROM (({rows} < 0)) EXCEPT ALL FROM {copy})").fetchall()
        assert not lacking, "a change takes away what is not there"
        connection.execute(
            f"CREATE OR REPLACE TABLE {copy} AS (FROM {copy} EXCEPT ALL ({rows} < 0))) UNION ALL ({rows} > 0))"
        )


def assert_equal(connection: Any, copy: str, view: str) -> None:
    for left, right in ((copy, view), (view, copy)):
        assert connection.execute(f"FROM {left} EXCEPT ALL FROM {right}").fetchall() == []


def not_net(connection: Any) -> list[tuple[Any, ...]]:
    """The tuples that stand in one batch of what was replayed last more than once."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT * EXCLUDE (openivm_multiplicity, openivm_timestamp), count(*) FROM changes GROUP BY ALL "
        "HAVING count(*) > 1"
    ).fetchall()
    return rows

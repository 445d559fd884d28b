"""Times, the yardstick, and the check that a view equals its query."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import duckdb

from benchmarks.views import View


def milliseconds(action: Callable[[], object]) -> float:
    """How long an action takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def middle(values: list[float]) -> float:
    """The median; NaN where nothing was measured."""
    return median(values) if values else float("nan")


def recompute(con: duckdb.DuckDBPyConnection, view: View) -> float:
    """Milliseconds of the view's query into temporary table `recompute`."""
    return milliseconds(lambda: con.execute(f"CREATE OR REPLACE TEMP TABLE recompute AS {view.sql}").fetchall())


def differences(con: duckdb.DuckDBPyConnection, view: View, relation: str) -> int:
    """Rows in which a relation and temporary table `recompute` differ, counted on both sides."""
    exact = ", ".join(view.exact)
    sides = [f"SELECT {exact} FROM {name}" for name in (relation, "recompute")]
    differing = sum(_count(con, f"({one}) EXCEPT ALL ({other})") for one, other in (sides, sides[::-1]))
    return differing + sum(_count(con, _too_far(view, relation, column)) for column in view.floats)


def _too_far(view: View, relation: str, column: str) -> str:
    near = (
        f"coalesce(abs(v.{column} - r.{column}) <= 1e-9 * abs(r.{column}), v.{column} IS NOT DISTINCT FROM r.{column})"
    )
    return f"SELECT 1 FROM {relation} AS v JOIN recompute AS r USING ({', '.join(view.unique_key)}) WHERE NOT {near}"


def _count(con: duckdb.DuckDBPyConnection, query: str) -> int:
    [(count,)] = con.execute(f"SELECT count(*) FROM ({query})").fetchall()
    return int(count)

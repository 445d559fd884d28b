"""The yardstick: what it costs to compute a model's query anew."""

from __future__ import annotations

import time

import duckdb

REPEATS = 3


def recompute(con: duckdb.DuckDBPyConnection, sql: str) -> float:
    """Milliseconds of the query into a temporary table: the best of a few runs, so with warm caches."""
    return min(_once(con, sql) for _ in range(REPEATS))


def _once(con: duckdb.DuckDBPyConnection, sql: str) -> float:
    start = time.perf_counter()
    con.execute(f"CREATE OR REPLACE TEMP TABLE recompute AS {sql}").fetchall()
    return (time.perf_counter() - start) * 1000

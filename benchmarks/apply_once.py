"""Programs in a process of their own, under a memory limit.

Reads JSON from standard input: the database, settings of DuckDB, programs (each a list of statements, run in one
transaction) and a query. Prints JSON: wall and CPU milliseconds of each program with its commit, the query's answer
after the first and after the last, bytes resident at most, and the error where one ran out of memory. It imports
nothing but DuckDB, so that the peak is that of the programs.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import duckdb

from benchmarks.resident import resident_peak


def main() -> None:
    """Run what standard input asks for."""
    asked = json.load(sys.stdin)
    took: list[tuple[float, float]] = []
    answers: list[str] = []
    error = None
    with duckdb.connect(asked["database"], config=asked["settings"]) as con:
        try:
            for number, program in enumerate(asked["programs"], start=1):
                took.append(timed(con, program))
                if number in (1, len(asked["programs"])):
                    answers.append(str(con.execute(asked["query"]).fetchall()))
        except duckdb.OutOfMemoryException as failed:
            error = str(failed).splitlines()[0]
        print(json.dumps({"took": took, "answers": answers, "peak": resident_peak(), "error": error}))


def timed(con: Any, program: list[str]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    for statement in ("BEGIN", *program, "COMMIT"):
        con.execute(statement).fetchall()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


if __name__ == "__main__":
    main()

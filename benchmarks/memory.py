"""Peak memory and time of one operation in a process of its own that does nothing else.

`python -m benchmarks.memory refresh FILE A` refreshes the engine's view, `recompute` runs its query into a temporary
table, `idle` only connects. All three import the same modules.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.measure import milliseconds, recompute
from benchmarks.resident import resident_peak
from benchmarks.views import VIEWS, View


@dataclass(frozen=True)
class Alone:
    """What one operation took: megabytes resident at most, and milliseconds without imports and connecting."""

    megabytes: float
    milliseconds: float


def alone(operation: str, database: Path, view: View) -> Alone:
    """Do one operation on a database in a new process."""
    command = [sys.executable, "-m", "benchmarks.memory", operation, str(database), view.name]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    taken, took = done.stdout.split()[-2:]
    return Alone(float(taken) / 1e6, float(took))


def _refresh(con: duckdb.DuckDBPyConnection, _: View) -> None:
    from dbt_openivm import IvmEngine

    IvmEngine(con, capture="trigger").refresh("by_engine")


def _idle(con: duckdb.DuckDBPyConnection, _: View) -> None:
    con.execute("SELECT 1").fetchall()


OPERATIONS: dict[str, Callable[[duckdb.DuckDBPyConnection, View], object]] = {
    "idle": _idle,
    "recompute": recompute,
    "refresh": _refresh,
}


def main(operation: str, database: str, view: str) -> None:
    """Do one operation, and print the bytes and the milliseconds it took."""
    import sqlglot.dialects.duckdb  # noqa: F401, sqlglot loads it on first use

    import dbt_openivm.engine.engine  # noqa: F401, its memory is not that of the operation

    with duckdb.connect(database) as con:
        took = milliseconds(lambda: OPERATIONS[operation](con, VIEWS[view]))
    print(resident_peak(), took)


if __name__ == "__main__":
    main(*sys.argv[1:])

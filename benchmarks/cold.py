"""Compile time of a view in a process that has compiled nothing yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb

from benchmarks.measure import milliseconds
from benchmarks.views import VIEWS, View


def cold_compile(database: Path, view: View) -> float:
    """Milliseconds from query to program, the catalog's facts included and Python's imports not."""
    command = [sys.executable, "-m", "benchmarks.cold", str(database), view.name]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    return float(done.stdout.splitlines()[-1])


def main(database: str, name: str) -> None:
    """Compile one view, and print the milliseconds."""
    from dbt_openivm.engine.engine import IvmEngine

    with duckdb.connect(database, read_only=True) as con:
        engine = IvmEngine(con, capture="trigger")
        print(milliseconds(lambda: engine.explain(VIEWS[name].sql)))


if __name__ == "__main__":
    main(*sys.argv[1:])

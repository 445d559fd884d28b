"""Compile time of a view in a process that has compiled nothing yet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb

from benchmarks.measure import milliseconds
from benchmarks.views import VIEWS, View


def cold_compile(database: Path, view: View) -> float:
    """Milliseconds from query to plan: with what DuckDB is asked on the way, without Python's imports."""
    command = [sys.executable, "-m", "benchmarks.cold", str(database), view.name]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    return float(done.stdout.splitlines()[-1])


def main(database: str, name: str) -> None:
    """Compile one view, and print the milliseconds."""
    import sqlglot.dialects.duckdb  # noqa: F401, sqlglot loads it on first use

    from dbt_openivm.engine.engine import IvmEngine
    from dbt_openivm.engine.prepare import compile_view

    with duckdb.connect(database) as con:
        engine = IvmEngine(con, capture="trigger")
        spec = engine.spec(engine.resolve("by_engine"), VIEWS[name].sql)
        print(milliseconds(lambda: compile_view(engine.session, spec, {})))


if __name__ == "__main__":
    main(*sys.argv[1:])

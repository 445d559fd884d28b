"""Compile time of a view in a process that has compiled nothing yet."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.measure import milliseconds
from benchmarks.views import VIEWS, View


@dataclass(frozen=True)
class Compiled:
    """Milliseconds from query to plan: the compiler's own, and DuckDB's for the facts and types it was asked for."""

    compiler: float
    duckdb: float


class _Asked:
    """A session that adds up how long its answers take."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.milliseconds = 0.0

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        start = time.perf_counter()
        rows: list[tuple[Any, ...]] = self.session.execute(sql)
        self.milliseconds += (time.perf_counter() - start) * 1000
        return rows


def cold_compile(database: Path, view: View) -> Compiled:
    """Compile a view in a new process; Python's imports do not count."""
    command = [sys.executable, "-m", "benchmarks.cold", str(database), view.name]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    took, asked = map(float, done.stdout.split()[-2:])
    return Compiled(took - asked, asked)


def main(database: str, name: str) -> None:
    """Compile one view, and print the milliseconds it took and those of DuckDB in them."""
    import sqlglot.dialects.duckdb  # noqa: F401, sqlglot loads it on first use

    from dbt_openivm.engine.engine import IvmEngine
    from dbt_openivm.engine.planning import compile_view

    with duckdb.connect(database) as con:
        engine = IvmEngine(con, capture="trigger")
        spec = engine.spec(engine.resolve("by_engine"), VIEWS[name].sql)
        session: Any = _Asked(engine.session)
        took = milliseconds(lambda: compile_view(session, spec, lambda _name, _sql: False))
    print(took, session.milliseconds)


if __name__ == "__main__":
    main(*sys.argv[1:])

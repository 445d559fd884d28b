"""`make bench-apply`: how the groups of an aggregate best take their change.

Each apply strategy adds changes of 10 to 10,000,000 rows to states of 1,000 to 10,000,000 groups, with the statements
that the engine would run, and their commit, in a process of its own. The change updates groups (7 rows in 10), brings
new ones (1) and empties some (2); then it is taken back, and so on, in turns. The first of these refreshes is no
sample. A second table has memory limits under which the strategies, the engine's way with little memory and a recompute
of the state come through, or not. All strategies must leave the same state; else the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

from benchmarks.report import markdown
from dbt_openivm.choices import APPLY_STRATEGIES, AUTO, DELETE_INSERT, MERGE
from dbt_openivm.compiler.plan import NodeProgram, Target
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.engine.cost import apply_strategy
from dbt_openivm.engine.planning import compile_view
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.engine.ways import BATCHES
from dbt_openivm.names import RelationName

QUERY = "SELECT k, sum(x) AS total, count(*) AS n, avg(x) AS mean FROM sales GROUP BY k"
FINGERPRINT = "SELECT count(*), sum(hash(k, total, n)) FROM state"
STRATEGIES = APPLY_STRATEGIES[1:]
LITTLE, RECOMPUTE = f"delete_insert, {BATCHES} batches, 1 thread", "recompute"
SPARING = {"threads": 1, "preserve_insertion_order": False}
GENEROUS = "8GB"


@dataclass(frozen=True)
class Cell:
    """A state of so many groups takes a change of so many rows."""

    groups: int
    changes: int

    @property
    def titles(self) -> tuple[str, str]:
        return f"{self.groups:,}", f"{self.changes:,}"

    @property
    def auto(self) -> str:
        return apply_strategy(AUTO, [SourceState("", "", inserts=self.changes)], self.groups)


@dataclass(frozen=True)
class Grid:
    """What is measured: every state with every change; and chosen cells under memory limits."""

    groups: Sequence[int]
    changes: Sequence[int]
    limits: Mapping[Cell, Sequence[str]]

    @property
    def cells(self) -> list[Cell]:
        return [Cell(groups, changes) for groups in self.groups for changes in self.changes]


QUICK = Grid((1_000, 100_000), (10, 1_000, 100_000), {Cell(100_000, 100_000): ("256MB", "24MB")})
FULL = Grid(
    (1_000, 100_000, 1_000_000, 10_000_000),
    (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    {
        Cell(1_000_000, 1_000_000): ("256MB", "128MB", "64MB", "32MB"),
        Cell(10_000_000, 1_000_000): ("512MB", "256MB", "128MB", "64MB"),
        Cell(10_000_000, 10_000_000): ("1GB", "512MB", "256MB", "128MB"),
    },
)


@dataclass(frozen=True)
class Seen:
    """What one process reported."""

    took: Sequence[tuple[float, float]]
    answers: Sequence[str]
    peak: int
    error: str | None

    def __str__(self) -> str:
        if self.error is not None:
            return "out of memory"
        wall, cpu = (median(times) for times in zip(*(self.took[1:] or self.took), strict=True))
        return f"{shown(wall)} / {shown(cpu)} ms, {self.peak / 1e6:,.0f} MB"

    @property
    def cpu(self) -> float:
        return median(cpu for _, cpu in self.took[1:])


def shown(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 10 else f"{milliseconds:.1f}"


# --- programs ---------------------------------------------------------------------------------------------------------


@dataclass
class Programs:
    """The statements of the engine for the view `QUERY`, whose state is the table `state`."""

    program: NodeProgram = field(init=False)
    source: str = field(init=False)

    def __post_init__(self) -> None:
        with duckdb.connect() as con:
            con.execute("CREATE TABLE sales (k BIGINT, x INTEGER)")
            spec = ViewSpec(RelationName("memory", "main", "view"), QUERY)
            plan, _ = compile_view(DuckDBSession(con), spec, lambda _name, _sql: False)
        self.program = plan.nodes[-1].program
        [self.source] = plan.sources

    def state(self) -> str:
        return self.program.state_query({self.source: SourceState("sales")})

    def forward(self, strategy: str, batches: int = 1) -> list[str]:
        return self.apply(1, strategy, batches)

    def back(self, strategy: str) -> list[str]:
        return self.apply(2, strategy, 1)

    def apply(self, cursor: int, strategy: str, batches: int) -> list[str]:
        change = SourceState("sales", "openivm_delta_sales", cursor, cursor + 1, 1, 1)
        target = Target("state", "", "", 2, False, apply_strategy=strategy, batches=batches)
        return [render(step.macro, step.arguments) for step in self.program.incremental({self.source: change}, target)]


# --- data -------------------------------------------------------------------------------------------------------------


def state_file(folder: Path, programs: Programs, groups: int) -> Path:
    """A database with two sales a group, and the state of the view."""
    path = folder / f"state_{groups}.duckdb"
    if not path.exists():
        with duckdb.connect(str(path)) as con:
            con.execute(f"CREATE TABLE sales AS {rows('i // 2', 'i', groups * 2)}")
            con.execute(f"CREATE TABLE state AS {programs.state()}")
            con.execute(
                "CREATE TABLE openivm_delta_sales (k BIGINT, x INTEGER, openivm_multiplicity BIGINT, "
                "openivm_timestamp TIMESTAMP, openivm_batch BIGINT)"
            )
    return path


def rows(key: str, seed: str, count: int) -> str:
    return f"SELECT CAST({key} AS BIGINT) AS k, CAST(hash({seed}) % 100 AS INTEGER) AS x FROM range({count}) AS r(i)"


def cell_file(folder: Path, programs: Programs, cell: Cell) -> Path:
    """The database of a state with a change in its log, as batch 2, and the same one taken back, as batch 3.

    Of ten rows two delete both sales of a group with a key that 10 divides, seven go to other groups, one to a new one.
    """
    path = folder / "cell.duckdb"
    path.unlink(missing_ok=True)
    shutil.copy(state_file(folder, programs, cell.groups), path)
    tens = cell.groups // 10
    with duckdb.connect(str(path)) as con:
        for batch, sign in ((2, 1), (3, -1)):
            con.execute(
                f"""INSERT INTO openivm_delta_sales
                SELECT
                  CASE WHEN gone THEN i // 10 * 10 WHEN i % 10 = 7 THEN {cell.groups} + hash(i) % {cell.groups}
                    ELSE hash(i) % {tens} * 10 + 1 + i % 9 END,
                  CAST(CASE WHEN gone THEN hash(i // 10 * 20 + i % 2) ELSE hash(i, 1) END % 100 AS INTEGER),
                  CASE WHEN gone THEN -1 ELSE 1 END * {sign}, now(), {batch}
                FROM (SELECT i, i % 10 >= 8 AND i // 10 < {tens} AS gone FROM range({cell.changes}) AS r(i))"""
            )
    return path


# --- measuring --------------------------------------------------------------------------------------------------------


def once(database: Path, programs: Sequence[Sequence[str]], settings: Mapping[str, object]) -> Seen:
    """Run programs on a copy of a database, in a new process."""
    copy = database.with_name("copy.duckdb")
    Path(f"{copy}.wal").unlink(missing_ok=True)
    shutil.copy(database, copy)
    asked = {"database": str(copy), "settings": settings, "programs": programs, "query": FINGERPRINT}
    command = [sys.executable, "-m", "benchmarks.apply_once"]
    done = subprocess.run(
        command, input=json.dumps(asked), check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent
    )
    return Seen(**json.loads(done.stdout))


def by_size(folder: Path, grid: Grid, programs: Programs, repeat: int) -> Iterator[tuple[Cell, dict[str, Seen]]]:
    for cell in grid.cells:
        progress(f"{cell.groups:,} groups, {cell.changes:,} changes")
        database = cell_file(folder, programs, cell)
        seen = {}
        for strategy in STRATEGIES:
            turns = [programs.forward(strategy), programs.back(strategy)]
            seen[strategy] = once(database, (turns * (repeat + 1))[: repeat + 1], {"memory_limit": GENEROUS})
        yield cell, seen


def by_memory(folder: Path, grid: Grid, programs: Programs) -> Iterator[tuple[Cell, str, dict[str, Seen]]]:
    ways: dict[str, tuple[list[str], Mapping[str, object]]] = {
        **{strategy: (programs.forward(strategy), {}) for strategy in STRATEGIES},
        LITTLE: (programs.forward(DELETE_INSERT, BATCHES), SPARING),
        RECOMPUTE: ([f"CREATE OR REPLACE TABLE state AS {programs.state()}"], {}),
    }
    for cell, limits in grid.limits.items():
        database = cell_file(folder, programs, cell)
        for limit in limits:
            progress(f"{cell.groups:,} groups, {cell.changes:,} changes, {limit}")
            yield (
                cell,
                limit,
                {
                    way: once(database, [program], {"memory_limit": limit, **settings})
                    for way, (program, settings) in ways.items()
                },
            )


def wrong(seen: Mapping[str, Seen]) -> bool:
    """Whether strategies left different states."""
    answers = [one.answers for way, one in seen.items() if one.error is None and way != RECOMPUTE]
    return any(answer != answers[0] for answer in answers)


# --- reporting --------------------------------------------------------------------------------------------------------


def size_table(seen: Sequence[tuple[Cell, Mapping[str, Seen]]]) -> str:
    rows = [
        [*cell.titles, *map(str, ways.values()), f"{ways[DELETE_INSERT].cpu / ways[MERGE].cpu:.2f}", cell.auto]
        for cell, ways in seen
    ]
    return markdown(["groups", "changes", *STRATEGIES, "CPU, delete_insert of merge", "auto takes"], rows)


def limit_table(seen: Sequence[tuple[Cell, str, Mapping[str, Seen]]]) -> str:
    rows = [[*cell.titles, limit, *map(str, ways.values())] for cell, limit, ways in seen]
    return markdown(["groups", "changes", "limit", *STRATEGIES, LITTLE, RECOMPUTE], rows)


def main() -> int:
    """Measure, print, and return 1 if the strategies differ in what they leave."""
    arguments = parse()
    grid, programs = QUICK if arguments.quick else FULL, Programs()
    with tempfile.TemporaryDirectory(dir=arguments.workdir) as name:
        folder = Path(name)
        print(f"DuckDB {duckdb.__version__}, Python {platform.python_version()}, {os.cpu_count()} processors\n")
        print("Wall / CPU milliseconds, medians; megabytes resident at most, with Python's own.\n")
        sizes = list(by_size(folder, grid, programs, 1 if arguments.quick else arguments.repeat))
        print(size_table(sizes), flush=True)
        print("\nThe first refresh of a process under a memory limit:\n")
        limits = list(by_memory(folder, grid, programs))
        print(limit_table(limits))
    failed = any(map(wrong, [*(seen for _, seen in sizes), *(seen for _, _, seen in limits)]))
    if failed:
        print("\nWRONG: the strategies left different states.")
    return int(failed)


def parse() -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.apply", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, each once")
    parser.add_argument("--repeat", type=int, default=3, help="refreshes to take the median of")
    parser.add_argument("--workdir", type=Path, help="where the data is kept meanwhile; about 2 GB")
    return parser.parse_args()


def progress(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""`make bench`: what a refresh costs, beside the best hand-written SQL, dbt's own materializations and a recompute.

Every figure of a row comes from the same run, on copies of one DuckDB file. After each refresh the view is compared
with its query; a difference makes the exit code 1. Options: `python -m benchmarks --help`.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import duckdb

from benchmarks import report
from benchmarks.cold import Compiled, cold_compile
from benchmarks.dbt_side import KINDS, DbtSide
from benchmarks.memory import Alone, alone
from benchmarks.report import Row
from benchmarks.sales import FEW, Change, Size, base_file, change
from benchmarks.sides import ByEngine, ByHand, Samples, connect, measure
from benchmarks.views import VIEWS, View

SMALL = Size(sales=200_000, products=2_000, customers=20_000)
LARGE_BATCH = 100  # one row in so many
MEMORY_STEP = 99
LEGEND = """
Milliseconds, medians. "by hand" and "engine" are given the change (a batch table, a change log that triggers filled);
"engine, first" is the first refresh of a new engine on a new connection; the dbt columns are the time in which dbt
executed the model in a `dbt run`; "recompute" writes the query into a temporary table.
"""


class Bench:
    """One run: the data, the changes, and what was seen."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.size = SMALL if arguments.small else Size(arguments.rows, arguments.products, arguments.customers)
        self.repeat = 1 if arguments.small else arguments.repeat
        self.with_dbt = not arguments.no_dbt
        self.folder = folder
        self.changes = [
            Change(inserts=1_000),
            Change(inserts=1_000, updates=500, deletes=500),
            Change(inserts=self.size.sales // LARGE_BATCH),
            Change(),
        ]
        self.base = base_file(arguments.workdir or folder, self.size)

    def view(self, view: View) -> list[Row]:
        """All rows of one view."""
        _progress(f"{view.name}: by hand and by engine")
        hand, engine = ByHand(view), ByEngine(view)
        changes = self.changes if view.few_speed_up is None else [FEW, *self.changes]
        seen = measure([hand, engine], self.base, self.size, changes, self.repeat, self.folder)
        apart = self._alone(engine.database(self.folder), view)
        dbt = self._dbt(view) if self.with_dbt else {}
        return [
            Row(
                view,
                what,
                seen[hand.relation][what.key],
                seen[engine.relation][what.key],
                {kind: samples[what.key] for kind, samples in dbt.items() if what.key in samples},
                apart.get(what.key, {}),
            )
            for what in changes
        ]

    def compile(self, view: View) -> Compiled:
        """Compile a view in a process that has compiled nothing, on a database without views."""
        copy = self.folder / "compile.duckdb"
        shutil.copy(self.base, copy)
        return cold_compile(copy, view)

    def _alone(self, database: Path, view: View) -> dict[str, dict[str, Alone]]:
        """A refresh and a recompute in processes of their own, by change."""
        apart: dict[str, dict[str, Alone]] = {}
        for number, what in enumerate(self.changes):
            if what == Change():
                continue
            _progress(f"{view.name}: apart, {what.title}")
            with connect(database) as con:
                change(con, self.size, what, number * 100 + MEMORY_STEP)
            apart[what.key] = {name: alone(name, database, view) for name in ("refresh", "recompute")}
        return apart

    def _dbt(self, view: View) -> dict[str, dict[str, Samples]]:
        seen = {}
        for kind in KINDS:
            _progress(f"{view.name}: dbt {kind}")
            side = DbtSide(view, kind, self.folder / f"dbt_{kind}")
            side.create(self.base)
            seen[kind] = side.measure(self.size, self.changes, self.repeat)
        return seen


def main() -> int:
    """Measure, print, and return 1 if a view was wrong."""
    arguments = _arguments()
    if arguments.workdir:
        arguments.workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.workdir) as folder:
        bench = Bench(arguments, Path(folder))
        rows = [row for view in arguments.views for row in bench.view(view)]
        compiled = {view.name: bench.compile(view) for view in arguments.views}
    _print(bench.size, rows, compiled)
    wrong = sum(row.differences for row in rows)
    if wrong:
        print(f"\nWRONG: {wrong:,} rows differ from the recompute.")
    return 1 if wrong else 0


def _print(size: Size, rows: list[Row], compiled: dict[str, Compiled]) -> None:
    print(
        f"# {size.sales:,} sales, {size.products:,} products, {size.customers:,} customers; "
        f"DuckDB {duckdb.__version__}, Python {platform.python_version()}\n"
    )
    print("\n".join(f"- {view.name}: {view.title}" for view in dict.fromkeys(row.view for row in rows)))
    print(LEGEND)
    print(report.times(rows))
    print("\nWhat triggers cost the writer; time and memory of a process that refreshes, or recomputes, once:\n")
    print(report.writers(rows))
    wanted = report.targets(rows, compiled)
    met = sum(target.met for target in wanted)
    print(f"\nTargets, which are set for 10,000,000 sales: {met} of {len(wanted)} met.\n")
    print(report.by_target(wanted))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of sales")
    parser.add_argument("--products", type=int, default=100_000)
    parser.add_argument("--customers", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3, help="refreshes to take the median of")
    parser.add_argument("--views", type=_views, default=list(VIEWS.values()), help="such as A,C (default: all)")
    parser.add_argument("--no-dbt", action="store_true", help="leave the dbt columns out")
    parser.add_argument("--small", action="store_true", help="a smoke test: little data, every change once")
    parser.add_argument("--workdir", type=Path, help="keep the generated data here, and reuse it")
    return parser.parse_args()


def _views(names: str) -> list[View]:
    return [VIEWS[name.strip().upper()] for name in names.split(",")]


def _progress(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

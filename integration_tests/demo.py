"""A year of flights from New York, maintained by dbt-openivm: `make demo`.

January is loaded and the project built; then more days arrive, past rows are corrected, cancelled flights deleted and
dimensions changed, and after each change `dbt run` brings every model up to date. At the end `dbt test` compares
each model with its query.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from nycflights import data
from nycflights.measure import recompute
from nycflights.project import FOLDER, DbtError, ModelRun, Project
from nycflights.report import Line, table
from nycflights.rounds import JANUARY, ROUNDS, Round

INTRODUCTION = """\
{models} models in four layers, each `materialized='ivm_view'`: cleaned, joined, aggregated and chained on one another.
  in          rows of change that the model read      changed    rows of the model that changed
  refresh     time to bring it up to date             recompute  time of its whole query, written to a table
"""
CLOSING = """\
dbt test: {models} of {models} models equal their recompute, row for row, after {rounds} rounds of changes.
{incremental} of {refreshes} refreshes were incremental, the others recomputed because so much had changed.
The whole demo took {seconds:.0f} s.

The database is yours to look at: {database}
  from openivm.openivm_refresh_history    what every refresh did
"""
MORE = "A refresh costs what changed, a recompute what is there. With ten years of flights: python {script} --years 10"


class Demo:
    """The project, its database and what was seen so far."""

    def __init__(self, database: Path, folder: Path, years: int) -> None:
        self.years = years
        self.folder = data.extract(folder)
        self.project = Project(database)
        self.strategies: list[str] = []

    def build(self) -> int:
        """Load January and build every model; return the number of models."""
        with duckdb.connect(str(self.project.database)) as con:
            data.create_sources(con, self.folder, self.years)
            loaded = JANUARY.apply(con, self.folder)
        start = time.perf_counter()
        self.project.seed()
        models = self.project.run()
        print(f"{JANUARY.headline}: {loaded}. Seeded and built in {time.perf_counter() - start:.1f} s.")
        print(INTRODUCTION.format(models=len(models)))
        return len(models)

    def play(self, number: int, night: Round) -> None:
        """Change the sources, run dbt, and print what that cost."""
        with duckdb.connect(str(self.project.database)) as con:
            changes = night.apply(con, self.folder)
        print(f"round {number}, {night.headline}: {changes}")
        models = self.project.run()
        self.strategies += [str(model.response.get("strategy")) for model in models]
        print(table(self._lines(models)), end="\n\n")

    def _lines(self, models: list[ModelRun]) -> list[Line]:
        with duckdb.connect(str(self.project.database)) as con:
            return [Line(model, recompute(con, model.sql)) for model in models]


def main() -> int:
    """Play the demo; 0 if every model ended equal to its query."""
    arguments = _arguments()
    start = time.perf_counter()
    database = _fresh(arguments.database)
    try:
        with tempfile.TemporaryDirectory() as folder:
            models, demo = _play(database, Path(folder), arguments.years)
    except DbtError as error:
        print(f"dbt failed:\n{error}", file=sys.stderr)
        return 1
    print(
        CLOSING.format(
            models=models,
            rounds=len(ROUNDS),
            incremental=sum(strategy in ("incremental", "none") for strategy in demo.strategies),
            refreshes=len(demo.strategies),
            seconds=time.perf_counter() - start,
            database=_shown(database),
        )
    )
    if arguments.years == 1:
        print(MORE.format(script=_shown(Path(__file__))))
    return 0


def _play(database: Path, folder: Path, years: int) -> tuple[int, Demo]:
    demo = Demo(database, folder, years)
    models = demo.build()
    for number, night in enumerate(ROUNDS, start=1):
        demo.play(number, night)
    tests = demo.project.test()
    if tests != models:
        raise DbtError(f"{models} models, but {tests} tests: give each model its ivm_equals_recompute.")
    if "rebuild" in demo.strategies:
        raise DbtError("A model was rebuilt although no query changed; the tables above say which and why.")
    return models, demo


def _fresh(database: Path) -> Path:
    database = database.absolute()
    database.parent.mkdir(parents=True, exist_ok=True)
    for leftover in (database, database.with_name(database.name + ".wal")):
        leftover.unlink(missing_ok=True)
    return database


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = FOLDER / "target" / "nycflights.duckdb"
    parser.add_argument("--database", type=Path, default=default, help="the DuckDB file to create")
    parser.add_argument("--years", type=int, default=1, help="years of data (default: 1)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

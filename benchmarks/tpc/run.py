"""Maintain the views of a suite through rounds of changes, and compare each with its query after each."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

from benchmarks.measure import milliseconds
from benchmarks.tpc import tools
from benchmarks.tpc.changes import Changes
from benchmarks.tpc.compare import Truth, differences, truth_of
from benchmarks.tpc.suites import Suite
from dbt_openivm import IvmEngine

FULL = "FULL_REFRESH"


@dataclass(frozen=True)
class Options:
    """How a suite is run; see `python -m benchmarks.tpc --help`."""

    scale_factor: float
    rounds: int
    queries: tuple[int, ...] | None = None
    seed: int = 1
    capture: str = "trigger" if duckdb.__version__.startswith("2.") else "diff"
    mode: str = "incremental"
    chained: bool = False
    timeout: float = 120
    workdir: Path = tools.WORKDIR


@dataclass
class Seen:
    """What was seen of one query."""

    number: int
    sql: str
    refresh_type: str = ""
    reason: str | None = None
    truth: Truth = field(default_factory=lambda: Truth(""))
    build: float = float("nan")
    refresh: list[float] = field(default_factory=list)
    recompute: list[float] = field(default_factory=list)
    strategies: Counter[str] = field(default_factory=Counter)
    rows: list[int] = field(default_factory=list)
    moved: int = 0
    problems: list[str] = field(default_factory=list)
    both_failed: int = 0
    digest: int | None = None

    @property
    def incremental(self) -> bool:
        return self.refresh_type not in ("", FULL)

    @property
    def name(self) -> str:
        return f"q{self.number}"

    @property
    def speed_up(self) -> float:
        return median(self.recompute) / median(self.refresh) if self.refresh else float("nan")


class Run:
    """One suite in one database in memory."""

    def __init__(self, suite: Suite, options: Options) -> None:
        self.suite, self.options = suite, options
        folder = tools.data(suite.name, options.scale_factor, options.workdir)
        self.con = duckdb.connect()
        for path in sorted(folder.glob("*.parquet")):
            self.con.execute(f"CREATE TABLE {path.stem} AS FROM '{path}'")
        queries = tools.queries(folder)
        self.changes = Changes(self.con, suite, queries.values(), options.seed)
        self.ivm = IvmEngine(self.con, capture=options.capture, refresh_mode=options.mode)
        wanted = options.queries or tuple(queries)
        self.seen = [Seen(number, queries[number]) for number in wanted]

    def all(self) -> list[Seen]:
        """Build the views, and make the rounds."""
        took = milliseconds(self._build_all)
        _progress(f"{self.suite.title}: building {len(self.seen)} views took {took:,.0f} ms")
        for number in range(1, self.options.rounds + 1):
            took = milliseconds(partial(self.changes.round, number))
            _progress(f"{self.suite.title}: round {number} of {self.options.rounds}; changes took {took:,.0f} ms")
            for seen in self.seen:
                if not seen.problems:
                    self._guarded(seen, f"round {number}", self._refresh)
        return self.seen

    def _build_all(self) -> None:
        for seen in self.seen:
            self._guarded(seen, "build", self._build)

    def _build(self, seen: Seen) -> None:
        self.con.execute(f"CREATE OR REPLACE TEMP TABLE recompute AS {seen.sql}")
        seen.truth = truth_of(seen.sql, [name for name, *_ in self.con.execute("DESCRIBE recompute").fetchall()])
        seen.build = milliseconds(lambda: self._create(seen))
        self._compare(seen, "build")

    def _create(self, seen: Seen) -> None:
        info = self.ivm.create_view(seen.name, seen.sql)
        seen.refresh_type, seen.reason = info.refresh_type, info.reason
        if self.options.chained:
            self.ivm.create_view(f"{seen.name}_child", f"SELECT * FROM {seen.name}")

    def _refresh(self, seen: Seen) -> None:
        """Refresh, recompute, compare. Where the query fails now, the refresh must fail in the same way."""
        failure = None
        try:
            seen.recompute.append(
                milliseconds(lambda: self.con.execute(f"CREATE OR REPLACE TEMP TABLE recompute AS {seen.sql}"))
            )
        except duckdb.Error as error:
            failure = error
        result: list[Any] = []
        try:
            took = milliseconds(lambda: result.append(self.ivm.refresh(seen.name)))
        except duckdb.Error as error:
            if failure is None or type(error) is not type(failure):
                raise
            seen.both_failed += 1
            return
        if failure is not None:
            seen.problems.append(f"the query fails, its refresh does not: {_first_line(failure)}")
            return
        seen.refresh.append(took)
        seen.strategies[result[0].strategy] += 1
        if result[0].strategy == "rebuild":  # right in the end, but nobody changed anything that would call for it
            seen.problems.append(f"rebuilt: {result[0].reason}")
        self._compare(seen, f"after {result[0].strategy} refresh")
        if self.options.chained:
            self.ivm.refresh(f"{seen.name}_child")
            self._compare_child(seen)

    def _compare(self, seen: Seen, when: str) -> None:
        types = [self.con.execute(f"DESCRIBE {name}").fetchall() for name in (seen.name, "recompute")]
        if [column[:2] for column in types[0]] != [column[:2] for column in types[1]]:
            seen.problems.append(f"{when}: columns {types[0]} instead of {types[1]}")
        wrong = differences(self.con, seen.name, seen.truth)
        if wrong:
            seen.problems.append(f"{when}: {len(wrong)} rows differ, such as {wrong[0]}")
        [(rows, digest)] = self.con.execute(f"SELECT count(*), sum(hash(v)) FROM {seen.name} AS v").fetchall()
        seen.rows.append(rows)
        seen.moved += len(seen.rows) > 1 and digest != seen.digest
        seen.digest = digest

    def _compare_child(self, seen: Seen) -> None:
        wrong = differences(self.con, f"{seen.name}_child", Truth(f"SELECT * FROM {seen.name}"))
        if wrong:
            seen.problems.append(f"the published changes: {len(wrong)} rows differ, such as {wrong[0]}")

    def _guarded(self, seen: Seen, when: str, action: Any) -> None:
        """An error is a finding, not the end; a view with one is dropped. What takes too long is interrupted."""
        timer = threading.Timer(self.options.timeout, self.con.interrupt)
        timer.start()
        try:
            action(seen)
        except Exception as error:
            seen.problems.append(f"{when}: {type(error).__name__}: {_first_line(error)}")
        finally:
            timer.cancel()
        if seen.problems:
            _progress(f"{seen.name}: {seen.problems[0]}")
            self._drop(seen)

    def _drop(self, seen: Seen) -> None:
        for name in (f"{seen.name}_child", seen.name):
            try:
                self.ivm.drop_view(name)
            except Exception as error:  # it may never have been made
                _progress(f"{name} stays: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or "no message").splitlines()[0][:500]


def _progress(what: str) -> None:
    print(what, file=sys.stderr, flush=True)

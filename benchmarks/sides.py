"""The ways to keep a view up to date inside one DuckDB process: by hand, and with the engine."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import duckdb

from benchmarks.measure import differences, milliseconds, recompute
from benchmarks.sales import NO_CHECKPOINT, Change, Size, change
from benchmarks.views import View


class Side(Protocol):
    """One way to maintain a view."""

    relation: str

    def connect(self, con: duckdb.DuckDBPyConnection) -> None: ...

    def build(self) -> None: ...

    def refresh(self) -> None: ...


class ByHand:
    """The statements of `View.by_hand`, in one transaction, sent at once."""

    relation = "by_hand"

    def __init__(self, view: View) -> None:
        self.view = view

    def connect(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con = con

    def build(self) -> None:
        self.con.execute(f"CREATE TABLE by_hand AS {self.view.sql}").fetchall()

    def refresh(self) -> None:
        self.con.execute(";".join(["BEGIN", *self.view.by_hand, "COMMIT"])).fetchall()


class ByEngine:
    """`IvmEngine` with triggers on the tables; a new connection starts with a new engine, so with an empty memory."""

    relation = "by_engine"

    def __init__(self, view: View) -> None:
        self.view = view

    def connect(self, con: duckdb.DuckDBPyConnection) -> None:
        from dbt_openivm import IvmEngine

        self.engine = IvmEngine(con, capture="trigger")

    def build(self) -> None:
        self.engine.create_view("by_engine", self.view.sql)

    def refresh(self) -> None:
        self.engine.refresh("by_engine")


@dataclass
class Samples:
    """What was seen for one view, change and side. `first` is the first refresh of a new connection, and no sample."""

    first: float = float("nan")
    refresh: list[float] = field(default_factory=list)
    recompute: list[float] = field(default_factory=list)
    write: list[float] = field(default_factory=list)
    differences: int = 0


def measure(
    side: Side, base: Path, size: Size, changes: list[Change], repeat: int, view: View, keep: Path
) -> dict[str, Samples]:
    """Build a view in a copy of the base, then apply each change `repeat + 1` times with a refresh after each.

    The copy stays at `keep`, for measurements that need the view.
    """
    shutil.copy(base, keep)
    with connect(keep) as con:
        side.connect(con)
        side.build()
    seen: dict[str, Samples] = {}
    for number, what in enumerate(changes):
        with connect(keep) as con:
            side.connect(con)
            seen[what.key] = _series(side, con, size, what, view, range(number * 100, number * 100 + repeat + 1))
    return seen


def connect(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection that runs no checkpoint of its own."""
    con = duckdb.connect(str(path))
    con.execute(NO_CHECKPOINT)
    return con


def _series(side: Side, con: duckdb.DuckDBPyConnection, size: Size, what: Change, view: View, steps: range) -> Samples:
    samples = Samples()
    recompute(con, view)
    for step in steps:
        samples.write.append(change(con, size, what, step))
        took = milliseconds(side.refresh)
        if step == steps.start:
            samples.first = took
        else:
            samples.refresh.append(took)
        samples.recompute.append(recompute(con, view))
        samples.differences += differences(con, view, side.relation)
    return samples

"""The ways to keep a view up to date inside one DuckDB process: by hand, and with the engine."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from benchmarks.measure import differences, milliseconds, recompute
from benchmarks.sales import NO_CHECKPOINT, Change, Size, change
from benchmarks.views import View


class Side(ABC):
    """One way to maintain a view."""

    relation: str

    def __init__(self, view: View) -> None:
        self.view = view

    def database(self, folder: Path) -> Path:
        """The side's own copy of the data."""
        return folder / f"{self.relation}.duckdb"

    @abstractmethod
    def connect(self, con: duckdb.DuckDBPyConnection) -> None:
        """Work on this connection from now on."""

    @abstractmethod
    def build(self) -> None:
        """Create the view."""

    @abstractmethod
    def refresh(self) -> None:
        """Bring the view up to date."""


class ByHand(Side):
    """The statements of `View.by_hand`, in one transaction, sent at once."""

    relation = "by_hand"

    def connect(self, con: duckdb.DuckDBPyConnection) -> None:
        self.con = con

    def build(self) -> None:
        self.con.execute(f"CREATE TABLE by_hand AS {self.view.sql}").fetchall()

    def refresh(self) -> None:
        self.con.execute(";".join(["BEGIN", *self.view.by_hand, "COMMIT"])).fetchall()


class ByEngine(Side):
    """`IvmEngine` with triggers on the tables; a new connection starts with a new engine, so with an empty memory."""

    relation = "by_engine"

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
    sides: Sequence[Side], base: Path, size: Size, changes: Sequence[Change], repeat: int, folder: Path
) -> dict[str, dict[str, Samples]]:
    """Apply each change `repeat + 1` times, with a refresh after each: by relation and change.

    Each side builds the view in its own copy of the base, which stays in `folder`. The sides take turns, so that
    whatever else the machine does meets them alike.
    """
    seen: dict[str, dict[str, Samples]] = {side.relation: {} for side in sides}
    for side in sides:
        shutil.copy(base, side.database(folder))
        with connect(side.database(folder)) as con:
            side.connect(con)
            side.build()
    for number, what in enumerate(changes):
        with ExitStack() as stack:
            connections = [stack.enter_context(connect(side.database(folder))) for side in sides]
            turns = [_Turn(side, con, size, what) for side, con in zip(sides, connections, strict=True)]
            for step in range(number * 100, number * 100 + repeat + 1):
                for turn in turns:
                    turn.take(step)
        for turn in turns:
            seen[turn.side.relation][what.key] = turn.samples
    return seen


def connect(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection that runs no checkpoint of its own."""
    con = duckdb.connect(str(path))
    con.execute(NO_CHECKPOINT)
    return con


class _Turn:
    """One side under one change."""

    def __init__(self, side: Side, con: duckdb.DuckDBPyConnection, size: Size, what: Change) -> None:
        self.side, self.con, self.size, self.what = side, con, size, what
        self.samples = Samples()
        side.connect(con)
        recompute(con, side.view)

    def take(self, step: int) -> None:
        """Change, refresh, recompute and compare; the first refresh is no sample."""
        samples, view = self.samples, self.side.view
        samples.write.append(change(self.con, self.size, self.what, step))
        took = milliseconds(self.side.refresh)
        if samples.recompute:
            samples.refresh.append(took)
        else:
            samples.first = took
        samples.recompute.append(recompute(self.con, view))
        samples.differences += differences(self.con, view, self.side.relation)

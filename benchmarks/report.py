"""The report: one markdown table of times, one of targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.cold import Compiled
from benchmarks.measure import middle
from benchmarks.memory import Alone
from benchmarks.sales import FEW, Change
from benchmarks.sides import Samples
from benchmarks.views import View

TIMES = (
    "view",
    "change",
    "by hand",
    "engine",
    "engine, first",
    "dbt ivm_view",
    "dbt table",
    "dbt incremental",
    "recompute",
    "of recompute",
    "of hand",
    "equal",
)
NO_CHANGE_MS = 5.0
COMPILE_MS = 25.0
MEMORY_RATIO = 1.2


@dataclass(frozen=True)
class Row:
    """One view and change, seen from every side."""

    view: View
    change: Change
    hand: Samples
    engine: Samples
    dbt: dict[str, Samples] = field(default_factory=dict)
    alone: dict[str, Alone] = field(default_factory=dict)

    @property
    def recompute(self) -> float:
        return middle(self.hand.recompute + self.engine.recompute)

    @property
    def speed_up(self) -> float:
        return self.recompute / middle(self.engine.refresh)

    @property
    def of_hand(self) -> float:
        return middle(self.engine.refresh) / middle(self.hand.refresh)

    @property
    def differences(self) -> int:
        return sum(samples.differences for samples in (self.hand, self.engine, *self.dbt.values()))

    def cells(self) -> tuple[str, ...]:
        dbt = [_ms(middle(self.dbt[kind].refresh)) if kind in self.dbt else "" for kind in DBT]
        return (
            self.view.name,
            self.change.title,
            _ms(middle(self.hand.refresh)),
            _ms(middle(self.engine.refresh)),
            _ms(self.engine.first),
            *dbt,
            _ms(self.recompute),
            f"{self.speed_up:.1f}x faster",
            f"{self.of_hand:.1f}x",
            "yes" if self.differences == 0 else f"NO: {self.differences:,} rows",
        )


DBT = ("ivm_view", "table", "incremental")


@dataclass(frozen=True)
class Target:
    """What was wanted of a view, and what was seen."""

    name: str
    view: str
    seen: str
    met: bool

    def __str__(self) -> str:
        return f"{'met' if self.met else 'NOT MET'}: {self.seen}"


def times(rows: Sequence[Row]) -> str:
    """Milliseconds by view and change."""
    return markdown(TIMES, [row.cells() for row in rows])


def writers(rows: Sequence[Row]) -> str:
    """What the triggers cost whoever writes to the tables; time and memory of both ways in a process of their own."""
    heads = ("view", "change", "write", "with triggers", "refresh", "recompute", "refresh", "recompute")
    return markdown(heads, [_writer_cells(row) for row in rows if row.alone])


def targets(rows: Sequence[Row], compiled: dict[str, Compiled]) -> list[Target]:
    """Every target of every view."""
    return [
        *(_speed_up(row, row.view.speed_up) for row in rows if row.change == Change(inserts=1000)),
        *(_speed_up(row, row.view.few_speed_up or 0) for row in rows if row.change == FEW),
        *(_hand(row) for row in rows),
        *(_no_change(row) for row in rows if row.change == Change()),
        *(_memory(row) for row in rows if row.alone),
        *(_compile(view, took) for view, took in compiled.items()),
    ]


def by_target(wanted: Sequence[Target]) -> str:
    """One line a target, one column a view."""
    views = list(dict.fromkeys(target.view for target in wanted))
    names = list(dict.fromkeys(target.name for target in wanted))
    cells = {(target.name, target.view): str(target) for target in wanted}
    return markdown(("target", *views), [(name, *(cells.get((name, view), "") for view in views)) for name in names])


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table whose columns line up in a terminal too."""
    widths = [max(len(line[column]) for line in (heads, *rows)) for column in range(len(heads))]
    rule = ["-" * width for width in widths]
    lines = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in (heads, rule, *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _speed_up(row: Row, wanted: float) -> Target:
    seen = f"{row.speed_up:.1f}x, wanted {wanted:.0f}x"
    return Target(f"{row.change.title}, faster than the recompute", row.view.name, seen, row.speed_up >= wanted)


def _hand(row: Row) -> Target:
    most = 2 * middle(row.hand.refresh) + 10
    took = middle(row.engine.refresh)
    seen = f"{_ms(took)} of {_ms(most)}"
    return Target(f"{row.change.title}, at most 2x by hand + 10 ms", row.view.name, seen, took <= most)


def _no_change(row: Row) -> Target:
    took = middle(row.engine.refresh)
    return Target(f"no change, at most {_ms(NO_CHANGE_MS)}", row.view.name, _ms(took), took <= NO_CHANGE_MS)


def _memory(row: Row) -> Target:
    ratio = row.alone["refresh"].megabytes / row.alone["recompute"].megabytes
    name = f"{row.change.title}, at most {MEMORY_RATIO}x the recompute's memory"
    return Target(name, row.view.name, f"{ratio:.2f}x", ratio <= MEMORY_RATIO)


def _compile(view: str, took: Compiled) -> Target:
    seen = f"{_ms(took.compiler)} + {_ms(took.duckdb)} in DuckDB"
    return Target(f"compile, cold, at most {_ms(COMPILE_MS)}", view, seen, took.compiler <= COMPILE_MS)


def _writer_cells(row: Row) -> tuple[str, ...]:
    refresh, recompute = row.alone["refresh"], row.alone["recompute"]
    return (
        row.view.name,
        row.change.title,
        _ms(middle(row.hand.write)),
        _ms(middle(row.engine.write)),
        _ms(refresh.milliseconds),
        _ms(recompute.milliseconds),
        f"{refresh.megabytes:,.0f} MB",
        f"{recompute.megabytes:,.0f} MB",
    )


def _ms(milliseconds: float) -> str:
    if milliseconds != milliseconds:
        return ""
    return f"{milliseconds:.1f} ms" if milliseconds < 100 else f"{milliseconds:,.0f} ms"

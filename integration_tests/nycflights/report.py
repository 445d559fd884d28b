"""The demo's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nycflights.project import ModelRun

HEADINGS = ("model", "refresh type", "", "in", "changed", "refresh", "recompute", "speed-up")
LEFT_ALIGNED = (0, 1, 2)
TOLD = 2
STRATEGIES = {"none": "no change", "full": "full", "rebuild": "rebuilt"}


@dataclass(frozen=True)
class Line:
    """One model in one round, with the milliseconds that its query takes from scratch."""

    model: ModelRun
    recompute: float

    def cells(self) -> tuple[str, ...]:
        response = self.model.response
        return (
            self.model.name,
            response.get("refresh_type", "-"),
            STRATEGIES.get(response.get("strategy", ""), ""),
            _count(response.get("delta_rows")),
            _count(response.get("changed_rows")),
            _ms(self.model.milliseconds),
            _ms(self.recompute),
            _speed_up(self.recompute, self.model.milliseconds),
        )


def table(lines: Sequence[Line]) -> str:
    """A round's table, closed by the sum over all models."""
    rows = [HEADINGS, *(line.cells() for line in lines), _total(lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join(["  " + _aligned(row, widths) for row in rows] + _remarks(lines))


def _total(lines: Sequence[Line]) -> tuple[str, ...]:
    refresh = sum(line.model.milliseconds for line in lines)
    recompute = sum(line.recompute for line in lines)
    return (f"all {len(lines)}", "", "", "", "", _ms(refresh), _ms(recompute), _speed_up(recompute, refresh))


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if column in LEFT_ALIGNED else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _count(rows: int | None) -> str:
    return "-" if rows is None else f"{rows:,}"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:,.0f} ms"


def _speed_up(before: float, after: float) -> str:
    ratio = before / max(after, 0.01)
    return f"{ratio:.1f}x" if 0.95 <= ratio < 10 else f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.2f}x"


def _remarks(lines: Sequence[Line]) -> list[str]:
    """Why models were not refreshed incrementally: the first few of them."""
    full = [line.model for line in lines if line.model.response.get("strategy") in ("full", "rebuild")]
    told = [f"  {model.name} in full: {model.response.get('reason')}" for model in full[:TOLD]]
    return told + [f"  .. and {len(full) - TOLD} more"] * (len(full) > TOLD)

"""Rows as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def format_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Align rows under a header: numbers to the right, text to the left.

    Example:
        >>> print(format_table(["model", "rows"], [["daily", 12], ["by_plane", 3322]]))
        model      rows
        daily        12
        by_plane  3,322
    """
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *cells]) for i in range(len(header))]
    numeric = [all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(header))]
    return "\n".join(_line(line, widths, numeric) for line in [header, *cells])


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    columns = zip(cells, widths, numeric, strict=True)
    return "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in columns).rstrip()


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)

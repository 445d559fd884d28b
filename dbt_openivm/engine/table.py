"""Rows as a table for people."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

MINIMUM = 20
"""Characters that the last column gets, however long the others are."""


def format_table(header: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None = None) -> str:
    """Align rows under a header: numbers to the right, text to the left.

    Args:
        width: break the last column's texts so that lines are no longer than this, if there is room for it.

    Example:
        >>> print(format_table(["model", "rows"], [["daily", 12], ["by_plane", 3322]]))
        model      rows
        daily        12
        by_plane  3,322
    """
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *cells]) for i in range(len(header))]
    numeric = [all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(header))]
    last = max((width or 0) - sum(widths[:-1]) - 2 * (len(widths) - 1), MINIMUM)
    lines = []
    for line in [list(header), *cells]:
        first, *more = textwrap.wrap(line[-1], last, break_long_words=False) or [""] if width else [line[-1]]
        lines.append(_line([*line[:-1], first], widths, numeric))
        lines += [_line([""] * (len(line) - 1) + [part], widths, numeric) for part in more]
    return "\n".join(lines)


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

"""Comparing two queries as bags: exact for exact types, within 1e-9 for floating numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

TOLERANCE = 1e-9

Row = tuple[Any, ...]


def bag_difference(connection: Any, left: str, right: str) -> tuple[list[Row], list[Row]]:
    """The rows only in `left` and only in `right`, duplicates counted; rows that differ by rounding alone are paired.

    Args:
        connection: a DuckDB connection.
        left: a query, or a SELECT over a relation.
        right: another query of the same columns.
    """
    only_left = connection.execute(f"({left}\n) EXCEPT ALL ({right}\n)").fetchall()
    only_right = connection.execute(f"({right}\n) EXCEPT ALL ({left}\n)").fetchall()
    return _unpaired(only_left, only_right)


def _unpaired(left: Sequence[Row], right: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    rest = list(right)
    lonely = []
    for row in left:
        for i, other in enumerate(rest):
            if alike(row, other):
                del rest[i]
                break
        else:
            lonely.append(row)
    return lonely, rest


def alike(first: Any, second: Any) -> bool:
    """Whether two values are equal, floats anywhere inside within the tolerance."""
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return _close(first, second)
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(alike(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(alike(first[key], second[key]) for key in first)
    return bool(first == second)


def _close(first: float, second: float) -> bool:
    if math.isnan(first) or math.isnan(second):
        return math.isnan(first) and math.isnan(second)
    # near zero a sum that cancels is judged by the size of what was summed: the pools hold numbers around one
    return first == second or math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=TOLERANCE)

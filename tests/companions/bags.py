"""Companion rows against the truth: old rows + companion rows = new rows, as bags."""

from __future__ import annotations

from typing import Any

HIDDEN = "openivm_multiplicity, openivm_timestamp, openivm_batch"


def assert_transition(connection: Any, old: str, companion: str, new: str) -> None:
    """Old rows and rows that came are new rows and rows that went, duplicates counted.

    Args:
        old, new: relations with the view's columns.
        companion: a query for companion rows with these columns and the hidden ones.
    """

    def copies(sign: str) -> str:
        return (
            f"SELECT * EXCLUDE ({HIDDEN}, openivm_copy) FROM (SELECT *, unnest(range(abs(openivm_multiplicity))) AS "
            f"openivm_copy FROM ({companion}) WHERE openivm_multiplicity {sign} 0)"
        )

    left = f"SELECT * FROM {old} UNION ALL ({copies('>')})"
    right = f"SELECT * FROM {new} UNION ALL ({copies('<')})"
    surplus = connection.execute(f"({left}) EXCEPT ALL ({right})").fetchall()
    missing = connection.execute(f"({right}) EXCEPT ALL ({left})").fetchall()
    assert (surplus, missing) == ([], []), connection.execute(companion).fetchall()


def cancelling(connection: Any, companion: str) -> list[tuple[Any, ...]]:
    """The tuples of companion rows that stand there more than once; a net delta has none."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT * EXCLUDE ({HIDDEN}), count(*) FROM ({companion}) GROUP BY ALL HAVING count(*) > 1"
    ).fetchall()
    return rows

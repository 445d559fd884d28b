"""Simple choices from sizes, which a user can check: incremental or full, and how groups take their delta."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dbt_openivm.choices import AUTO, DELETE_INSERT, MERGE
from dbt_openivm.compiler.plan import FULL_REFRESH
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.engine.planning import Outline
from dbt_openivm.engine.session import Session

SMALL = 10_000
"""A delta of fewer rows is always applied: reading sizes would cost more than it could save."""

SHARE = 0.3
"""From this share of the sources' rows on, a recompute is cheaper than applying the delta."""

MANY_VECTORS = 128
"""So many vectors of a state make the COMMIT of an UPDATE expensive: DuckDB takes it for as large as the vectors that
it touches, and where that exceeds `checkpoint_threshold` it checkpoints on the spot."""

VECTOR = 2048
"""Rows of a vector."""


def choose(
    session: Session, plan: Outline, mode: str, states: Mapping[str, SourceState], crossed: int = 0
) -> tuple[str, str | None]:
    """("incremental" or "full", why it is full).

    Args:
        crossed: rows that changed because time passed.
    """
    if plan.refresh_type == FULL_REFRESH:
        return "full", plan.reason
    if mode == "full":
        return "full", "refresh_mode is 'full'"
    changes = crossed + sum(state.inserts + state.deletes for state in states.values())
    if mode in ("incremental", "strict") or changes < SMALL:
        return "incremental", None
    if not states:
        return "incremental", None
    counts = " + ".join(f"(SELECT count(*) FROM {state.current})" for state in states.values())
    [(rows,)] = session.execute(f"SELECT {counts}")
    reason = recompute_reason(changes, rows)
    return ("full" if reason else "incremental"), reason


def recompute_reason(changes: int, rows: int) -> str | None:
    """Why a recompute is cheaper than applying so many changes to sources of so many rows; None if it is not."""
    if changes < SMALL or changes < SHARE * rows:
        return None
    return f"{changes:,} changes to {rows:,} source rows: recomputing is cheaper than applying them"


def apply_strategy(asked: str, deltas: Iterable[SourceState], groups: int) -> str:
    """How groups take their delta: what was asked for, or for `AUTO` what docs/apply-strategies.md measures.

    A delta updates at most as many groups as it has rows, and as the state has groups; scattered, each in a vector of
    its own. Where a changed row joins with many, the delta is larger than it is taken for.
    """
    if asked != AUTO:
        return asked
    changes = sum(state.inserts + state.deletes for state in deltas)
    return DELETE_INSERT if min(changes, groups // VECTOR) >= MANY_VECTORS else MERGE

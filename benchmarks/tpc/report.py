"""The tables that a run prints."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from benchmarks.report import markdown
from benchmarks.tpc.run import Seen

HEADS = ("query", "refresh type", "refreshes", "rows", "moved", "refresh ms", "recompute ms", "speed-up", "exact")


def queries(all_seen: Sequence[Seen]) -> str:
    """One line a query."""
    return markdown(HEADS, [_cells(seen) for seen in all_seen])


def _cells(seen: Seen) -> tuple[str, ...]:
    refreshes = ", ".join(f"{count} {strategy}" for strategy, count in seen.strategies.most_common())
    if seen.both_failed:
        refreshes += f", {seen.both_failed} failed like the query"
    rows = f"{min(seen.rows):,} to {max(seen.rows):,}" if seen.rows else ""
    return (
        seen.name,
        seen.refresh_type,
        refreshes,
        rows,
        str(seen.moved),
        f"{median(seen.refresh):,.1f}" if seen.refresh else "",
        f"{median(seen.recompute):,.1f}" if seen.recompute else "",
        f"{seen.speed_up:.1f}x" if seen.refresh else "",
        "NO" if seen.problems else "yes",
    )


def reasons(all_seen: Sequence[Seen]) -> str:
    """Why queries refresh in full, the most frequent reason first; empty if none does."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for seen in all_seen:
        if seen.refresh_type and not seen.incremental:
            by_reason[re.sub(r" (at|on|in) line \d+(, column \d+)?", "", seen.reason or "(no reason)")].append(
                seen.name
            )
    ordered = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    return "\n".join(f"- {reason}: {', '.join(names)}" for reason, names in ordered)


def problems(all_seen: Sequence[Seen]) -> str:
    """What went wrong; empty if nothing did."""
    return "\n".join(
        f"- {seen.name} ({seen.refresh_type}): {problem}" for seen in all_seen for problem in seen.problems
    )


def summary(title: str, all_seen: Sequence[Seen]) -> str:
    """The coverage in one line."""
    incremental = [seen for seen in all_seen if seen.incremental]
    wrong = [seen.name for seen in all_seen if seen.problems]
    still = [seen.name for seen in all_seen if not seen.moved and not seen.problems]
    faster = [seen for seen in incremental if seen.speed_up > 1]
    return (
        f"{title}: {len(incremental)} of {len(all_seen)} incremental, {len(all_seen) - len(wrong)} exact; "
        f"{len(faster)} of the incremental ones refresh faster than their recompute"
        + (f"; no round moved {', '.join(still)}" if still else "")
        + (f"; WRONG: {', '.join(wrong)}" if wrong else "")
        + "."
    )

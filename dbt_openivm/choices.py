"""Words that people choose with, shared by the compiler, the engine and the adapter."""

from __future__ import annotations

import re

AUTO, MERGE, UPDATE_INSERT_DELETE, DELETE_INSERT = APPLY_STRATEGIES = (
    "auto",
    "merge",
    "update_insert_delete",
    "delete_insert",
)
"""How the delta of a grouped aggregate gets into its state; `AUTO` is the engine's choice at each refresh."""

RETENTION = "7 days"
"""How long a change feed keeps changes that nobody has acknowledged, unless its author says otherwise."""

FOREVER = "forever"
"""A retention without an end."""

RETENTION_EXPECTED = f"an interval such as '{RETENTION}' or '12 hours', or '{FOREVER}'"


def is_retention(value: object) -> bool:
    """Whether a change feed can keep its changes for so long.

    Example:
        >>> [is_retention(text) for text in ("7 days", "1 hour 30 minutes", "forever", "a week", "0 days", "-1 day", 7)]
        [True, True, True, False, False, False, False]
    """
    part = r"[1-9]\d{0,4} (?:second|minute|hour|day|week|month|year)s?"
    return isinstance(value, str) and (value == FOREVER or re.fullmatch(rf"{part}(?: {part})*", value) is not None)

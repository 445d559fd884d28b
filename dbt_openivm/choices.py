"""Words that people choose with, shared by the compiler, the engine and the adapter."""

from __future__ import annotations

AUTO, MERGE, UPDATE_INSERT_DELETE, DELETE_INSERT = APPLY_STRATEGIES = (
    "auto",
    "merge",
    "update_insert_delete",
    "delete_insert",
)
"""How the delta of a grouped aggregate gets into its state; `AUTO` is the engine's choice at each refresh."""

"""What people may choose of the compiler's work: words that the compiler, the engine and the adapter share."""

#: How the delta of a grouped aggregate gets into its state; `auto` is the compiler's choice.
from __future__ import annotations

AUTO, MERGE, UPDATE_INSERT_DELETE, DELETE_INSERT = APPLY_STRATEGIES = (
    "auto",
    "merge",
    "update_insert_delete",
    "delete_insert",
)

"""Apply strategies: how the consolidated delta of a grouped aggregate gets into its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbt_openivm.choices import AUTO, DELETE_INSERT, MERGE, UPDATE_INSERT_DELETE
from dbt_openivm.compiler.plan import Step
from dbt_openivm.compiler.publish import drop

MERGED = "openivm_merged"

Arguments = Mapping[str, Any]
"""What `ivm_merge` reads; see there."""


def chosen(strategy: str) -> str:
    """What `auto` stands for: one statement, which needs no temporary table."""
    return MERGE if strategy == AUTO else strategy


def keeps_delta(strategy: str) -> bool:
    """Whether several statements read the delta, so that it must be in a temporary table."""
    return chosen(strategy) != MERGE


def apply(strategy: str, arguments: Arguments) -> list[Step]:
    """The steps of a strategy. All of them count emptied, changed and new groups once each.

    Args:
        strategy: one of `APPLY_STRATEGIES`.
        arguments: of `ivm_merge`; `source` is a temporary table if `keeps_delta`.
    """
    return STRATEGIES[chosen(strategy)](arguments)


def merge(arguments: Arguments) -> list[Step]:
    return [Step("ivm_merge", arguments, "merge the delta", counts=True)]


def update_insert_delete(arguments: Arguments) -> list[Step]:
    """One statement a kind of change. The emptied groups go first: an update would compute over no rows for them."""
    delete = [Step("ivm_delete_emptied", arguments, "delete the emptied groups", counts=True)]
    return [
        *(delete if arguments["count"] else []),
        Step("ivm_update_groups", arguments, "update the groups", counts=True),
        insert_new(arguments, arguments["target"]),
    ]


def delete_insert(arguments: Arguments) -> list[Step]:
    """Keep the new rows of the touched groups, delete their old ones, insert."""
    updates = dict(arguments["updates"])
    held = {column: f"t.{column}" for column, _ in arguments["inserts"]}
    values = [(column, updates.get(column, old)) for column, old in held.items()]
    affected = {"target": arguments["target"], "affected": arguments["source"], "keys": arguments["keys"]}
    put = {"target": arguments["target"], "name": MERGED, "columns": list(held)}
    return [
        Step("ivm_keep_groups", {**arguments, "name": MERGED, "values": values}, "compute the touched groups"),
        Step("ivm_delete_affected", affected, "delete the touched groups", counts=True),
        Step("ivm_put_groups", put, "insert the touched groups"),
        insert_new(arguments, MERGED),
        drop(MERGED),
    ]


def insert_new(arguments: Arguments, held: str) -> Step:
    return Step("ivm_insert_groups", {**arguments, "held": held}, "insert the new groups", counts=True)


STRATEGIES: Mapping[str, Callable[[Arguments], list[Step]]] = {
    MERGE: merge,
    UPDATE_INSERT_DELETE: update_insert_delete,
    DELETE_INSERT: delete_insert,
}

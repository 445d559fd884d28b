"""Apply strategies: how the consolidated delta of a grouped aggregate gets into its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dbt_openivm.choices import DELETE_INSERT, MERGE, UPDATE_INSERT_DELETE
from dbt_openivm.compiler.plan import Step, Target
from dbt_openivm.compiler.publish import drop

MERGED = "openivm_merged"

Arguments = Mapping[str, Any]
"""What `ivm_merge` reads; see there."""


def keeps_delta(target: Target) -> bool:
    """Whether several statements read the delta, so that it must be in a temporary table."""
    return target.publish or target.batches > 1 or target.apply_strategy != MERGE


def apply(target: Target, arguments: Arguments) -> list[Step]:
    """The steps that add a delta to a state. Under every strategy emptied, changed and new groups count once each.

    Args:
        arguments: of `ivm_merge`; `source` is a temporary table if `keeps_delta`.
    """
    strategy = STRATEGIES[target.apply_strategy]
    keys = [key for _, key in arguments["keys"]]
    return [
        step
        for source in batches(arguments["source"], keys, target.batches)
        for step in strategy({**arguments, "source": source})
    ]


def batches(source: str, keys: Sequence[str], number: int) -> Iterator[str]:
    """The parts of a delta by the hash of its keys: each group is in one of them."""
    if number == 1:
        yield source
        return
    for batch in range(number):
        yield f"(SELECT * FROM {source} WHERE hash({', '.join(keys)}) % {number} = {batch})"


def merge(arguments: Arguments) -> list[Step]:
    return [Step("ivm_merge", arguments, "merge the delta", counts=True)]


def update_insert_delete(arguments: Arguments) -> list[Step]:
    """One statement a kind of change. The emptied groups go first: an update would compute over no rows for them."""
    delete = Step("ivm_delete_emptied", arguments, "delete the emptied groups", counts=True)
    update = Step("ivm_update_groups", arguments, "update the groups", counts=True)
    return [*([delete] if arguments["count"] else []), update, insert_new(arguments, arguments["target"])]


def delete_insert(arguments: Arguments) -> list[Step]:
    """Keep the new rows of the touched groups, delete their old ones, insert."""
    updates = dict(arguments["updates"])
    columns = [column for column, _ in arguments["inserts"]]
    values = [(column, updates.get(column, f"t.{column}")) for column in columns]
    affected = {"target": arguments["target"], "affected": arguments["source"], "keys": arguments["keys"]}
    put = {"target": arguments["target"], "name": MERGED, "columns": columns}
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

"""What the statement of each step macro does to which relations: known from the step, not read out of its SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dbt_openivm.compiler.plan import Step
from dbt_openivm.errors import InternalError

CREATE_TABLE, CREATE_VIEW, CREATE_TEMPORARY = "create table", "create view", "create temporary table"
CREATE_FUNCTION, CREATE_TRIGGER = "create function", "create trigger"
INDEX, ANALYZE = "create index", "analyze"
INSERT, UPDATE, DELETE, MERGE, DROP, COUNT = "insert", "update", "delete", "merge", "drop", "count"
CREATES = (CREATE_TABLE, CREATE_VIEW, CREATE_TEMPORARY, CREATE_FUNCTION)


@dataclass(frozen=True)
class Effect:
    """Attributes:
    kind: one of the words above.
    changes: the argument that names the relation which is created, changed or dropped; None for a count.
    reads: arguments that are FROM items: a relation, or a query in parentheses; None where the step has none.
    query: whether the argument `query` is a SELECT that it reads.
    there: whether what is changed must be there, unless it is created.
    """

    kind: str
    changes: str | None
    reads: tuple[str, ...] = ()
    query: bool = False
    there: bool = True


EFFECTS: Mapping[str, Effect] = {
    "ivm_create_state": Effect(CREATE_TABLE, "target", query=True),
    "ivm_drop": Effect(DROP, "name", there=False),
    "ivm_index_state": Effect(INDEX, "target"),
    "ivm_analyze": Effect(ANALYZE, "target"),
    "ivm_fill_state": Effect(INSERT, "target", query=True),
    "ivm_check_isolation": Effect(COUNT, None),
    "ivm_log_function": Effect(CREATE_FUNCTION, "function"),
    "ivm_log_trigger": Effect(CREATE_TRIGGER, "table", ("table",)),
    "ivm_create_boundary": Effect(CREATE_VIEW, "view", ("source",)),
    "ivm_create_view": Effect(CREATE_VIEW, "view", ("source",)),
    "ivm_create_log": Effect(CREATE_TABLE, "log", ("source",)),
    "ivm_keep_query": Effect(CREATE_TEMPORARY, "name", query=True),
    "ivm_keep_groups": Effect(CREATE_TEMPORARY, "name", ("target", "source")),
    "ivm_keep_rows": Effect(CREATE_TEMPORARY, "name", ("source", "affected")),
    "ivm_find_stale": Effect(CREATE_TEMPORARY, "name", ("target",)),
    "ivm_consolidate": Effect(CREATE_TEMPORARY, "delta", query=True),
    "ivm_check_log": Effect(COUNT, None, ("log",)),
    "ivm_count_copies": Effect(COUNT, None, ("delta",)),
    "ivm_count_stale": Effect(COUNT, None, ("target",)),
    "ivm_choose": Effect(COUNT, None, ("part", "whole")),
    "ivm_clear_log": Effect(DELETE, "log"),
    "ivm_delete_affected": Effect(DELETE, "target", ("affected",)),
    "ivm_delete_copies": Effect(DELETE, "target", ("delta",)),
    "ivm_delete_emptied": Effect(DELETE, "target", ("source",)),
    "ivm_delete_keyed": Effect(DELETE, "target", ("delta",)),
    "ivm_insert_groups": Effect(INSERT, "target", ("source", "held")),
    "ivm_insert_copies": Effect(INSERT, "target", ("delta",)),
    "ivm_insert_rows": Effect(INSERT, "target", query=True),
    "ivm_put_groups": Effect(INSERT, "target", ("name",)),
    "ivm_publish": Effect(INSERT, "log", ("old", "source", "affected")),
    "ivm_publish_delta": Effect(INSERT, "log", ("delta",)),
    "ivm_publish_groups": Effect(INSERT, "log", ("source", "target")),
    "ivm_merge": Effect(MERGE, "target", ("source",)),
    "ivm_replace_groups": Effect(MERGE, "target", ("affected",), query=True),
    "ivm_replace_single": Effect(UPDATE, "target", query=True),
    "ivm_update_groups": Effect(UPDATE, "target", ("source",)),
    "ivm_update_single": Effect(UPDATE, "target", ("source",)),
    "ivm_companion_copy": Effect(INSERT, "companion", ("log",)),
    "ivm_companion_delete": Effect(DELETE, "companion"),
    "ivm_companion_inline": Effect(INSERT, "companion", ("companion", "target", "source")),
    "ivm_companion_net": Effect(INSERT, "target", ("companion",)),
    "ivm_companion_relative": Effect(INSERT, "companion", ("source",)),
    "ivm_companion_renumber": Effect(UPDATE, "companion"),
    "ivm_companion_rows": Effect(INSERT, "companion", ("source", "affected")),
    "ivm_drop_temporary": Effect(DROP, "name"),
}


def effect_of(step: Step) -> Effect:
    try:
        return EFFECTS[step.macro]
    except KeyError:
        raise InternalError(f"What the statement of {step.macro} needs and changes is not written down.") from None


def changed(step: Step) -> str | None:
    """The relation that a step creates, changes or drops, as SQL."""
    argument = effect_of(step).changes
    return None if argument is None else str(step.arguments[argument])


def needed(step: Step, tables: Callable[[str], set[str]]) -> Iterator[str]:
    """The relations that must be there for a step, as SQL: what it reads, and what it changes unless it creates it.

    Args:
        tables: the relations that a SELECT reads.
    """
    effect = effect_of(step)
    if effect.changes is not None and effect.there and effect.kind not in CREATES:
        yield str(step.arguments[effect.changes])
    for argument in effect.reads:
        if step.arguments[argument] is not None:
            yield from sorted(tables(f"SELECT * FROM {step.arguments[argument]}"))
    if effect.query:
        yield from sorted(tables(str(step.arguments["query"])))

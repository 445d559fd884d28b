"""Companion rows: what `openivm_delta_<view>` gets from a refresh, beside or instead of the boundary's change log.

A boundary that somebody reads publishes its exact net difference already. So companion rows are a second copy of that,
or the difference itself where only they are wanted. Two cases are different: grouped aggregates, which write old and
new rows of all affected groups (`companion_groups`), and callers that run each statement in a session of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dbt_openivm.compiler import companion_groups, publish
from dbt_openivm.compiler.companion_groups import rows, wanted
from dbt_openivm.compiler.grouped import GroupedProgram
from dbt_openivm.compiler.plan import NodeProgram, Step, Target
from dbt_openivm.compiler.publish import column_list, told_apart
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.names import old_table, quote

States = Mapping[str, SourceState]
Steps = Callable[[Target], list[Step]]


def incremental(program: NodeProgram, states: States, target: Target) -> list[Step]:
    """The incremental program of a node, with the companion rows that `target` asks for."""
    companion = target.companion
    if target.split:
        if isinstance(program, GroupedProgram) and companion_groups.is_split(program, states):
            if companion is not None:
                return split_groups(program, states, target)
            return program.incremental(states, replace(target, split=not target.publish))
        target = replace(target, split=False)
    if companion is None:
        return program.incremental(states, target)
    if not companion.net and is_relative(program):
        return program.incremental(states, target)
    return published(program, lambda to: program.incremental(states, to), target)


def full(program: NodeProgram, states: States, target: Target, reshape: bool = False) -> list[Step]:
    """Recompute the state (see `publish.full`), with the companion rows that `target` asks for."""
    companion = target.companion
    if companion is None:
        return publish.full(program, states, target, reshape)
    if not target.split:
        return published(program, lambda to: publish.full(program, states, to, reshape), target)
    steps = publish.full(program, states, alone(target), reshape)
    shown = {
        "source": target.visible,
        "columns": column_list(program.visible_columns()),
        "affected": None,
        "keys": [],
        "having": None,
    }
    return [rows(-1, shown, target), *steps, rows(1, shown, target), *settled(program, target)]


def is_relative(program: NodeProgram) -> bool:
    """Whether the delta of a program changes the rows of groups; all others consist of rows that come and go."""
    return (
        isinstance(program, GroupedProgram)
        and not program.aggregate.scalar
        and not program.recomputes
        and not program.shows_keys_only
    )


def alone(target: Target) -> Target:
    """The target of a program that publishes nothing."""
    return replace(target, publish=False, companion=None)


def published(program: NodeProgram, steps_of: Steps, target: Target) -> list[Step]:
    """The published difference as companion rows: written there, or copied where the boundary has readers too."""
    companion = wanted(target)
    to = replace(target, publish=True, companion=None, old=quote(old_table(companion.view)))
    if not target.publish:
        return steps_of(replace(to, log=companion.table))
    steps = steps_of(to)
    arguments = {
        "companion": companion.table,
        "log": target.log,
        "columns": column_list(program.visible_columns()),
        "version": target.version,
    }
    return [*steps, Step("ivm_companion_copy", arguments, "companion rows: as published")] if steps else []


# --- without temporary tables -----------------------------------------------------------------------------------------


def split_groups(program: GroupedProgram, states: States, target: Target) -> list[Step]:
    steps = program.incremental(states, alone(target))
    if not steps:
        return []
    if companion_groups.is_inline(program) and not target.publish:
        steps = [*companion_groups.inline(program, states, target), *steps]
    else:
        steps = companion_groups.around(program, states, steps, target)
    return [*steps, *settled(program, target)]


def settled(program: NodeProgram, target: Target) -> list[Step]:
    """From the companion rows of both signs, the boundary's delta and, where they are wanted net, themselves."""
    companion = wanted(target)
    columns = program.visible_columns()
    shared = {
        "companion": companion.table,
        "columns": column_list(columns),
        "rows": told_apart(columns, target),
        "batch": target.version,
    }
    steps = []
    if target.publish:
        arguments = {**shared, "target": target.log, "version": target.version}
        steps.append(Step("ivm_companion_net", arguments, "publish the changed rows"))
    return [*steps, *compacted(shared, target)] if companion.net else steps


def compacted(shared: Mapping[str, object], target: Target) -> list[Step]:
    """Added up under a number that no reader looks at, and given the right one once the other rows are gone."""
    companion, version = wanted(target).table, target.version
    net = {**shared, "target": companion, "version": -version}
    return [
        Step("ivm_companion_net", net, "companion rows: add up"),
        Step("ivm_companion_delete", {"companion": companion, "batch": version}, "companion rows: drop the parts"),
        Step(
            "ivm_companion_renumber",
            {"companion": companion, "batch": -version, "version": version},
            "companion rows: number the sums",
        ),
    ]

"""A plan as text for people: sources and their capture, operators and their rules, the program's SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from dbt_openivm.compiler import companion, sql
from dbt_openivm.compiler.algebra import (
    Aggregate,
    Filter,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    SemiJoin,
    TemporalColumns,
    TemporalFilter,
    TopK,
    Unnest,
    Window,
)
from dbt_openivm.compiler.bag import BagProgram
from dbt_openivm.compiler.crossings import crossing_steps, example_states
from dbt_openivm.compiler.facts import NODE, RECURSION
from dbt_openivm.compiler.grouped import GroupedProgram
from dbt_openivm.compiler.keyed import KeyedProgram
from dbt_openivm.compiler.layout import readable, wrapped, wrapped_sql
from dbt_openivm.compiler.plan import FULL_REFRESH, NodeProgram, PlanNode, RefreshPlan, Step, Target
from dbt_openivm.compiler.recursion import RecomputeProgram, RecursiveProgram
from dbt_openivm.compiler.remedies import remedy
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.compiler.split import node_key
from dbt_openivm.compiler.top_k import TopKProgram

Render = Callable[[str, Mapping[str, Any]], str]

PROGRAMS = (BagProgram, GroupedProgram, KeyedProgram, TopKProgram, RecursiveProgram, RecomputeProgram)

#: By the name of the operator.
RULES = {
    "Scan": "reads the delta from the change log",
    "Constant": "never changes",
    "Filter": "filters the delta",
    "Project": "computes from the delta",
    "Join": "each input's delta with the new rows of those before it and the old rows of those after it",
    "SemiJoin": "the delta's rows with a match, and old rows whose match appeared or vanished",
    "OuterJoin": "the delta's rows with their matches, and old rows that gained their first or lost their last match",
    "UnionAll": "adds the deltas",
    "Unnest": "takes the delta's lists apart",
    "Window": "recomputes the touched partitions",
    "Asof": "recomputes the touched keys",
    "TopK": "keeps all rows, shows the first ones",
    "Aggregate": "adds the delta to its groups",
    "TemporalFilter": "filters the delta, and finds the rows that crossed the boundary since the last refresh",
    "TemporalColumns": "computes from the delta, and finds the rows whose values time has changed since",
    "Recursive": "searches what the delta adds to and takes from the rows, and all that follows from that",
}


@dataclass(frozen=True)
class Stage:
    """Where a plan plays: the names that its objects have, or will have.

    Attributes:
        view: the view's name.
        origin: where its query stands, None if that is not known.
        names: the name of each source, by key.
        captures: how the changes of each source are found, by key.
        states: each source with an imagined delta of inserted and deleted rows, by key.
        target: the objects of a node, by its number.
        locate: puts places in the user's files for lines of the query.
    """

    view: str
    origin: str | None
    names: Mapping[str, str]
    captures: Mapping[str, str]
    states: Mapping[str, SourceState]
    target: Callable[[int | None], Target]
    locate: Callable[[str], str] = str


def explain(plan: RefreshPlan, stage: Stage, render: Render) -> str:
    """Describe how a view is maintained."""
    lines = [f"{stage.view}: {plan.refresh_type}" + (f"  ({stage.origin})" if stage.origin else "")]
    if plan.reason:
        lines += ["", "why in full", *wrapped(f"{stage.locate(plan.reason)}.", "  ", "")]
        lines += ["what would make it incremental", *wrapped(remedy(plan.reason), "  ", "")]
    lines += ["", "sources", *sources(plan, stage)]
    for node in plan.nodes:
        lines += ["", *describe(node, stage, volatile=plan.volatile)]
    return "\n".join([*lines, "", *program(plan, stage, render)])


def sources(plan: RefreshPlan, stage: Stage) -> list[str]:
    """What is read of each source, and how its changes are found."""
    lines = []
    for key, columns in plan.sources.items():
        used = ", ".join(column.name for column in columns) or "only the number of rows"
        lines += wrapped(f"{stage.names[key]}: {used}", "  ", "    ")
        lines += wrapped(f"capture {stage.captures[key]}", "    ")
    return lines or ["  none"]


# --- operators --------------------------------------------------------------------------------------------------------


def describe(node: PlanNode, stage: Stage, volatile: bool) -> list[str]:
    """One node: the operator with a state, and the tree of those below it."""
    program = node.program
    name = "operators" if node.number is None else f"operators of internal view {node.number}: {program.refresh_type}"
    kept = readable(stage.target(node.number).data).split(".", 1)[-1]
    lines = [name, *wrapped(f"kept in {kept}", "  ")]
    if program.refresh_type == FULL_REFRESH:
        when = "on every run" if volatile else "whenever one of its sources changed"
        lines += wrapped(f"Query: recomputed {when}; models that read it get the difference of old and new rows", "  ")
        return lines + [f"    Scan {stage.names[key]}: reads all rows" for key in node.sources]
    if isinstance(program, GroupedProgram):
        lines += aggregate(program)
        return lines + [line for root in roots(program) for line in tree(root, stage, "    ")]
    if isinstance(program, RecomputeProgram):
        lines += wrapped(f"{title(program.operator, stage)}: recomputed when its input changed", "  ")
        return lines + [line for root in roots(program) for line in tree(root, stage, "    ")]
    top: list[str] = []
    if isinstance(program, KeyedProgram | TopKProgram | RecursiveProgram):
        top = operator(program.operator, stage, "  ")
    return lines + top + [line for root in roots(program) for line in tree(root, stage, "    " if top else "  ")]


def roots(program: NodeProgram) -> tuple[Operator, ...]:
    """What a node's program reads."""
    return program.node.cores if isinstance(program, PROGRAMS) else ()


def aggregate(program: GroupedProgram) -> list[str]:
    """An aggregate with what it computes, its hidden columns, and when it recomputes groups."""
    node = program.node
    values = meanings(program.aggregate)
    keys = ", ".join(shown(value) for _, value in program.aggregate.keys)
    title = "Distinct" if program.aggregate.distinct else "Aggregate"
    by = "" if program.aggregate.distinct else f" by {keys}" if keys else " of all rows"
    if program.recomputes:
        because = ", ".join(call.lower() for call in program.parts.recompute.values())
        rule = f"recomputes the groups that the delta touches, because of {readable(because)}"
    elif program.aggregate.distinct:
        rule = "counts the copies of each row"
    else:
        rule = RULES["Aggregate"]
    lines = wrapped(f"{title}{by}: {rule}", "  ", "    ")
    if not program.aggregate.distinct:
        items = [shown(sql.named(sql.substitute(value, values), name)) for name, (_, value) in titled(program)]
        lines += wrapped(f"shows {', '.join(items)}", "    ")
    if node.having is not None:
        lines += wrapped(f"shows groups where {shown(sql.substitute(node.having, values))}", "    ")
    hidden = [*program.hidden_keys, *(component.name for component in program.hidden_components)]
    if hidden:
        lines += wrapped(f"hidden columns {', '.join(hidden)}", "    ")
    if program.can_go_stale and not program.recomputes:
        lines += wrapped("recomputes a group whose extremum was deleted or whose digits cancelled", "    ")
    return lines


def titled(program: GroupedProgram) -> list[tuple[str, tuple[str, exp.Expr]]]:
    return list(zip(program.names, program.node.items, strict=True))


def meanings(aggregate: Aggregate) -> dict[str, exp.Expr]:
    """What the hidden names of an aggregate's keys and calls stand for."""
    return dict(aggregate.keys) | {name: call.expression for name, call in aggregate.calls}


def tree(node: Operator, stage: Stage, indent: str) -> list[str]:
    """One line an operator: what it is, and its rule."""
    lines = operator(node, stage, indent)
    for child in node.inputs:
        lines += tree(child, stage, indent + "  ")
    return lines


def operator(node: Operator, stage: Stage, indent: str) -> list[str]:
    rule = RULES.get(type(node).__name__)
    return wrapped(f"{title(node, stage)}: {rule}" if rule else title(node, stage), indent, "    ")


def title(node: Operator, stage: Stage) -> str:
    if isinstance(node, Scan):
        if node.relation.kind == RECURSION:
            return "Scan the rows of the last round"
        if node.relation.kind == NODE:
            return f"Scan internal view {node.relation.key.rsplit(':', 1)[-1]}"
        return f"Scan {stage.names.get(node.relation.key, node.relation.key)}"
    if isinstance(node, Filter):
        return f"Filter {shown(node.predicate)}"
    if isinstance(node, Project):
        return f"Project {', '.join(shown(sql.named(value, name)) for name, value in node.items)}"
    if isinstance(node, SemiJoin):
        return f"{'Anti' if node.anti else 'Semi'} join on {shown(node.on)}"
    if isinstance(node, OuterJoin):
        kind = "Full" if node.left_kept and node.right_kept else "Left" if node.left_kept else "Right"
        return f"{kind} join on {shown(node.on)}"
    if isinstance(node, Unnest):
        return f"Unnest {', '.join(shown(sql.named(value, name)) for name, value in node.items)}"
    if isinstance(node, Window):
        keys = ", ".join(shown(value) for _, value in node.keys)
        calls = ", ".join(shown(sql.named(value, name)) for name, value in node.calls)
        return f"Window of partitions by {keys or 'nothing'}, {calls}"
    if isinstance(node, TopK):
        words = [f"limit {shown(node.limit)}{' percent' if node.percent else ''}"] if node.limit is not None else []
        words += [f"offset {shown(node.offset)}"] if node.offset is not None else []
        return f"Order by {', '.join(map(shown, node.order))}, {' '.join(words)}"
    return other_title(node)


def other_title(node: Operator) -> str:
    """The title of an operator that is rare."""
    if isinstance(node, TemporalFilter):
        return f"Moving filter {shown(node.predicate)}"
    if isinstance(node, TemporalColumns):
        return f"Moving columns {', '.join(shown(sql.named(value, name)) for name, value in node.items)}"
    if isinstance(node, Recursive):
        return f"Recursive {'UNION' if node.distinct else 'UNION ALL'}"
    return type(node).__name__


def shown(value: exp.Expr) -> str:
    return readable(sql.text(value))


# --- program ----------------------------------------------------------------------------------------------------------


def program(plan: RefreshPlan, stage: Stage, render: Render) -> list[str]:
    """The statements of a refresh in which every source has inserted and deleted rows."""
    lines = ["program", *wrapped(PROGRAM[plan.refresh_type == FULL_REFRESH], "  ", "")]
    states = dict(stage.states)
    for node in plan.nodes:
        target = stage.target(node.number)
        title = "" if node.number is None else f"internal view {node.number}: "
        states |= example_states(node)
        moving = [step for op in node.moving.values() for step in crossing_steps(op, states)]
        for step in [*moving, *steps(node, states, target)]:
            lines += ["", f"-- {title}{step.label}", *wrapped_sql(render(step.macro, step.arguments) + ";")]
        if node.number is not None:
            states[node_key(node.number)] = SourceState(target.visible, target.log, 1, 2, 1, 1)
    return lines


PROGRAM = {
    False: "of a refresh from batch 1 to batch 2 in which every source has inserted and deleted rows; "
    "steps that the data does not call for are left out",
    True: "of every refresh",
}


def steps(node: PlanNode, states: Mapping[str, SourceState], target: Target) -> list[Step]:
    if node.program.refresh_type == FULL_REFRESH:
        return companion.full(node.program, states, target)
    return companion.incremental(node.program, states, target)

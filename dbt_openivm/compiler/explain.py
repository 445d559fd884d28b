"""A plan as text for people: operator tree, hidden columns, sources, and the program's SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import (
    Aggregate,
    Constant,
    Filter,
    Join,
    Operator,
    OuterJoin,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
    Unnest,
    Window,
)
from dbt_openivm.compiler.bag import BagProgram
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.grouped import GroupedProgram
from dbt_openivm.compiler.plan import FULL_REFRESH, PlanNode, RefreshPlan, Target
from dbt_openivm.compiler.rules import SourceState

Render = Callable[[str, Mapping[str, Any]], str]

RULES = {
    Scan: "reads its change log",
    Constant: "never changes",
    Filter: "linear: filters the delta",
    Project: "linear: computes from the delta",
    Join: "telescoping: each input's delta with the new rows of those before and the old rows of those after it",
    SemiJoin: "the delta's rows with a match, and old rows whose match appeared or vanished",
    OuterJoin: "the delta's rows with their matches, new matches, and old rows that gained the first or lost the last",
    UnionAll: "linear: adds the deltas",
    Unnest: "linear: takes the delta's lists apart",
    Window: "recomputes the touched partitions",
    Aggregate: "groups: adds the delta's change to the state of its groups",
}


def explain(plan: RefreshPlan, facts: CompileFacts, render: Render) -> str:
    """Describe how a view is maintained."""
    lines = [f"refresh type: {plan.refresh_type}"]
    if plan.reason:
        lines.append(f"reason: {plan.reason}")
    lines += ["", "sources:"]
    for key, columns in plan.sources.items():
        used = ", ".join(column.name for column in columns) or "(only the number of rows)"
        lines.append(f"  {key} ({facts.relations[key].kind}): {used}")
    for node in plan.nodes:
        lines += ["", *describe_node(node)]
    if plan.refresh_type != FULL_REFRESH:
        lines += ["", "program of a refresh in which every source has inserted and deleted rows:"]
        lines += program(plan, render)
    return "\n".join(lines)


def describe_node(node: PlanNode) -> list[str]:
    title = "view" if node.number is None else f"internal view {node.number}"
    lines = [f"{title}: {node.program.refresh_type}"]
    if isinstance(node.program, GroupedProgram):
        lines += describe_aggregate(node.program)
    if isinstance(node.program, BagProgram | GroupedProgram):
        lines += tree(node.program.node.core, 1 if isinstance(node.program, BagProgram) else 2)
    return lines


def describe_aggregate(program: GroupedProgram) -> list[str]:
    aggregate = program.aggregate
    keys = ", ".join(sql.text(value) for _, value in aggregate.keys) or "none (one row)"
    lines = [f"  Aggregate by {keys}: {RULES[Aggregate]}"]
    if program.recomputes:
        lines[0] = f"  Aggregate by {keys}: recomputes the touched groups"
        lines.append(f"    because of: {', '.join(program.parts.recompute.values())}")
    lines.append(
        f"    hidden columns: {', '.join([*program.hidden_keys, *(c.name for c in program.hidden_components)])}"
    )
    if program.can_go_stale and not program.recomputes:
        lines.append("    groups are recomputed where addition cannot be undone (a deleted extremum, cancelled digits)")
    if program.node.having is not None:
        lines.append(f"    visible where: {sql.text(program.node.having)}")
    return lines


def tree(operator: Operator, depth: int) -> list[str]:
    """One line an operator: what it is, and its rule."""
    lines = ["  " * depth + f"{title(operator)}: {RULES[type(operator)]}"]
    for child in operator.inputs:
        lines += tree(child, depth + 1)
    return lines


def title(operator: Operator) -> str:
    if isinstance(operator, Scan):
        return f"Scan {operator.relation.key}"
    if isinstance(operator, Filter):
        return f"Filter {sql.text(operator.predicate)}"
    if isinstance(operator, Project):
        return f"Project {', '.join(sql.text(sql.named(value, name)) for name, value in operator.items)}"
    return type(operator).__name__


def program(plan: RefreshPlan, render: Render) -> list[str]:
    """The statements of a refresh, with readable stand-ins for the objects."""
    states = {key: example_state(key) for key in plan.sources}
    lines: list[str] = []
    for node in plan.nodes:
        name = "view" if node.number is None else f"node_{node.number}"
        target = Target(
            f"openivm_data_{name}",
            f"openivm_visible_{name}",
            f"openivm_delta_openivm_visible_{name}",
            2,
            node.number is not None,
            plan.output if node.number is None else (),
        )
        for step in node.program.incremental(states, target):
            lines += [f"-- {name}: {step.label}", render(step.macro, step.arguments) + ";", ""]
        states[f"node:{node.number}"] = example_state(name, target.visible, target.log)
    return lines


def example_state(key: str, current: str = "", log: str = "") -> SourceState:
    name = key.rsplit(".", 1)[-1]
    return SourceState(current or name, log or f"openivm_delta_{name}", 1, 2, 1, 1)

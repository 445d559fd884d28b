"""Compile a query with facts from a real connection, and stand-ins for the objects of its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_openivm.choices import MERGE
from dbt_openivm.compiler import publish
from dbt_openivm.compiler.algebra import Operator
from dbt_openivm.compiler.compile import settle
from dbt_openivm.compiler.facts import Column, CompileFacts
from dbt_openivm.compiler.plan import FULL_REFRESH, PlanNode, RefreshPlan, Target
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.engine.planning import compile_view, told
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.names import RelationName
from tests.bags import bag_difference
from tests.helpers import columns_of

CURSOR, VERSION = 1, 2
VIEW = RelationName("memory", "main", "mv")

#: shape -> (rows inserted, rows deleted)
SHAPES = {"insert-only": (1, 0), "mixed": (1, 1)}


@dataclass(frozen=True)
class Compiled:
    """A query with everything that became of it on the way to its plan."""

    facts: CompileFacts
    operator: Operator | None
    plan: RefreshPlan


def compiled(connection: Any, query: str) -> Compiled:
    """Compile `query` as the engine does for a new view."""
    session = DuckDBSession(connection)
    plan, facts = compile_view(session, ViewSpec(VIEW, query), lambda name, sql: False)
    analysis, facts = settle(query, facts, lambda probe: told(session, probe))
    operator = None
    if plan.refresh_type != FULL_REFRESH and analysis.operator is not None:
        operator = analysis.typed
    return Compiled(facts, operator, plan)


def node_name(node: PlanNode) -> str:
    return "view" if node.number is None else f"node_{node.number}"


def target_of(node: PlanNode, consumed: bool, columns: tuple[Column, ...] = (), apply_strategy: str = MERGE) -> Target:
    """The objects of a node; internal nodes always have a consumer, the view itself only if `consumed`.

    Args:
        columns: the visible columns. The engine knows those of internal nodes from their build; here they are unknown.
    """
    name = node_name(node)
    return Target(
        data=f"openivm_data_{name}",
        visible=f"openivm_visible_{name}",
        log=f"openivm_delta_{name}",
        version=VERSION,
        publish=consumed or node.number is not None,
        columns=columns,
        apply_strategy=apply_strategy,
    )


def source_states(plan: RefreshPlan, facts: CompileFacts, shape: str) -> dict[str, SourceState]:
    """Every base with a delta of this shape."""
    inserts, deletes = SHAPES[shape]
    return {
        key: SourceState(last_part(key), f"openivm_delta_{last_part(key)}", CURSOR, VERSION, inserts, deletes)
        for key in plan.sources
    }


def with_node(states: Mapping[str, SourceState], node: PlanNode) -> dict[str, SourceState]:
    """The states that a later node sees: this one has published old rows and new ones."""
    target = target_of(node, consumed=True)
    return {**states, f"node:{node.number}": SourceState(target.visible, target.log, CURSOR, VERSION, 1, 1)}


def assert_state_is_exact(connection: Any, query: str, rows: bool = True) -> Compiled:
    """Built from the live tables, the view shows the rows of its query, under the names and types of a CTAS of it.

    Args:
        rows: whether the rows can be compared; those of a volatile query cannot.
    """
    made = compiled(connection, query)
    assert "bug in dbt-openivm" not in (made.plan.reason or ""), made.plan.reason
    connection.execute("BEGIN")
    try:
        build(connection, made)
        visible = target_of(made.plan.nodes[-1], consumed=False).visible
        connection.execute(f"CREATE TEMP TABLE truth AS {query}")
        assert columns_of(connection, visible) == columns_of(connection, "truth")
        if rows:
            assert bag_difference(connection, f"SELECT * FROM {visible}", "SELECT * FROM truth") == ([], [])
    finally:
        connection.execute("ROLLBACK")
    return made


def build(connection: Any, made: Compiled) -> None:
    """Create state and boundary of each node from the live tables."""
    known = {key: SourceState(made.facts.relations[key].sql) for key in made.plan.sources}
    for node in made.plan.nodes:
        target = target_of(node, consumed=False)
        for step in publish.build(node.program, known, target):
            connection.execute(render(step.macro, step.arguments))
        known[f"node:{node.number}"] = SourceState(target.visible)


def last_part(key: str) -> str:
    return key.rsplit(".", 1)[-1]

"""Before a node's program: find the rows that crossed a moving boundary since the last refresh."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Temporal
from dbt_openivm.compiler.clock import CLOCK
from dbt_openivm.compiler.plan import PlanNode, Step
from dbt_openivm.compiler.publish import dropped, filled
from dbt_openivm.compiler.rules import Context, SourceState, crossed
from dbt_openivm.compiler.rules.temporal import clock_state, crossing_key, crossing_table

#: One o'clock and two o'clock of a day, as a program is shown for.
EXAMPLE = clock_state(1767272400000000, 1767276000000000)


def crossing_steps(operator: Temporal, states: Mapping[str, SourceState]) -> list[Step]:
    """Keep the rows that crossed in a temporary table. `states` has those of the sources and of the clock."""
    context = Context(states)
    query = sql.text(crossed(operator, context))
    keep = Step(
        "ivm_keep_query", {"name": crossing_table(operator.number), "query": query}, "find the rows that crossed"
    )
    return [*filled(context), keep, *dropped(context)]


def example_states(node: PlanNode) -> dict[str, SourceState]:
    """The clock between two refreshes, and rows that crossed both ways, for a program that is only shown."""
    crossings = {
        crossing_key(number): SourceState("", crossing_table(number), inserts=1, deletes=1) for number in node.moving
    }
    return {CLOCK: EXAMPLE, **crossings} if crossings else {}

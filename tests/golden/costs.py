"""What a refresh has to read, in words: what a golden query says in its header, and what its plan says."""

from __future__ import annotations

from dbt_openivm.compiler.algebra import Join, Operator, Scan
from dbt_openivm.compiler.grouped import GroupedProgram
from dbt_openivm.compiler.plan import FULL_REFRESH
from dbt_openivm.compiler.recursion import RecomputeProgram, RecursiveProgram
from tests.golden.compiled import Compiled

#: word -> what is read. docs/operators.md shows them.
COSTS = {
    "nothing": "no source can change the result",
    "delta": "the changed rows of the sources",
    "matches": "the rows that the changed ones join with or compare with",
    "lost groups": "the rows of those groups whose extremum was deleted, or whose floating sums lost digits",
    "groups": "the rows of the touched groups",
    "partitions": "the rows of the touched partitions",
    "keys": "the rows of the touched keys on both sides",
    "first rows": "the state once, to find the rows that are shown",
    "what follows": "the rows that follow, round by round, from what the delta adds and takes",
    "the node": "all that the recursive CTE reads, whenever it changed; what is above it takes its difference",
    "crossing rows": "the rows that time moved over the boundary since the last refresh",
    "recompute": "everything",
}

#: By the name of the operator, where it costs more than the delta.
OF_OPERATOR = {
    "SemiJoin": "matches",
    "OuterJoin": "matches",
    "Window": "partitions",
    "Asof": "keys",
    "TopK": "first rows",
    "TemporalFilter": "crossing rows",
    "TemporalColumns": "crossing rows",
}


def cost_of(made: Compiled) -> tuple[str, ...]:
    """The words of a compiled query, in the order of `COSTS`."""
    if made.plan.refresh_type == FULL_REFRESH:
        return ("recompute",)
    found = {"delta" if made.plan.sources else "nothing"}
    for operator in made.operator.walk() if made.operator else ():
        found.add(OF_OPERATOR.get(type(operator).__name__, ""))
        if isinstance(operator, Join) and sum(map(changes, operator.inputs)) > 1:
            found.add("matches")
    for node in made.plan.nodes:
        if isinstance(node.program, RecursiveProgram | RecomputeProgram):
            found.add("what follows" if isinstance(node.program, RecursiveProgram) else "the node")
        if isinstance(node.program, GroupedProgram):
            found.add("groups" if node.program.recomputes else "lost groups" if node.program.can_go_stale else "")
    return tuple(word for word in COSTS if word in found)


def changes(operator: Operator) -> bool:
    return any(isinstance(below, Scan) for below in operator.walk())

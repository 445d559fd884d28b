"""Which products of a join are empty because a foreign key refers to a parent that only gains rows; see
`constraints`."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_openivm.compiler.algebra import Join, OuterJoin, SemiJoin
from dbt_openivm.compiler.algebra.base import References
from dbt_openivm.compiler.constraints import source
from dbt_openivm.compiler.rules.context import Context


def empty_products(join: Join | SemiJoin | OuterJoin, context: Context) -> References:
    """The pairs (parent, child) of inputs for which ``old(child) x delta(parent)`` is empty."""
    return tuple(pair for pair in join.references if gains_only(join, pair[0], context))


def gains_only(join: Join | SemiJoin | OuterJoin, index: int, context: Context) -> bool:
    scan = source(join.inputs[index])
    return scan is not None and context.states[scan.relation.key].shape == "insert-only"


def parents_first(count: int, pairs: Sequence[tuple[int, int]]) -> tuple[list[int], set[int]]:
    """An order of a join's inputs, and those whose term is then empty: they come before an old child.

    Where inputs refer to each other in a ring, one of them has to come last, and its term stays.

    Example:
        >>> parents_first(3, [(2, 0), (0, 2)])
        ([1, 2, 0], {2})
    """
    after: dict[int, set[int]] = {index: set() for index in range(count)}
    for parent, child in pairs:
        if parent not in reachable(after, child):
            after[parent].add(child)
    order: list[int] = []
    while len(order) < count:
        left = [index for index in range(count) if index not in order]
        waiting = set().union(*(after[index] for index in left))
        order.append(next(index for index in left if index not in waiting))
    return order, {parent for parent, children in after.items() if children}


def reachable(after: dict[int, set[int]], start: int) -> set[int]:
    found, pending = {start}, [start]
    while pending:
        new = after[pending.pop()] - found
        found |= new
        pending.extend(new)
    return found

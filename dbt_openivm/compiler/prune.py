"""Keep only the columns that are used, so that captures and logs hold no others.

What will become an internal view of several readers (a CTE used twice) keeps all its columns: so it stays one object,
and becomes one view. It must: two views of one window could differ in what its order leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt_openivm.compiler.algebra import Operator, UnionAll, Window, exactly, shared_operators, top_node


@dataclass
class _Pruner:
    """`shared` holds the ids of operators that several others read, at once or through others; `done` what became of
    them."""

    shared: frozenset[int]
    done: dict[tuple[int, frozenset[str]], Operator] = field(default_factory=dict)

    def prune(self, operator: Operator, used: set[str]) -> Operator:
        if id(operator) not in self.shared:
            return self.pruned(operator, used)
        # an internal view keeps all columns; of what has no state, readers of the same columns share one object
        kept = used if top_node(operator) is None else set(operator.columns)
        key = (id(operator), frozenset(kept))
        if key not in self.done:
            self.done[key] = self.pruned(operator, kept)
        return self.done[key]

    def pruned(self, operator: Operator, used: set[str]) -> Operator:
        if isinstance(operator, Window) and used.isdisjoint(name for name, _ in operator.calls):
            return self.prune(operator.child, used)
        narrowed, needs = operator.narrowed(used)
        wanted = tuple(zip(narrowed.inputs, needs, strict=True))
        inputs = tuple(self.prune(child, need) for child, need in wanted)
        if isinstance(narrowed, UnionAll):
            # by position: an input that offers more than it was asked for would shift them
            kept = [tuple(name for name in child.columns if name in need) for child, need in wanted]
            inputs = tuple(exactly(child, names) for child, names in zip(inputs, kept, strict=True))
        return narrowed.with_inputs(inputs)


def prune(operator: Operator) -> Operator:
    """The same rows, read from no more columns than needed."""
    several = shared_operators(operator)
    below = {id(op) for shared in operator.walk() if id(shared) in several for op in shared.walk()}
    return _Pruner(frozenset(below)).prune(operator, set(operator.columns))

"""Keep only the columns that are used, so that captures and logs hold no others.

What several others read stays one object, with the columns that any of them uses. What will become an internal view of
several readers (a CTE used twice) keeps all its columns.
"""

from __future__ import annotations

from dbt_openivm.compiler.algebra import Operator, UnionAll, Window, exactly, shared_operators, top_node


def prune(operator: Operator) -> Operator:
    """The same rows, read from no more columns than needed."""
    shared = shared_operators(operator)
    needs: dict[int, set[str]] = {id(operator): set(operator.columns)}
    narrow: dict[int, Operator] = {}
    for op in from_top(operator):
        whole = id(op) in shared and top_node(op) is not None
        used = set(op.columns) if whole else needs[id(op)]
        if isinstance(op, Window) and used.isdisjoint(name for name, _ in op.calls):
            narrowed: Operator = op.child
            wanted: tuple[set[str], ...] = (used,)
        else:
            narrowed, wanted = op.narrowed(used)
        narrow[id(op)] = narrowed
        for child, need in zip(op.inputs, wanted, strict=True):
            needs.setdefault(id(child), set()).update(need)
    done: dict[int, Operator] = {}
    for op in reversed(from_top(operator)):
        done[id(op)] = rebuilt(op, narrow[id(op)], needs, done)
    return done[id(operator)]


def rebuilt(op: Operator, narrowed: Operator, needs: dict[int, set[str]], done: dict[int, Operator]) -> Operator:
    """A narrowed operator over its narrowed inputs."""
    if any(narrowed is child for child in op.inputs):
        return done[id(narrowed)]
    inputs = tuple(done[id(child)] for child in op.inputs)
    if isinstance(narrowed, UnionAll):
        # by position: an input that offers more than it was asked for would shift them
        positions = [index for index, name in enumerate(op.columns) if name in needs[id(op)]]
        kept = [tuple(child.columns[index] for index in positions) for child in op.inputs]
        inputs = tuple(exactly(child, names) for child, names in zip(inputs, kept, strict=True))
    return narrowed.with_inputs(inputs)


def from_top(operator: Operator) -> list[Operator]:
    """Every operator once, each after all that read it."""
    order: list[Operator] = []
    seen: set[int] = set()

    def visit(op: Operator) -> None:
        if id(op) not in seen:
            seen.add(id(op))
            for child in op.inputs:
                visit(child)
            order.append(op)

    visit(operator)
    return order[::-1]

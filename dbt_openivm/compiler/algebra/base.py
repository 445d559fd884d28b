"""What all operators share: their shape, and small helpers over it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_openivm.compiler.sql import column_names

Names = tuple[tuple[str, int, str], ...]
"""Output columns of a join as (output name, index of the input, column of the input)."""

References = tuple[tuple[int, int], ...]
"""Inputs of a join as (parent, child)."""


def column(name: str) -> exp.Column:
    """A reference to an output column of the child operator."""
    return exp.Column(this=exp.to_identifier(name, quoted=True))


Narrowed = tuple["Operator", tuple[set[str], ...]]
"""An operator that computes no more than it must, and the columns that it reads of each input."""


@dataclass(frozen=True, eq=False)
class Operator(ABC):
    """Base of all operators. A pass that only needs the shape of the tree works on these methods, for any operator."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The output columns, in order."""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return ()

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        """The same operator over other inputs, which offer the columns that it reads."""
        assert not inputs
        return self

    @abstractmethod
    def narrowed(self, used: set[str]) -> Narrowed:
        """The operator with no output column but `used` where it can do without, and what it reads of each input."""

    def walk(self) -> Iterator[Operator]:
        yield self
        for child in self.inputs:
            yield from child.walk()


@dataclass(frozen=True, eq=False)
class OneInput(Operator):
    """Base of operators over one input."""

    child: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, child=inputs[0])


@dataclass(frozen=True, eq=False)
class TwoInputs(Operator):
    """Base of operators over two inputs that play different parts."""

    left: Operator
    right: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, left=inputs[0], right=inputs[1])


@dataclass(frozen=True, eq=False)
class Pairing(TwoInputs):
    """Base of joins that pair rows of two inputs.

    Attributes:
        on: over the output columns.
        names: as of a Join.
    """

    on: exp.Expr
    names: Names

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(out for out, _, _ in self.names)

    def narrowed(self, used: set[str]) -> Narrowed:
        wanted = used | column_names(self.on)
        names = tuple(entry for entry in self.names if entry[0] in wanted)
        return replace(self, names=names), read_of(names, 2)


@dataclass(frozen=True, eq=False)
class ManyInputs(Operator):
    """Base of operators over any number of inputs."""

    children: tuple[Operator, ...]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self.children

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, children=inputs)


def bottom_up(operator: Operator, change: Callable[[Operator], Operator]) -> Operator:
    """A tree in which each operator was changed after its inputs; what several operators read stays one object."""
    done: dict[int, Operator] = {}

    def visit(op: Operator) -> Operator:
        if id(op) not in done:
            done[id(op)] = change(op.with_inputs(tuple(map(visit, op.inputs))))
        return done[id(op)]

    return visit(operator)


def shared_operators(*operators: Operator) -> frozenset[int]:
    """Ids of the operators that stand below several others."""
    seen: set[int] = set()
    shared: set[int] = set()
    pending = list(operators)
    while pending:
        for child in pending.pop().inputs:
            if id(child) in seen:
                shared.add(id(child))
            else:
                seen.add(id(child))
                pending.append(child)
    return frozenset(shared)


def names_of(expressions: Iterable[exp.Expr]) -> set[str]:
    """The columns that any of the expressions reads."""
    return {name for value in expressions for name in column_names(value)}


def read_of(names: Names, inputs: int) -> tuple[set[str], ...]:
    """The columns that `names` takes from each input."""
    return tuple({inner for _, index, inner in names if index == position} for position in range(inputs))


def unique_name(name: str, taken: set[str]) -> str:
    """`name`, with a suffix if it is in `taken` (lower-case names) already; adds the result to `taken`.

    Example:
        >>> unique_name("A", {"a"})
        'A_1'
    """
    candidate, number = name, 0
    while candidate.lower() in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate.lower())
    return candidate

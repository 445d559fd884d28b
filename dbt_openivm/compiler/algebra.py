"""The operator tree: frozen dataclasses that know their output columns.

An operator's output columns have names that are unique within it without regard to case. Expressions of an operator are
sqlglot expressions whose columns are bare names of its child's output (see `column`), so that no expression depends
on how a relation was called in the user's query. A relation is a Z-set throughout: rows with signed weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from dbt_openivm.compiler.facts import Relation


def column(name: str) -> exp.Column:
    """A reference to an output column of the child operator."""
    return exp.Column(this=exp.to_identifier(name, quoted=True))


@dataclass(frozen=True)
class Operator(ABC):
    """Base of all operators."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The output columns, in order."""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return ()

    def walk(self) -> Iterator[Operator]:
        yield self
        for child in self.inputs:
            yield from child.walk()


@dataclass(frozen=True, eq=False)
class Scan(Operator):
    """Read a source. `names` pairs each output name with the source's column."""

    relation: Relation
    names: tuple[tuple[str, str], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(out for out, _ in self.names)


@dataclass(frozen=True, eq=False)
class Constant(Operator):
    """Rows that no source feeds: VALUES, or the one row of a SELECT without FROM. Its delta is always empty."""

    rows: tuple[tuple[exp.Expr, ...], ...]
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


@dataclass(frozen=True, eq=False)
class Filter(Operator):
    """Linear: keep the rows for which the predicate is true."""

    child: Operator
    predicate: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)


@dataclass(frozen=True, eq=False)
class Project(Operator):
    """Linear: compute (name, expression) items from each row."""

    child: Operator
    items: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)


@dataclass(frozen=True, eq=False)
class Join(Operator):
    """n-linear: the cross product of its inputs; the conditions stand in a Filter above.

    `names` gives the output columns as (output name, index of the input, column of the input).
    """

    children: tuple[Operator, ...]
    names: tuple[tuple[str, int, str], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(out for out, _, _ in self.names)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self.children


@dataclass(frozen=True, eq=False)
class UnionAll(Operator):
    """Linear in every input: the sum of Z-sets, columns by position, named after the first input."""

    children: tuple[Operator, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.children[0].columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self.children


@dataclass(frozen=True)
class Call:
    """One aggregate call of an Aggregate.

    Attributes:
        function: DuckDB's name of it in lower case; "count_star" for COUNT(*).
        argument: the single argument, None where it has none or several.
        condition: the FILTER predicate, or None.
        expression: the whole call as written, over the child's columns.
        simple: whether only function, argument and condition matter (no DISTINCT, no ORDER BY, no further argument).
    """

    function: str
    argument: exp.Expr | None
    condition: exp.Expr | None
    expression: exp.Expr
    simple: bool


@dataclass(frozen=True, eq=False)
class Aggregate(Operator):
    """Non-linear: one row a group of keys.

    Attributes:
        scalar: no GROUP BY: always exactly one row.
        distinct: whether it stands for SELECT DISTINCT.
        types: (type of the argument, type of the result) of each call, None where unknown; empty before types are
            resolved.
    """

    child: Operator
    keys: tuple[tuple[str, exp.Expr], ...]
    calls: tuple[tuple[str, Call], ...]
    scalar: bool = False
    distinct: bool = False
    types: tuple[tuple[str | None, str | None], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.keys) + tuple(name for name, _ in self.calls)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)


LINEAR = (Scan, Constant, Filter, Project, Join, UnionAll)
"""Operators whose delta is made from the deltas of their inputs alone."""


def top_aggregate(operator: Operator) -> Aggregate | None:
    """The aggregate below a chain of filters and projections, if the chain ends in one."""
    while isinstance(operator, Filter | Project):
        operator = operator.child
    return operator if isinstance(operator, Aggregate) else None


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

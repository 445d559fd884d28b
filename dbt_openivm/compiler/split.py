"""Split a query into nodes: each at most one non-linear operator over a linear core.

A non-linear operator below another operator becomes an internal view, maintained and published exactly like a chained
model.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_openivm.compiler.algebra import (
    NODES,
    Aggregate,
    Filter,
    Operator,
    Project,
    Recursive,
    Scan,
    column,
    shared_operators,
)
from dbt_openivm.compiler.facts import NODE, RECURSION, Column, Relation
from dbt_openivm.compiler.sql import substitute

Items = tuple[tuple[str, exp.Expr], ...]


@dataclass(frozen=True, eq=False)
class Node:
    """One view to maintain.

    Attributes:
        number: of an internal node, counted from 1; None for the model itself.
        cores: what the node reads: the inputs of `top`, made of operators without a state only.
        top: the operator with a state over `cores`; None for a bag of the one core's rows.
        items: the visible columns, over the columns of `top` (or the core).
        having: which rows of `top` are visible; None for all.
    """

    number: int | None
    cores: tuple[Operator, ...]
    top: Operator | None
    items: Items
    having: exp.Expr | None

    @property
    def core(self) -> Operator:
        """The one thing that it reads."""
        [core] = self.cores
        return core

    @property
    def aggregate(self) -> Aggregate | None:
        return self.top if isinstance(self.top, Aggregate) else None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)


def node_key(number: int) -> str:
    """The source key under which a plan's nodes read each other."""
    return f"{NODE}:{number}"


@dataclass
class _Splitter:
    """`shared` holds the ids of operators that several others read, such as a CTE used twice."""

    shared: frozenset[int]
    nodes: list[Node] = field(default_factory=list)
    scans: dict[int, Scan] = field(default_factory=dict)
    cores: dict[int, Operator] = field(default_factory=dict)

    def core(self, operator: Operator) -> Operator:
        """`operator` with every non-linear part replaced by a scan of an internal node."""
        if self.foldable(operator) is not None and not unbound(operator):
            return self.scan(operator)
        if id(operator) not in self.cores:
            self.cores[id(operator)] = operator.with_inputs(tuple(self.core(child) for child in operator.inputs))
        return self.cores[id(operator)]

    def foldable(self, operator: Operator) -> Operator | None:
        """The operator with a state that `operator` and the filters and projections above it make one view with, if
        any.

        A shared operator below is a view of its own, so nothing above it is folded into it.
        """
        if not operator.columns:
            return None  # a view needs a column: what counts rows only is left to the core
        below = operator
        while isinstance(below, Filter | Project):
            below = below.child
            if id(below) in self.shared:
                return None
        if isinstance(below, Recursive) and not is_renaming(operator):
            return None  # its state is the whole CTE, which the next round is derived from
        return below if isinstance(below, NODES) else None

    def scan(self, operator: Operator) -> Scan:
        if id(operator) not in self.scans:
            node = self.node(operator, len(self.nodes))
            number = len(self.nodes) + 1
            self.nodes.append(replace(node, number=number))
            relation = Relation(node_key(number), "", tuple(Column(name, "") for name in node.columns), NODE)
            self.scans[id(operator)] = Scan(relation, tuple((name, name) for name in node.columns))
        return self.scans[id(operator)]

    def node(self, operator: Operator, number: int | None) -> Node:
        """The node whose visible rows are the operator's."""
        top = self.foldable(operator)
        if top is None:
            core = self.core(operator)
            return Node(number, (core,), None, tuple((name, column(name)) for name in core.columns), None)
        items, having = fold(operator)
        cores = tuple(self.core(child) for child in top.inputs)
        return Node(number, cores, top.with_inputs(cores), items, having)


def is_renaming(operator: Operator) -> bool:
    """Whether a chain of projections shows all columns of the operator below it, once each."""
    while isinstance(operator, Project):
        read = [value.name for _, value in operator.items if isinstance(value, exp.Column)]
        if sorted(read) != sorted(operator.child.columns) or len(read) != len(operator.items):
            return False
        operator = operator.child
    return not isinstance(operator, Filter)


def unbound(operator: Operator) -> bool:
    """Whether an operator stands inside the step of a recursive CTE and reads its rows: it is no view of its own."""
    read = {op.relation.key for op in operator.walk() if isinstance(op, Scan) and op.relation.kind == RECURSION}
    return bool(read - {op.working.key for op in operator.walk() if isinstance(op, Recursive)})


def fold(operator: Operator) -> tuple[Items, exp.Expr | None]:
    """A chain of filters and projections over an operator with a state as one item list and one predicate."""
    if isinstance(operator, NODES):
        return tuple((name, column(name)) for name in operator.columns), None
    assert isinstance(operator, Filter | Project)
    items, having = fold(operator.child)
    below = dict(items)
    if isinstance(operator, Project):
        return tuple((name, substitute(value, below)) for name, value in operator.items), having
    predicate = substitute(operator.predicate, below)
    return items, predicate if having is None else exp.And(
        this=exp.Paren(this=having), expression=exp.Paren(this=predicate)
    )


def split(operator: Operator) -> tuple[Node, ...]:
    """The nodes of a query in the order in which they must be refreshed; the model itself comes last."""
    splitter = _Splitter(shared_operators(operator))
    root = splitter.node(operator, None)
    return (*splitter.nodes, root)

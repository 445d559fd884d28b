"""Keep only the columns that are used, so that captures and logs hold no others.

What will become an internal view (an aggregate with the filters and projections right above it) keeps all its
columns: so one that two parents share (a CTE used twice) stays one object, and becomes one view.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_openivm.compiler.algebra import (
    Aggregate,
    Constant,
    Filter,
    Join,
    Operator,
    Project,
    Scan,
    UnionAll,
    column,
    top_aggregate,
)
from dbt_openivm.compiler.sql import column_names
from dbt_openivm.errors import InternalError


@dataclass
class _Pruner:
    shared: dict[int, Operator] = field(default_factory=dict)

    def prune(self, operator: Operator, used: set[str]) -> Operator:
        if top_aggregate(operator) is None:
            return self.pruned(operator, used)
        if id(operator) not in self.shared:
            self.shared[id(operator)] = self.pruned(operator, set(operator.columns))
        return self.shared[id(operator)]

    def pruned(self, operator: Operator, used: set[str]) -> Operator:
        if isinstance(operator, Scan):
            return Scan(operator.relation, tuple(pair for pair in operator.names if pair[0] in used))
        if isinstance(operator, Constant):
            return operator
        if isinstance(operator, Filter):
            child = self.prune(operator.child, used | column_names(operator.predicate))
            return Filter(child, operator.predicate)
        if isinstance(operator, Project):
            items = tuple(item for item in operator.items if item[0] in used)
            return Project(self.prune(operator.child, names_of(e for _, e in items)), items)
        if isinstance(operator, Join):
            return self.join(operator, used)
        if isinstance(operator, UnionAll):
            return self.union_all(operator, used)
        if isinstance(operator, Aggregate):
            return self.aggregate(operator)
        raise InternalError(f"The pruning of columns does not know the operator {type(operator).__name__}.")

    def join(self, operator: Join, used: set[str]) -> Operator:
        names = tuple(entry for entry in operator.names if entry[0] in used)
        children = tuple(
            self.prune(child, {inner for _, index, inner in names if index == position})
            for position, child in enumerate(operator.children)
        )
        return Join(children, names)

    def union_all(self, operator: UnionAll, used: set[str]) -> Operator:
        positions = [index for index, name in enumerate(operator.columns) if name in used]
        children = []
        for child in operator.children:
            kept = {child.columns[index] for index in positions}
            pruned = self.prune(child, kept)
            children.append(exactly(pruned, tuple(child.columns[index] for index in positions)))
        return UnionAll(tuple(children))

    def aggregate(self, operator: Aggregate) -> Aggregate:
        expressions = [value for _, value in operator.keys] + [call.expression for _, call in operator.calls]
        return replace(operator, child=self.prune(operator.child, names_of(expressions)))


def names_of(expressions: Iterable[exp.Expr]) -> set[str]:
    return {name for value in expressions for name in column_names(value)}


def exactly(operator: Operator, columns: tuple[str, ...]) -> Operator:
    """`operator` with these output columns in this order."""
    if operator.columns == columns:
        return operator
    return Project(operator, tuple((name, column(name)) for name in columns))


def prune(operator: Operator) -> Operator:
    """The same rows, read from no more columns than needed."""
    return _Pruner().prune(operator, set(operator.columns))

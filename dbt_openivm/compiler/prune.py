"""Keep only the columns that are used, so that captures and logs hold no others.

Aggregates keep all their keys and calls; so an aggregate that two parents share (a CTE used twice) stays one object.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dbt_openivm.compiler.algebra import Aggregate, Constant, Filter, Join, Operator, Project, Scan, UnionAll
from dbt_openivm.compiler.sql import column_names
from dbt_openivm.errors import InternalError


@dataclass
class _Pruner:
    shared: dict[int, Aggregate] = field(default_factory=dict)

    def prune(self, operator: Operator, used: set[str]) -> Operator:
        if isinstance(operator, Scan):
            return Scan(operator.relation, tuple(pair for pair in operator.names if pair[0] in used))
        if isinstance(operator, Constant):
            return operator
        if isinstance(operator, Filter):
            child = self.prune(operator.child, used | column_names(operator.predicate))
            return Filter(child, operator.predicate)
        if isinstance(operator, Project):
            # an internal view needs a column, even where only its rows are counted
            items = tuple(item for item in operator.items if item[0] in used) or operator.items[:1]
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
        if id(operator) not in self.shared:
            expressions = [value for _, value in operator.keys] + [call.expression for _, call in operator.calls]
            child = self.prune(operator.child, names_of(expressions))
            self.shared[id(operator)] = replace(operator, child=child)
        return self.shared[id(operator)]


def names_of(expressions: object) -> set[str]:
    return set().union(*(column_names(value) for value in expressions))  # type: ignore[attr-defined]


def exactly(operator: Operator, columns: tuple[str, ...]) -> Operator:
    """`operator` with these output columns in this order."""
    if operator.columns == columns:
        return operator
    from dbt_openivm.compiler.algebra import column

    return Project(operator, tuple((name, column(name)) for name in columns))


def prune(operator: Operator) -> Operator:
    """The same rows, read from no more columns than needed."""
    return _Pruner().prune(operator, set(operator.columns))

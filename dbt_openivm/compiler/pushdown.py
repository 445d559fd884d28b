"""Push conditions below outer and semi joins, as far as they read the side whose rows stay.

DuckDB does so when it runs the whole query. A delta is computed piece by piece: what a condition above the join throws
away would have been joined for nothing, and kept in temporary tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_openivm.compiler.algebra import (
    Filter,
    Join,
    Operator,
    OuterJoin,
    Project,
    SemiJoin,
    Unnest,
    column,
    shared_operators,
)
from dbt_openivm.compiler.sql import column_names, conjuncts, substitute

Conditions = Sequence[exp.Expr]


def push_down(operator: Operator) -> Operator:
    """The same rows, with conditions as far down as outer and semi joins let them."""
    return _Pusher(shared_operators(operator)).visit(operator)


@dataclass
class _Pusher:
    """`shared` holds the ids of operators that several others read, which no condition of one may change; `done` what
    became of operators."""

    shared: frozenset[int]
    done: dict[int, Operator] = field(default_factory=dict)

    def visit(self, operator: Operator) -> Operator:
        if id(operator) not in self.done:
            self.done[id(operator)] = self.visited(operator)
        return self.done[id(operator)]

    def visited(self, operator: Operator) -> Operator:
        if isinstance(operator, Filter) and self.takes(operator.child):
            return self.push(operator.child, conjuncts(operator.predicate))
        return operator.with_inputs(tuple(map(self.visit, operator.inputs)))

    def takes(self, operator: Operator) -> bool:
        """Whether a condition above the operator may go down below an outer or semi join."""
        if id(operator) in self.shared:
            return False
        if isinstance(operator, Filter | Project | Unnest | Join):
            return any(map(self.takes, operator.inputs))
        return isinstance(operator, SemiJoin) or (
            isinstance(operator, OuterJoin) and operator.left_kept != operator.right_kept
        )

    def push(self, operator: Operator, conditions: Conditions) -> Operator:
        """`operator` with conditions over its columns applied, or below it where it takes them."""
        if not conditions or not self.takes(operator):
            return filtered(self.visit(operator), conditions)
        if isinstance(operator, Filter):
            return self.push(operator.child, [*conjuncts(operator.predicate), *conditions])
        if isinstance(operator, Project):
            items = dict(operator.items)
            return replace(operator, child=self.push(operator.child, [substitute(part, items) for part in conditions]))
        if isinstance(operator, SemiJoin):
            return replace(operator, left=self.push(operator.left, conditions), right=self.visit(operator.right))
        if isinstance(operator, Unnest):
            return self.divided(operator, {name: (0, name) for name in operator.child.columns}, conditions, (0,))
        assert isinstance(operator, Join | OuterJoin)
        sides = {out: (index, inner) for out, index, inner in operator.names}
        kept = (0 if operator.left_kept else 1,) if isinstance(operator, OuterJoin) else range(len(operator.inputs))
        return self.divided(operator, sides, conditions, kept)

    def divided(
        self, operator: Operator, sides: dict[str, tuple[int, str]], conditions: Conditions, kept: Sequence[int]
    ) -> Operator:
        """Hand each condition to the one input that it reads, of those in `kept`; the others stay above."""
        inputs = operator.inputs
        below: dict[int, list[exp.Expr]] = {}
        above: list[exp.Expr] = []
        for part in conditions:
            read = {sides[name][0] if name in sides else -1 for name in column_names(part)}
            [index] = read if len(read) == 1 else [-1]
            wanted = index in kept and (isinstance(operator, OuterJoin) or self.takes(inputs[index]))
            if wanted:
                bound = substitute(part, {name: column(inner) for name, (_, inner) in sides.items()})
                below.setdefault(index, []).append(bound)
            else:
                above.append(part)
        children = tuple(self.push(child, below.get(index, [])) for index, child in enumerate(inputs))
        return filtered(operator.with_inputs(children), above)


def filtered(operator: Operator, conditions: Conditions) -> Operator:
    for part in conditions:
        operator = Filter(operator, part)
    return operator

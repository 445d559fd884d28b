"""Subqueries in the ON of an outer, semi, anti or ASOF join.

A condition that reads one side only is a filter of that side where its unmatched rows go, else a column of it. One that
reads both sides is decided for the pairs that meet by the other conditions: the distinct values that it reads of pairs
for which it is true are put beside one side, and the join asks the other side to have the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_openivm.compiler.algebra import (
    Aggregate,
    Filter,
    Join,
    Operator,
    OuterJoin,
    SemiJoin,
    UnionAll,
    column,
    exactly,
)
from dbt_openivm.compiler.lower.expressions import Binder
from dbt_openivm.compiler.lower.outer import references_below
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.lower.subqueries import (
    LowersQueries,
    Subqueries,
    apply_conditions,
    is_subquery,
    quantifier,
    query_of,
)
from dbt_openivm.compiler.lower.unnest import exact_columns
from dbt_openivm.compiler.sql import column_names, conjunction, null_safe_equal

LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class Matches:
    """The pairs for which conditions that read both sides are true.

    Attributes:
        operator: the distinct values that these conditions read.
        columns: for each side, the column of `operator` -> what it holds of that side.
    """

    operator: Operator
    columns: tuple[Mapping[str, exp.Expr], ...]


@dataclass
class Sides:
    """The two sides of a join, and what must hold of their pairs.

    Attributes:
        scope: number and names of the FROM clause that both sides belong to.
        operators: the sides; no column has a namesake on the other side.
        conditions: over the columns of both.
        kept: whether unmatched rows of each side stay.
        shown: the columns of each side without those that conditions added.
    """

    lowers: LowersQueries
    scope: Scope
    operators: list[Operator]
    conditions: list[exp.Expr]
    kept: tuple[bool, bool]
    matches: Matches | None = None
    shown: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.shown = tuple(name for operator in self.operators for name in operator.columns)

    def meet(self, parts: Sequence[exp.Expr]) -> None:
        """Add conditions that have subqueries in them, unbound."""
        both: list[exp.Expr] = []
        for part in parts:
            read = self.reads(part)
            sides = [side for side in (LEFT, RIGHT) if read & set(self.operators[side].columns)]
            if len(sides) > 1:
                both.append(part)
                continue
            # what reads neither side goes where it need not be kept for every row
            side = sides[0] if sides else next((s for s in (RIGHT, LEFT) if not self.kept[s]), LEFT)
            self.on_side(part, side)
        if both:
            self.matches = self.matching(both)

    def reads(self, part: exp.Expr) -> set[str]:
        """The columns of both sides that a condition reads, those read inside its subqueries included."""
        scope = replace(self.scope)
        reader = Reader(self.lowers, scope)
        scope.subqueries = reader
        bound = Binder(scope, self.lowers.facts).bind(part)
        return reader.found | column_names(bound)

    def on_side(self, part: exp.Expr, side: int) -> None:
        scope = replace(self.scope, operator=self.operators[side])
        binder = subqueries_over(scope, self.lowers)
        if self.kept[side]:
            self.conditions.append(binder.bind(part))
            self.operators[side] = scope.operator
        else:
            columns = scope.operator.columns
            apply_conditions([part], binder)
            self.operators[side] = exactly(scope.operator, columns)

    def matching(self, parts: Sequence[exp.Expr]) -> Matches:
        read = set().union(*map(self.reads, parts))
        pairs: Operator = Join(tuple(self.operators), self.names(self.operators))
        for condition in self.conditions:
            pairs = Filter(pairs, condition)
        scope = replace(self.scope, operator=pairs)
        apply_conditions(parts, subqueries_over(scope, self.lowers))
        number = self.lowers.number()
        columns: list[dict[str, exp.Expr]] = []
        for side, operator in enumerate(self.operators):
            names = {name: f"openivm_match_{number}_{side}_{i}" for i, name in enumerate(operator.columns)}
            hidden = {name: inner for name, inner in names.items() if name in read}
            columns.append(
                {**{inner: column(name) for name, inner in hidden.items()}, **exact_columns(operator, hidden)}
            )
        keys = tuple((inner, value) for side in columns for inner, value in side.items())
        return Matches(Aggregate(scope.operator, keys, (), distinct=True), tuple(columns))

    @staticmethod
    def names(operators: Sequence[Operator]) -> tuple[tuple[str, int, str], ...]:
        return tuple((name, index, name) for index, operator in enumerate(operators) for name in operator.columns)

    def beside(self, side: int) -> tuple[list[Operator], exp.Expr]:
        """The sides with the matches beside the rows of one of them, and the whole condition.

        No two rows of the result that came of one row fulfil the condition with the same row of the other side.
        """
        operators, conditions = list(self.operators), list(self.conditions)
        if self.matches is not None:
            inputs = (operators[side], self.matches.operator)
            operators[side] = Filter(Join(inputs, self.names(inputs)), agreeing(self.matches.columns[side]))
            conditions.append(agreeing(self.matches.columns[1 - side]))
        return operators, conjunction(conditions) or exp.Boolean(this=True)

    def semi_join(self, anti: bool) -> Operator:
        """The rows of the left that have a partner or, anti, have none."""
        left = set(self.operators[LEFT].columns)
        return exactly(self.halved(RIGHT, anti), tuple(name for name in self.shown if name in left))

    def halved(self, other: int, anti: bool) -> Operator:
        operators, on = self.beside(other)
        names = tuple((name, name) for name in operators[other].columns)
        return SemiJoin(operators[1 - other], operators[other], on, names, anti)

    def outer_join(self) -> Operator:
        """The pairs, and the unmatched rows of the sides that are kept."""
        if self.matches is not None and all(self.kept):
            # beside either side the matches would show an unmatched row of it several times
            return UnionAll((self.paired((True, False)), self.unmatched_right()))
        return self.paired(self.kept)

    def paired(self, kept: tuple[bool, bool]) -> Operator:
        operators, on = self.beside(LEFT if kept[RIGHT] else RIGHT)
        return exactly(OuterJoin(operators[LEFT], operators[RIGHT], on, self.names(operators), *kept), self.shown)

    def unmatched_right(self) -> Operator:
        nothing = Filter(self.operators[LEFT], exp.Boolean(this=False))
        sides = (nothing, self.halved(LEFT, anti=True))
        names = self.names(sides)
        return exactly(OuterJoin(*sides, exp.Boolean(this=True), names, False, True), self.shown)


def subqueries_over(scope: Scope, lowers: LowersQueries) -> Binder:
    """What binds expressions over a scope, to whose rows it joins their subqueries."""
    scope.subqueries = Subqueries(lowers, scope)
    return Binder(scope, lowers.facts)


def agreeing(columns: Mapping[str, exp.Expr]) -> exp.Expr:
    """A row has the values of a match."""
    same = conjunction([null_safe_equal(value.copy(), column(hidden)) for hidden, value in columns.items()])
    assert same is not None
    return same


@dataclass
class Reader:
    """Looks at the subqueries of an expression for the columns of a scope that they read."""

    lowers: LowersQueries
    scope: Scope
    found: set[str] = field(default_factory=set)

    def value(self, node: exp.Expr, bind: Callable[[exp.Expr], exp.Expr]) -> exp.Expr | None:
        if not is_subquery(node):
            return None
        compared = quantifier(node)
        if compared is not None:
            self.found |= column_names(bind(compared.value))
        self.found |= references_below(self.lowers.inner(query_of(node), self.scope), self.scope.number)
        return exp.Null()

"""Lower a FROM clause: relations, derived tables, and every spelling of inner, cross, theta, outer, semi and anti
joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from dbt_openivm.compiler.algebra import (
    Filter,
    Join,
    Operator,
    Project,
    Unnest,
    column,
    exactly,
    unique_name,
)
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.asof import asof
from dbt_openivm.compiler.lower.elements import Series, items_of, left_items, series
from dbt_openivm.compiler.lower.expressions import Binder
from dbt_openivm.compiler.lower.on import Sides, subqueries_over
from dbt_openivm.compiler.lower.outer import references_below
from dbt_openivm.compiler.lower.outer_calls import refer
from dbt_openivm.compiler.lower.scope import Binding, Merged, Scope
from dbt_openivm.compiler.lower.subqueries import apply_conditions, has_subquery
from dbt_openivm.compiler.lower.unnest import Unnester
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import bare, conjunction, conjuncts
from dbt_openivm.errors import UnsupportedError


class LowersSources(Protocol):
    """What lowers the items of a FROM clause."""

    @property
    def facts(self) -> CompileFacts: ...

    def source(self, item: exp.Expr, around: Scope | None) -> tuple[Operator, str, tuple[str, ...], tuple[str, ...]]:
        """(operator, alias, names of its columns as written, qualifiers) of an item that may refer to `around`."""
        ...

    def inner(self, node: exp.Expr, scope: Scope) -> Operator:
        """The operator of a query that may refer to the columns of `scope`."""
        ...

    def number(self) -> int: ...


KINDS = ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI")
HALVES = ("SEMI", "ANTI")


@dataclass
class FromClause:
    """Collects the inputs of one n-ary join from left to right.

    An outer, semi or anti join closes what was collected on its left: the result is the first input of a new join.
    Attributes:
        outer: the scope around the query.
        number: of the clause's scope.
        conditions: of inner joins, over the inputs.
        deferred: such conditions with subqueries in them, not bound yet. Up to the next join that is no inner one they
            are as good as in WHERE.
        full: what a full join merges: (name of the value, left column, right column).
    """

    lowers: LowersSources
    outer: Scope | None
    number: int
    inputs: list[Operator] = field(default_factory=list)
    names: list[tuple[str, int, str]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    bindings: list[Binding] = field(default_factory=list)
    merged: dict[str, Merged] = field(default_factory=dict)
    conditions: list[exp.Expr] = field(default_factory=list)
    deferred: list[exp.Expr] = field(default_factory=list)
    full: list[tuple[str, str, str]] = field(default_factory=list)

    def add_list(self, first: exp.Expr, joins: Sequence[exp.Join]) -> None:
        """Add ``first JOIN .. JOIN .., second JOIN ..``: a comma binds less than any join."""
        groups: list[tuple[exp.Expr, list[exp.Join]]] = [(first, [])]
        for join in joins:
            if is_comma(join):
                groups.append((join.this, []))
            else:
                groups[-1][1].append(join)
        for item, joined in groups:
            outer = any(kind_of(join)[0] or kind_of(join)[1] in HALVES or join.method == "ASOF" for join in joined)
            if len(groups) == 1 or not outer or self.follows(item, joined):
                self.add(item)
                for join in joined:
                    self.join(join)
            else:
                self.add_beside(item, joined)

    def add_beside(self, item: exp.Expr, joined: Sequence[exp.Join]) -> None:
        """Add an item of a list that has outer joins of its own."""
        part = self.part(item, joined)
        scope = part.settled()
        if not references_below(scope.operator, self.number):
            self.absorb(scope)
        elif all(kind_of(join)[0] in ("", "LEFT") for join in joined):
            # a row of the earlier items with its left join is a left join of all their rows
            self.add(item)
            for join in joined:
                self.join(join)
        else:
            unnester = Unnester(self.number, self.finish().operator, self.lowers.number())
            self.conditions = []
            self.close(unnester.beside(scope.operator))
            self.bindings = [*self.bindings, *scope.bindings]
            self.merged = {**scope.merged, **self.merged}

    def follows(self, item: exp.Expr, joined: Sequence[exp.Join]) -> bool:
        """Whether an item stands beside the rows so far, with joins that leave all of these as they are."""
        found = series(item)
        lateral = found is not None and not found.is_constant
        return lateral and all(kind_of(join)[0] in ("", "LEFT") for join in joined)

    def part(self, item: exp.Expr, joins: Sequence[exp.Join] = ()) -> FromClause:
        """A FROM clause of its own, whose columns have no namesake in this one, and which may refer to this one."""
        inner = FromClause(self.lowers, self.around(), self.lowers.number(), taken=self.taken)
        inner.add(item)
        for join in joins:
            inner.join(join)
        return inner

    def around(self) -> Scope | None:
        """What an item that is added now may refer to."""
        return self.scope() if self.inputs else self.outer

    def absorb(self, other: Scope) -> None:
        """Take another clause's result as an input."""
        operator = other.operator
        position = len(self.inputs)
        self.inputs.append(operator)
        self.names += [(name, position, name) for name in operator.columns]
        self.bindings += other.bindings
        self.merged = {**other.merged, **self.merged}

    def add(self, item: exp.Expr) -> None:
        """Add one relation, then the joins written inside it."""
        if is_parenthesised_join(item):
            if item.args.get("alias"):
                raise UnsupportedError(f"an alias on a parenthesised join{place(item)}")
            self.add(item.this)
        else:
            self.add_source(item)
        for join in item.args.get("joins") or []:
            self.join(join)

    def add_source(self, item: exp.Expr) -> None:
        found = series(item)
        if found is not None and not found.is_constant and self.inputs:
            self.add_series(found)
            return
        operator, alias, written, qualifiers = self.lowers.source(item, self.around())
        function = "" if found is None else found.function
        if references_below(operator, self.number):
            columns = tuple(zip(written, operator.columns, strict=True))
            self.add_lateral(operator, Binding(alias, columns, qualifiers, function))
            return
        position = len(self.inputs)
        flats = [unique_name(inner, self.taken) for inner in operator.columns]
        self.names += [(flat, position, inner) for flat, inner in zip(flats, operator.columns, strict=True)]
        self.inputs.append(operator)
        self.bindings.append(Binding(alias, tuple(zip(written, flats, strict=True)), qualifiers, function))

    def add_series(self, found: Series, on: exp.Expr | None = None) -> None:
        """Put the elements of a list beside each row of what was collected.

        Args:
            on: the condition of a LEFT JOIN.
        """
        scope = self.finish()
        value = Binder(scope, self.lowers.facts).bind(found.value)
        names = tuple(unique_name(name, self.taken) for name in found.names)
        self.bindings = [
            *self.bindings,
            Binding(found.alias, tuple(zip(found.names, names, strict=True)), (), found.function),
        ]
        if on is None:
            items = items_of(found, value, names)
        else:
            condition = Binder(Scope(scope.operator, self.bindings, self.merged), self.lowers.facts).bind(on)
            items = left_items(found, value, names, condition)
        self.conditions = []
        self.close(Unnest(scope.operator, items))

    def add_lateral(self, operator: Operator, binding: Binding) -> None:
        """Join every row of what was collected with the rows that `operator` has for it."""
        names = {name: unique_name(name, self.taken) for name in operator.columns}
        renamed = Project(operator, tuple((flat, column(name)) for name, flat in names.items()))
        unnester = Unnester(self.number, self.finish().operator, self.lowers.number())
        self.conditions = []
        self.close(unnester.beside(renamed))
        columns = tuple((written, names[name]) for written, name in binding.columns)
        self.bindings = [*self.bindings, replace(binding, columns=columns)]

    def join(self, join: exp.Join) -> None:
        refuse_join(join)
        side, kind = kind_of(join)
        left = len(self.bindings)
        found = series(join.this)
        if side == "LEFT" and found is not None and not found.is_constant and join.args.get("on") is not None:
            self.add_series(found, join.args["on"])
            return
        if not side and kind not in HALVES and join.method != "ASOF":
            before = self.merged
            self.merged = {}
            self.add(join.this)
            left_scope = Scope(self.operator(), self.bindings[:left], before)
            right_scope = Scope(self.operator(), self.bindings[left:], self.merged)
            self.conditions += self.on(join, left_scope, right_scope, side)
            self.deferred += self.with_subqueries(join)
            return
        part = self.part(join.this)
        left_scope, right_scope = self.settled(), part.settled()
        right, belongs = self.uncorrelated(left_scope.operator, right_scope.operator)
        operators = [left_scope.operator, right]
        self.inputs, self.names, self.conditions = operators, list(Sides.names(operators)), []
        self.bindings = [*left_scope.bindings, *right_scope.bindings]
        conditions = [*belongs, *self.on(join, left_scope, right_scope, side)]
        kept = side in ("LEFT", "FULL") or kind == "ANTI", side in ("RIGHT", "FULL")
        sides = Sides(self.lowers, self.scope(), list(operators), conditions, kept)
        sides.meet(self.with_subqueries(join))
        if kind in HALVES:
            self.close(sides.semi_join(anti=kind == "ANTI"))
            self.bindings, self.merged = left_scope.bindings, left_scope.merged
        elif join.method == "ASOF":
            if belongs:
                raise UnsupportedError(f"an ASOF JOIN with an earlier item of FROM on its right{place(join)}")
            self.close(self.coalesced(self.asof(join, sides, side)))
        else:
            self.close(self.coalesced(sides.outer_join()))

    def asof(self, join: exp.Join, sides: Sides, side: str) -> Operator:
        if sides.matches is not None:
            raise UnsupportedError(f"a subquery over both sides of an ASOF JOIN{place(join)}")
        pair = (sides.operators[0], sides.operators[1])
        names = sides.names(pair)
        return exactly(asof(join, pair, names, sides.conditions, side, self.lowers.facts, self.outer), sides.shown)

    def settled(self) -> Scope:
        """The scope over the joined rows for which all conditions so far are true, those with subqueries too."""
        scope = self.finish()
        if self.deferred:
            columns = scope.operator.columns
            apply_conditions(self.deferred, subqueries_over(scope, self.lowers))
            scope.operator = exactly(scope.operator, columns)
            self.deferred = []
        return scope

    def with_subqueries(self, join: exp.Join) -> list[exp.Expr]:
        """The parts of ON that have subqueries in them."""
        on = self.condition(join)
        return [] if on is None else [part for part in conjuncts(on) if has_subquery(part)]

    def condition(self, join: exp.Join) -> exp.Expr | None:
        """ON, with references for aggregate calls: these can only be of a query around."""
        on: exp.Expr | None = join.args.get("on")
        if on is None or self.outer is None:
            return on
        whole = exp.Paren(this=on.copy())
        refer(whole, self.scope(), self.lowers.facts)
        return bare(whole)

    def uncorrelated(self, left: Operator, right: Operator) -> tuple[Operator, list[exp.Expr]]:
        """The right side of an outer join without references to the left, and which rows then belong together."""
        names = sorted(references_below(right, self.number))
        if not names:
            return right, []
        found = Unnester(self.number, left, self.lowers.number()).unnest(right, names, keep_bare=False)
        return found.operator, found.conditions(column)

    def close(self, operator: Operator) -> None:
        """Make `operator` the one input."""
        self.inputs, self.names = [operator], [(name, 0, name) for name in operator.columns]

    def coalesced(self, join: Operator) -> Operator:
        """The join with the values of the names that a full join merged."""
        if not self.full:
            return join
        added = [
            (value, exp.Coalesce(this=column(left), expressions=[column(right)])) for value, left, right in self.full
        ]
        self.full = []
        return Project(join, (*((name, column(name)) for name in join.columns), *added))

    def on(self, join: exp.Join, left: Scope, right: Scope, side: str) -> list[exp.Expr]:
        """The conditions of a join without subqueries in them; what it merges is merged from here on."""
        using = [part.name for part in join.args.get("using") or []]
        if join.method == "NATURAL":
            using = self.common_names(len(left.bindings))
        self.merged = {**right.merged, **left.merged}
        conditions = [self.merge(name, left, right, side) for name in using]
        if join.method == "ASOF" and using:
            # of the last name, the left value comes at or after the right one
            conditions[-1] = exp.GTE(this=conditions[-1].this, expression=conditions[-1].expression)
        on = self.condition(join)
        if on is not None and has_subquery(on):
            on = conjunction([part for part in conjuncts(on) if not has_subquery(part)])
        if on is not None:
            conditions.append(Binder(self.scope(), self.lowers.facts).bind(on))
        return conditions

    def common_names(self, left: int) -> list[str]:
        before = {name.lower() for binding in self.bindings[:left] for name, _ in binding.columns}
        after = [name for binding in self.bindings[left:] for name, _ in binding.columns]
        common = [name for name in after if name.lower() in before]
        if not common:
            raise UnsupportedError("a NATURAL JOIN without common columns")
        return common

    def merge(self, name: str, left_scope: Scope, right_scope: Scope, side: str) -> exp.Expr:
        """USING (name): equal values, and one column stands for both."""
        left, right = left_scope.unqualified(name), right_scope.unqualified(name)
        if left is None or right is None:
            raise UnsupportedError(f"USING ({name}) where the column is not found once on either side")
        value = right if side == "RIGHT" else left
        if side == "FULL":
            value = unique_name(f"{name}_merged", self.taken)
            self.full.append((value, left, right))
        parts = [
            scope.merged.get(name.lower(), Merged((flat,), flat))
            for scope, flat in ((left_scope, left), (right_scope, right))
        ]
        self.merged[name.lower()] = Merged(parts[0].parts + parts[1].parts, value)
        return exp.EQ(this=column(left), expression=column(right))

    def operator(self) -> Operator:
        """The join of all inputs, without its conditions."""
        if len(self.inputs) == 1:
            if all(flat == inner for flat, _, inner in self.names):
                return self.inputs[0]
            return Project(self.inputs[0], tuple((flat, column(inner)) for flat, _, inner in self.names))
        return Join(tuple(self.inputs), tuple(self.names))

    def scope(self) -> Scope:
        return Scope(self.operator(), self.bindings, self.merged, self.number, self.outer)

    def finish(self) -> Scope:
        """The scope over the joined and filtered rows."""
        scope = self.scope()
        for condition in self.conditions:
            scope.operator = Filter(scope.operator, condition)
        return scope


def is_parenthesised_join(item: exp.Expr) -> bool:
    """Whether `item` is a relation or a join in parentheses, any number of them, and no query.

    The join may start with a query: ``((SELECT ..) AS q JOIN u ON ..)`` is how DuckDB writes views.
    """
    inner = item
    while isinstance(inner, exp.Subquery | exp.Paren):
        inner = inner.this
        named = isinstance(inner, exp.Subquery) and (inner.args.get("alias") or inner.args.get("joins"))
        if named or isinstance(inner, exp.Table):
            return True
    return False


def kind_of(join: exp.Join) -> tuple[str, str]:
    """(side, kind) in capitals."""
    return str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()


def is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(key) for key in ("side", "kind", "method", "on", "using"))


def refuse_join(join: exp.Join) -> None:
    side, kind = kind_of(join)
    if kind not in KINDS or join.method not in ("", "NATURAL", "ASOF"):
        words = " ".join(word for word in (join.method, side, kind) if word)
        why = ", whose pairs depend on how the rows are stored," if join.method == "POSITIONAL" else ""
        raise UnsupportedError(f"{words} JOIN{place(join)}{why}")

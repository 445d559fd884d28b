"""Lower one SELECT block: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from sqlglot import exp

from dbt_openivm.compiler.aggregates import GROUPING, contains_call, describe, is_call
from dbt_openivm.compiler.algebra import Aggregate, Call, Constant, Filter, Operator, Project, column, unique_name
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.distinct_calls import aggregate
from dbt_openivm.compiler.lower.elements import Spreads, has_spread, no_spreads
from dbt_openivm.compiler.lower.ending import Ending, Output, first_of_query, is_distinct
from dbt_openivm.compiler.lower.expressions import Alias, Binder, expand_macro, rebuild, refuse, struct_field
from dbt_openivm.compiler.lower.from_clause import FromClause, LowersSources
from dbt_openivm.compiler.lower.grouping import Grouping, grouping_sets, grouping_value, over_sets
from dbt_openivm.compiler.lower.limits import limit_of
from dbt_openivm.compiler.lower.meaning import Meaning
from dbt_openivm.compiler.lower.outer import outer_column, references_below, rescoped
from dbt_openivm.compiler.lower.outer_calls import Ahead, outermost_subqueries, with_outer_calls
from dbt_openivm.compiler.lower.rows import Flat, flat, positional, with_local_names
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.lower.stars import each_column, expand_items, reads_columns
from dbt_openivm.compiler.lower.subqueries import (
    Subqueries,
    apply_conditions,
    has_subquery,
    is_subquery,
    quantifier,
    query_of,
)
from dbt_openivm.compiler.lower.windows import Windows, settle_windows
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import bare, column_names
from dbt_openivm.errors import UnsupportedError

Item = tuple[str, exp.Expr]
"""A select item: its name, and its unbound expression without alias."""


class LowersQueries(LowersSources, Protocol):
    """What lowers the queries and sources inside a SELECT block."""

    @property
    def outer(self) -> Scope | None: ...

    @property
    def idle(self) -> list[Operator]:
        """Operators of subqueries that are no part of the tree: they repeat others, or nothing depends on them."""
        ...

    def inner(self, node: exp.Expr, scope: Scope) -> Operator: ...


def lower_select(node: exp.Select, lowers: LowersQueries) -> tuple[Operator, tuple[str, ...]]:
    """Lower one SELECT block to (operator, names as written)."""
    refuse_clauses(node)
    settle_windows(node)
    facts = lowers.facts
    scope, conditions = from_scope(node, lowers)
    node = with_outer_calls(node, scope, facts)
    ahead = Ahead(lowers)
    scope.subqueries = Subqueries(ahead, scope)
    select = SelectList(facts, scope, expand_items(node.expressions, scope, facts), lowers, ahead)
    where = node.args.get("where")
    if where is not None:
        conditions = [*conditions, each_column(where.this, scope, facts)]
    apply_conditions(conditions, Binder(scope, facts, select.alias))
    scope.aggregates = select.called
    select.spread(node)
    ending = Ending.of(node, select.outputs, lowers)
    select.hidden = ending.hidden
    operator = select.aggregated(node) if select.is_aggregated(node) else select.plain()
    operator = ending.apply(operator, node)
    if ending.limit is None and ending.on is None and limit_of(node) is None:
        lowers.idle.extend(ahead.inner(query, scope) for query in ordered_by(node))
    if is_distinct(node):
        operator = first_of_query(distinct(operator), select.outputs, node, lowers, select.shown)
    return operator, tuple(name for name, _ in select.items)


def ordered_by(node: exp.Select) -> Iterator[exp.Expr]:
    """The subqueries in ORDER BY."""
    order = node.args.get("order")
    for item in order.expressions if order is not None else ():
        yield from map(query_of, outermost_subqueries(item.this))


def refuse_clauses(node: exp.Select) -> None:
    for key, name in (("laterals", "LATERAL"), ("connect", "CONNECT BY")):
        if node.args.get(key):
            value = node.args[key]
            raise UnsupportedError(f"{name}{place(value[0] if isinstance(value, list) else value)}")


def from_scope(node: exp.Select, lowers: LowersQueries) -> tuple[Scope, list[exp.Expr]]:
    """The scope of FROM, and conditions that are still to be applied."""
    clause = node.args.get("from_") or node.args.get("from")
    if clause is None:
        return Scope(Constant(((),), ()), [], number=lowers.number(), outer=lowers.outer), []
    collected = FromClause(lowers, lowers.outer, lowers.number())
    collected.add_list(clause.this, node.args.get("joins") or [])
    return collected.finish(), collected.deferred


@dataclass(frozen=True)
class Pending:
    """A subquery over the groups of an aggregate: its value's name, its operator, and what it is compared with."""

    name: str
    node: exp.Expr
    inner: Operator
    left: exp.Expr | None


@dataclass
class SelectList:
    """The select list of one block, and how its expressions bind.

    Attributes:
        written: keys with subqueries in them, and those that ordinals have for themselves, unbound.
    """

    facts: CompileFacts
    scope: Scope
    items: list[Item]
    lowers: LowersQueries
    ahead: Ahead
    keys: list[tuple[str, exp.Expr]] = field(default_factory=list)
    calls: list[tuple[str, Call]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    sets: list[tuple[str, ...]] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    written: list[tuple[str, exp.Expr]] = field(default_factory=list)
    spreads: Spreads = field(default_factory=no_spreads)
    lifted: set[str] = field(default_factory=set)
    hidden: list[Item] = field(default_factory=list)
    windows: Windows = field(default_factory=Windows)

    @cached_property
    def outputs(self) -> list[Output]:
        names: set[str] = set()
        return [(name, unique_name(name, names), value) for name, value in self.items]

    @property
    def columns(self) -> list[Item]:
        """The columns to compute: those of the output, and hidden ones."""
        return [*((out, value) for (_, out, _), (_, value) in zip(self.outputs, self.items, strict=True)), *self.hidden]

    def alias(self, name: str) -> exp.Expr | None:
        """The unbound expression of the select item called `name`, of several the last, as DuckDB has it."""
        return self.last_alias(self.items, name)

    @staticmethod
    def last_alias(items: Sequence[Item], name: str) -> exp.Expr | None:
        return next((value for known, value in reversed(items) if known.lower() == name.lower()), None)

    def bind(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, Flat):
            return column(node.this.name)
        return Binder(self.scope, self.facts, self.alias_of(node), self.windows).bind(node)

    def alias_of(self, node: exp.Expr) -> Alias:
        """Alias look-up for one item: among those before it. For what is no item: among all."""
        position = next((index for index, (_, value) in enumerate(self.items) if value is node), len(self.items))
        return lambda name: self.last_alias(self.items[:position], name)

    def shown(self, value: exp.Expr) -> exp.Expr:
        """An expression behind SELECT DISTINCT: what names a relation of FROM and says the same as an item is the item.

        Names alone mean items already. What is no item is left, and not found in the output.
        """
        known = {bound: out for out, bound in self.shown_items()}

        def put(node: exp.Expr) -> exp.Expr:
            if not any(part.args.get("table") for part in node.find_all(exp.Column)):
                return node
            out = known.get(Binder(self.scope, self.facts).bind(node).unnest())
            return rebuild(node, put) if out is None else flat(out)

        return value if has_subquery(value) else put(value)

    def shown_items(self) -> Iterator[Item]:
        """The columns of the output with their bound expressions, where these say all."""
        for _, out, value in self.outputs:
            if value is not None and not (has_subquery(value) or value.find(exp.Window, Flat)):
                yield out, self.bind(value).unnest()
            elif isinstance(value, Flat):
                yield out, self.bind(value)

    def plain(self) -> Operator:
        self.windows = Windows()
        items = tuple((name, self.bind(value)) for name, value in self.columns)
        rows = self.spreads.over(self.windows.over(self.scope.operator))
        return Project(rows, items)  # after the items, whose subqueries were joined to it

    def is_aggregated(self, node: exp.Select) -> bool:
        having = node.args.get("having")
        order = node.args.get("order")
        values = [value for _, value in (*self.items, *self.hidden)] + ([having.this] if having else [])
        values += [item.this for item in order.expressions] if order is not None else []
        if node.args.get("group") or having or any(self.has_call(value) for value in values):
            return True
        for value in values:
            self.ahead.look(value, self.scope)
        return bool(self.calls)

    def has_call(self, node: exp.Expr) -> bool:
        if contains_call(node, self.facts):
            return True
        bodies = [expand_macro(part, self.facts) for part in node.walk()]
        return any(self.has_call(body) for body in bodies if body is not None)

    def aggregated(self, node: exp.Select) -> Operator:
        """Aggregate, then HAVING, then the select list over keys and calls."""
        group = node.args.get("group")
        self.sets = self.key_sets(group)
        having = node.args.get("having")
        items = tuple((name, self.post(value)) for name, value in self.columns)
        if group is not None and group.args.get("all") and not (self.keys or self.calls or having):
            # GROUP BY ALL leaves out constants; where nothing is left, nothing is grouped
            return self.plain()
        predicate = None if having is None else self.post(each_column(having.this, self.scope, self.facts))
        operator = self.with_values(self.groups())
        if predicate is not None:
            operator = Filter(operator, predicate)
        return Project(self.spreads.over(self.windows.over(operator)), items)

    def groups(self) -> Operator:
        """The groups with the keys and calls that are known so far."""
        grouping = Grouping(self.scope.operator, tuple(self.keys), tuple(self.calls))
        if len(self.sets) > 1:
            grouping = over_sets(grouping, self.sets)
        return aggregate(grouping, scalar=self.sets == [()])

    def spread(self, node: exp.Select) -> None:
        """Take what makes several rows of one out of the select list; see `elements`."""
        if not any(has_spread(value) for _, value in self.items):
            return
        if self.is_aggregated(node):
            group = node.args.get("group")
            self.spread_keys(group)
            self.sets = self.key_sets(group)
            self.spreads = Spreads(self.post, self.groups, self.facts, self.scope.outer)
        else:
            self.spreads = Spreads(self.bind, lambda: self.scope.operator, self.facts, self.scope.outer)
        self.items = self.spreads.lift(self.items)
        self.lifted |= {call.name for call in self.spreads.calls}

    def spread_keys(self, group: exp.Group | None) -> None:
        """Lists that are grouped by their elements are taken apart below the groups."""
        named = {value.name.lower() for value in group.expressions} if group is not None else set()
        chosen = {
            id(value)
            for index, (name, value) in enumerate(self.items)
            if name.lower() in named or str(index + 1) in named
        }
        below = Spreads(self.bind, lambda: self.scope.operator, self.facts, self.scope.outer, "openivm_key_element")
        self.items = below.lift(self.items, lambda item: id(item[1]) in chosen)
        self.scope.operator = below.over(self.scope.operator)

    def key_sets(self, group: exp.Group | None) -> list[tuple[str, ...]]:
        """The names of the keys of each grouping set."""
        if group is None:
            return [()]
        if group.args.get("all"):
            sets = [[value for _, value in self.items if not self.has_call(value) and reads_columns(value)]]
        else:
            sets = grouping_sets(group)
        several = len(sets) > 1
        return [tuple(dict.fromkeys(self.set_key(value, several) for value in values)) for values in sets]

    def set_key(self, value: exp.Expr, several: bool) -> str:
        """The name of the key that an element of a grouping set makes.

        Among several sets two ordinals are two keys, even of one expression: an item is NULL where its own is left out.
        """
        ordinal = isinstance(bare(value), exp.Literal)
        return self.key(self.group_value(value), own=several and ordinal)

    def key(self, value: exp.Expr, own: bool = False) -> str:
        """The name of the key that a grouping expression makes; with `own`, one that no equal expression shares."""
        if (known_as := self.written_key(value)) is not None:
            return known_as
        bound = self.bind(value).unnest()
        for name, known in self.keys:
            if known == bound and not own:
                return name
        name = unique_name(f"openivm_key_{len(self.keys)}", self.taken)
        self.keys.append((name, bound))
        if own or has_subquery(value):
            self.written.append((name, value))
        return name

    def written_key(self, node: exp.Expr) -> str | None:
        """The name of a key with a subquery in it, if `node` is what it was made of."""
        return next((name for name, known in self.written if known is node), None)

    def repeated_key(self, node: exp.Expr) -> str | None:
        """The name of a key with a subquery in it that `node` repeats."""
        keys = [(name, value) for name, value in self.written if has_subquery(value)]
        if not keys or not has_subquery(node):
            return None
        meaning = Meaning(self.lowers, self.scope)
        wanted = meaning.of(bare(node))
        found = next((name for name, value in keys if wanted is not None and self.meaning(value) == wanted), None)
        if found is not None:
            self.lowers.idle.extend(meaning.lowered)
        return found

    def meaning(self, value: exp.Expr) -> exp.Expr | None:
        return Meaning(self.lowers, self.scope).of(bare(value))

    def group_value(self, value: exp.Expr) -> exp.Expr:
        value = bare(value)
        if isinstance(value, exp.Literal) and value.is_int:
            return self.items[int(value.name) - 1][1]
        if isinstance(value, exp.Column) and len(value.parts) == 1 and self.scope.unqualified(value.name) is None:
            return self.alias(value.name) or value
        return value

    def grouping(self, node: exp.Expr) -> exp.Expr:
        """GROUPING() of some keys."""
        names = {known: name for name, known in self.keys}
        found = [self.known_key(self.group_value(value), names) for value in node.expressions]
        known = [name for name in found if name is not None]
        if not known or len(known) < len(found):
            raise UnsupportedError(f"GROUPING() of what is no key{place(node)}")
        return grouping_value(self.sets, known)

    def known_key(self, value: exp.Expr, names: Mapping[exp.Expr, str]) -> str | None:
        """The name of the key that a grouping expression means, if it is one."""
        if has_subquery(value):
            return self.written_key(value) or self.repeated_key(value)
        return names.get(self.bind(value).unnest())

    def post(self, node: exp.Expr) -> exp.Expr:
        """Bind an expression of the select list or HAVING over keys and calls of the aggregate."""
        if isinstance(node, Flat):
            if node.this.name in self.lifted:
                return column(node.this.name)
            return self.post_column(node, column(node.this.name))
        if isinstance(node, GROUPING):
            return self.grouping(node)
        if (found := self.over_groups(node)) is not None:
            return found
        refuse(node)
        expanded = expand_macro(node, self.facts)
        if expanded is not None:
            return self.post(expanded)
        if is_call(node, self.facts):
            return column(self.call(node))
        if not self.has_call(node) and not has_subquery(node):
            key = self.key_of(node)
            if key is not None:
                return key
        if isinstance(node, exp.Column):
            return self.post_column(node, None)
        if isinstance(node, exp.Comprehension):
            return rebuild(with_local_names(node), self.post)
        if isinstance(node, exp.PositionalColumn):
            return self.post_column(node, column(positional(node, self.scope)[1]))
        return rebuild(node, self.post)

    def over_groups(self, node: exp.Expr) -> exp.Expr | None:
        """The column of what is computed from several groups, or from what else there is; None for any other node."""
        if (key := self.written_key(node) or self.repeated_key(node)) is not None:
            return column(key)
        if is_subquery(node):
            return self.postponed(node)
        return self.windows.bound(node, self.post) if isinstance(node, exp.Window) else None

    def key_of(self, node: exp.Expr) -> exp.Expr | None:
        try:
            bound = Binder(self.scope, self.facts).bind(node).unnest()
        except UnsupportedError:
            return None
        return self.over_keys(bound)

    def over_keys(self, bound: exp.Expr) -> exp.Expr | None:
        """A bound expression that is a key, or a field of one, over the groups."""
        key = next((column(name) for name, known in self.keys if known == bound), None)
        if key is None and isinstance(bound, exp.Dot) and isinstance(bound.expression, exp.Identifier):
            whole = self.over_keys(bound.this.unnest())
            return None if whole is None else struct_field(whole, bound.expression.name)
        return key

    def post_column(self, node: exp.Expr, bound: exp.Expr | None) -> exp.Expr:
        if bound is not None:
            key = next((column(name) for name, known in self.keys if known == bound), None)
            if key is not None:
                return key
        elif not node.args.get("table") and (meant := self.alias(node.name)) is not None and meant is not node:
            return exp.Paren(this=self.post(meant))
        elif (around := self.from_around(node)) is not None:
            return around
        raise UnsupportedError(f"the column {node.name}, which is neither grouped nor aggregated{place(node)}")

    def from_around(self, node: exp.Expr) -> exp.Expr | None:
        """A column of the query around this one: a constant here."""
        try:
            bound = Binder(self.scope, self.facts).bind(node)
        except UnsupportedError:
            return None
        return bound if not column_names(bound) else None

    def postponed(self, node: exp.Expr) -> exp.Expr:
        """The column that will hold the value of a subquery over the groups, see `with_values`."""
        found = quantifier(node)
        left = None if found is None else self.post(found.value)
        inner = self.ahead.inner(query_of(node), self.scope)
        name = f"openivm_value_{self.lowers.number()}"
        self.pending.append(Pending(name, node, inner, left))
        return column(name)

    def with_values(self, groups: Operator) -> Operator:
        """The groups with the values of the subqueries over them. They refer to keys."""
        if not self.pending:
            return groups
        scope = Scope(groups, [], number=self.lowers.number())
        subqueries = Subqueries(self.lowers, scope)
        keys = {
            known.name: outer_column(scope.number, name) for name, known in self.keys if isinstance(known, exp.Column)
        }
        keys |= {name: outer_column(scope.number, name) for name, _ in self.calls}
        for one in self.pending:
            unknown = references_below(one.inner, self.scope.number) - keys.keys()
            if unknown:
                raise UnsupportedError(f"the column {min(unknown)} in a subquery, which is no key{place(one.node)}")
            value = subqueries.value_of(one.node, rescoped(one.inner, self.scope.number, keys), one.left)
            items = tuple((name, column(name)) for name in scope.operator.columns)
            scope.operator = Project(scope.operator, (*items, (one.name, value)))
        return scope.operator

    def call(self, node: exp.Expr) -> str:
        return self.called(rebuild(node, Binder(self.scope, self.facts).bind))

    def called(self, bound: exp.Expr) -> str:
        """The column of a bound aggregate call."""
        for name, known in self.calls:
            if known.expression == bound:
                return name
        name = unique_name(f"openivm_agg_{len(self.calls)}", self.taken)
        self.calls.append((name, describe(bound)))
        return name


def distinct(operator: Operator) -> Operator:
    """SELECT DISTINCT is a grouping by all columns."""
    keys = tuple((f"openivm_key_{index}", column(name)) for index, name in enumerate(operator.columns))
    grouped = Aggregate(operator, keys, (), scalar=False, distinct=True)
    return Project(grouped, tuple((name, column(key)) for name, (key, _) in zip(operator.columns, keys, strict=True)))

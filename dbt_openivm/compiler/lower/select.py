"""Lower one SELECT block: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from dbt_openivm.compiler.aggregates import GROUPING, contains_call, describe, is_call
from dbt_openivm.compiler.algebra import Aggregate, Call, Constant, Filter, Operator, Project, column, unique_name
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.distinct_calls import aggregate
from dbt_openivm.compiler.lower.expressions import Alias, Binder, expand_macro, rebuild, refuse
from dbt_openivm.compiler.lower.from_clause import FromClause, Source
from dbt_openivm.compiler.lower.grouping import Grouping, grouping_sets, grouping_value, over_sets
from dbt_openivm.compiler.lower.reading import written
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.places import place
from dbt_openivm.errors import UnsupportedError

Item = tuple[str, exp.Expr]
"""A select item: its name, and its unbound expression without alias."""


def lower_select(node: exp.Select, facts: CompileFacts, source: Source) -> tuple[Operator, tuple[str, ...]]:
    """Lower one SELECT block to (operator, names as written)."""
    refuse_clauses(node)
    scope = from_scope(node, facts, source)
    select = SelectList(facts, scope, expand_stars(node, scope, facts))
    where = node.args.get("where")
    if where is not None:
        scope.operator = Filter(scope.operator, Binder(scope, facts, select.alias).bind(where.this))
    operator = select.aggregated(node) if select.is_aggregated(node) else select.plain()
    if node.args.get("distinct"):
        operator = distinct(operator)
    return operator, tuple(name for name, _ in select.items)


def refuse_clauses(node: exp.Select) -> None:
    for key, name in (
        ("qualify", "QUALIFY"),
        ("laterals", "LATERAL"),
        ("connect", "CONNECT BY"),
        ("windows", "WINDOW"),
    ):
        if node.args.get(key):
            value = node.args[key]
            raise UnsupportedError(f"{name}{place(value[0] if isinstance(value, list) else value)}")
    kind = node.args.get("distinct")
    if kind and kind.args.get("on"):
        raise UnsupportedError(f"DISTINCT ON{place(kind)}")


def from_scope(node: exp.Select, facts: CompileFacts, source: Source) -> Scope:
    clause = node.args.get("from_") or node.args.get("from")
    if clause is None:
        return Scope(Constant(((),), ()), [])
    collected = FromClause(facts, source)
    collected.add(clause.this)
    for join in node.args.get("joins") or []:
        collected.join(join)
    return collected.finish()


def expand_stars(node: exp.Select, scope: Scope, facts: CompileFacts) -> list[Item]:
    items: list[Item] = []
    for item in node.expressions:
        if isinstance(item, exp.Star):
            items.extend(star_items(item, scope.star()))
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            if not scope.has_alias(item.table):
                raise UnsupportedError(f"{item.table}.*, whose relation was not found{place(item)}")
            items.extend(star_items(item.this, scope.star(item.table)))
        else:
            items.append((item_name(item, facts) or f"column{len(items)}", item.unalias()))
    return items


def item_name(item: exp.Expr, facts: CompileFacts) -> str | None:
    """The name of a select item: its alias, its column, what DuckDB calls an expression, or None if unknown."""
    if isinstance(item, exp.Alias | exp.Column | exp.Dot):
        return item.alias_or_name or None
    return facts.names.get(written(item))


def star_items(star: exp.Star, columns: list[tuple[str, str, str]]) -> list[Item]:
    """The items of a star, with EXCLUDE, REPLACE and RENAME applied."""
    parts = star.args.get("except_") or star.args.get("except") or []
    excluded = {(part.text("table").lower(), part.name.lower()) for part in parts}
    replaced = {part.alias.lower(): part.this for part in star.args.get("replace") or []}
    renamed = {part.this.name.lower(): part.alias for part in star.args.get("rename") or []}
    items: list[Item] = []
    for alias, name, flat in columns:
        if excluded.isdisjoint({("", name.lower()), (alias.lower(), name.lower())}):
            expression = replaced.get(name.lower()) or Flat(this=exp.to_identifier(flat, quoted=True))
            items.append((renamed.get(name.lower(), name), expression))
    return items


class Flat(exp.Expression):
    """A column that is resolved already: a star's expansion needs no look-up, and must not find a namesake."""

    arg_types = {"this": True}


def reads_columns(value: exp.Expr) -> bool:
    return any(isinstance(part, exp.Column | Flat) for part in value.walk())


@dataclass
class SelectList:
    """The select list of one block, and how its expressions bind."""

    facts: CompileFacts
    scope: Scope
    items: list[Item]
    keys: list[tuple[str, exp.Expr]] = field(default_factory=list)
    sets: list[tuple[str, ...]] = field(default_factory=list)
    calls: list[tuple[str, Call]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def alias(self, name: str) -> exp.Expr | None:
        """The unbound expression of the select item called `name`, of several the last, as DuckDB has it."""
        return self.last_alias(self.items, name)

    @staticmethod
    def last_alias(items: Sequence[Item], name: str) -> exp.Expr | None:
        return next((value for known, value in reversed(items) if known.lower() == name.lower()), None)

    def bind(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, Flat):
            return column(node.this.name)
        return Binder(self.scope, self.facts, self.alias_of(node)).bind(node)

    def alias_of(self, node: exp.Expr) -> Alias:
        """Alias look-up for one item: among those before it. For what is no item: among all."""
        position = next((index for index, (_, value) in enumerate(self.items) if value is node), len(self.items))
        return lambda name: self.last_alias(self.items[:position], name)

    def plain(self) -> Operator:
        names: set[str] = set()
        return Project(self.scope.operator, tuple((unique_name(n, names), self.bind(e)) for n, e in self.items))

    def is_aggregated(self, node: exp.Select) -> bool:
        having = node.args.get("having")
        values = [value for _, value in self.items] + ([having.this] if having else [])
        return bool(node.args.get("group") or having) or any(self.has_call(value) for value in values)

    def has_call(self, node: exp.Expr) -> bool:
        if contains_call(node, self.facts):
            return not any(isinstance(part, exp.Window) for part in node.walk()) or self.refuse_window(node)
        bodies = [expand_macro(part, self.facts) for part in node.walk()]
        return any(self.has_call(body) for body in bodies if body is not None)

    def refuse_window(self, node: exp.Expr) -> bool:
        for part in node.find_all(exp.Window):
            refuse(part)
        return False

    def aggregated(self, node: exp.Select) -> Operator:
        """Aggregate, then HAVING, then the select list over keys and calls."""
        group = node.args.get("group")
        self.sets = self.key_sets(group)
        having = node.args.get("having")
        names: set[str] = set()
        items = tuple((unique_name(name, names), self.post(value)) for name, value in self.items)
        if group is not None and group.args.get("all") and not (self.keys or self.calls or having):
            # GROUP BY ALL leaves out constants; where nothing is left, nothing is grouped
            return self.plain()
        predicate = None if having is None else self.post(having.this)
        grouping = Grouping(self.scope.operator, tuple(self.keys), tuple(self.calls))
        if len(self.sets) > 1:
            grouping = over_sets(grouping, self.sets)
        operator = aggregate(grouping, scalar=self.sets == [()])
        if predicate is not None:
            operator = Filter(operator, predicate)
        return Project(operator, items)

    def key_sets(self, group: exp.Group | None) -> list[tuple[str, ...]]:
        """The names of the keys of each grouping set."""
        if group is None:
            return [()]
        if group.args.get("all"):
            sets = [[value for _, value in self.items if not self.has_call(value) and reads_columns(value)]]
        else:
            sets = grouping_sets(group)
        return [tuple(dict.fromkeys(self.key(self.group_value(value)) for value in values)) for values in sets]

    def key(self, value: exp.Expr) -> str:
        """The name of the key that a grouping expression makes."""
        bound = self.bind(value).unnest()
        for name, known in self.keys:
            if known == bound:
                return name
        self.keys.append((unique_name(f"openivm_key_{len(self.keys)}", self.taken), bound))
        return self.keys[-1][0]

    def group_value(self, value: exp.Expr) -> exp.Expr:
        if isinstance(value, exp.Literal) and value.is_int:
            return self.items[int(value.name) - 1][1]
    def grouping(self, node: exp.Expr) -> exp.Expr:
        """GROUPING() of some keys."""
        names = {known: name for name, known in self.keys}
        values = [self.bind(self.group_value(value)).unnest() for value in node.expressions]
        if not values or not all(value in names for value in values):
            raise UnsupportedError(f"GROUPING() of what is no key{place(node)}")
        return grouping_value(self.sets, [names[value] for value in values])

        return value

    def post(self, node: exp.Expr) -> exp.Expr:
        """Bind an expression of the select list or HAVING over keys and calls of the aggregate."""
        if isinstance(node, GROUPING):
            return self.grouping(node)
        if isinstance(node, Flat):
            return self.post_column(node, column(node.this.name))
        refuse(node)
        expanded = expand_macro(node, self.facts)
        if expanded is not None:
            return self.post(expanded)
        if is_call(node, self.facts):
            return column(self.call(node))
        if not self.has_call(node):
            key = self.key_of(node)
            if key is not None:
                return key
        if isinstance(node, exp.Column):
            return self.post_column(node, None)
        if isinstance(node, exp.Comprehension | exp.Lambda):
            raise UnsupportedError(f"a lambda over aggregates{place(node)}")
        return rebuild(node, self.post)

    def key_of(self, node: exp.Expr) -> exp.Expr | None:
        try:
            bound = Binder(self.scope, self.facts).bind(node).unnest()
        except UnsupportedError:
            return None
        return next((column(name) for name, known in self.keys if known == bound), None)

    def post_column(self, node: exp.Expr, bound: exp.Expr | None) -> exp.Expr:
        if bound is not None:
            key = next((column(name) for name, known in self.keys if known == bound), None)
            if key is not None:
                return key
        elif not node.args.get("table") and (meant := self.alias(node.name)) is not None and meant is not node:
            return exp.Paren(this=self.post(meant))
        raise UnsupportedError(f"the column {node.name}, which is neither grouped nor aggregated{place(node)}")

    def call(self, node: exp.Expr) -> str:
        bound = rebuild(node, Binder(self.scope, self.facts).bind)
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

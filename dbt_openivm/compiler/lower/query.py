"""Lower a query: CTEs, set operations, views and SELECT blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_openivm.compiler.algebra import Constant, Operator, Project, Scan, column, unique_name
from dbt_openivm.compiler.facts import SQL_VIEW, CompileFacts, Relation
from dbt_openivm.compiler.lower.calls import plain_calls
from dbt_openivm.compiler.lower.elements import series, series_rows
from dbt_openivm.compiler.lower.ending import first_of_query
from dbt_openivm.compiler.lower.expressions import Binder, function_name
from dbt_openivm.compiler.lower.lowered import Lowered
from dbt_openivm.compiler.lower.macros import expand_call
from dbt_openivm.compiler.lower.pivot import UNNAMED, selection
from dbt_openivm.compiler.lower.reading import read
from dbt_openivm.compiler.lower.recursion import recursive
from dbt_openivm.compiler.lower.references import FILE_READERS
from dbt_openivm.compiler.lower.scope import Binding, Scope
from dbt_openivm.compiler.lower.select import lower_select
from dbt_openivm.compiler.lower.set_operations import combine
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.probe import rows_query
from dbt_openivm.compiler.sql import identifier, text
from dbt_openivm.errors import UnsupportedError

MAX_DEPTH = 100


@dataclass(frozen=True)
class Lowering:
    """Lowers queries in one naming context.

    Attributes:
        context: (database, schema) of the plain view being inlined, None in the user's own query.
        ctes: the CTEs in scope by lower-case name.
        depth: of inlined views, to stop at views that read each other.
        outer: the scope around the query, if it is a subquery.
        numbers: how many numbers were given out; the naming contexts of one query share it, and `idle`.
        idle: operators of subqueries that are no part of the tree: they repeat others, or nothing depends on them.
    """

    facts: CompileFacts
    context: tuple[str, str] | None = None
    ctes: Mapping[str, Lowered] = field(default_factory=dict)
    depth: int = 0
    outer: Scope | None = None
    numbers: list[int] = field(default_factory=lambda: [0])
    idle: list[Operator] = field(default_factory=list)

    def with_cte(self, name: str, lowered: Lowered) -> Lowering:
        """The naming context behind a CTE."""
        return replace(self, ctes={**self.ctes, name.lower(): lowered})

    def number(self) -> int:
        """A number that nothing else in the query has."""
        self.numbers[0] += 1
        return self.numbers[0]

    def inner(self, node: exp.Expr, scope: Scope) -> Operator:
        """The operator of a subquery, which may refer to the columns of `scope`."""
        return replace(self, outer=scope).query(node).operator

    def query(self, node: exp.Expr) -> Lowered:
        """Lower any query expression."""
        if isinstance(node, exp.Subquery):
            refuse_modifiers(node)
            if node.args.get("joins") or node.args.get("alias"):
                raise UnsupportedError(f"a join in parentheses in the place of a query{place(node)}")
            return self.first(node, self.with_ctes(node).query(node.this))
        if isinstance(node, exp.Values):
            return self.first(node, lower_values(node, self.facts, self.outer))
        scoped = self.with_ctes(node)
        if isinstance(node, exp.Pivot):
            return scoped.query(scoped.pivot(node, node.this, self.outer))
        refuse_modifiers(node)
        if isinstance(node, exp.SetOperation):
            return self.first(node, scoped.set_operation(node))
        if isinstance(node, exp.Select):
            return Lowered(*lower_select(node, scoped))
        raise UnsupportedError(f"{type(node).__name__.upper()}{place(node)}")

    def first(self, node: exp.Expr, lowered: Lowered) -> Lowered:
        """What the LIMIT of a query leaves of which only the output is known."""
        outputs = [(name, out, None) for name, out in zip(lowered.names, lowered.operator.columns, strict=True)]
        return replace(lowered, operator=first_of_query(lowered.operator, outputs, node, self))

    def with_ctes(self, node: exp.Expr) -> Lowering:
        clause = node.args.get("with_") or node.args.get("with")
        if clause is None:
            return self
        scoped = self
        for cte in clause.expressions:
            name = cte.alias
            if clause.recursive and reads(cte.this, name):
                lowered = recursive(cte, scoped, self.number())
            else:
                lowered = scoped.query(cte.this)
            names = tuple(part.name for part in cte.args["alias"].columns)
            lowered = Lowered(lowered.operator, names + lowered.names[len(names) :])
            scoped = scoped.with_cte(name, lowered)
        return scoped

    def set_operation(self, node: exp.SetOperation) -> Lowered:
        sides = [self.query(branch) for branch in (node.left, node.right)]
        left, right = ((side.operator, side.names) for side in sides)
        return Lowered(*combine(node, left, right))

    def source(self, item: exp.Expr, around: Scope | None) -> tuple[Operator, str, tuple[str, ...], tuple[str, ...]]:
        """Lower one item of a FROM clause to (operator, alias, names of its columns, qualifiers of its name).

        Args:
            around: what the item may refer to.
        """
        qualifiers: tuple[str, ...] = ()
        if item.args.get("pivots"):
            return self.source(self.unpivoted(item, around), around)
        found = series(item)
        if found is not None and not self.is_macro(item):
            binder = Binder(Scope(Constant((), ()), [], outer=around), self.facts)
            return series_rows(found, binder.bind), found.alias, found.names, ()
        if isinstance(item, exp.Lateral) and isinstance(item.this, exp.Subquery):
            query = item.this.copy()
            query.set("alias", item.args.get("alias"))
            return self.source(query, around)
        if isinstance(item, exp.Subquery):
            refuse_table_modifiers(item)
            lowered, alias = replace(self, outer=around).query(item.this), item.alias
        elif isinstance(item, exp.Values):
            lowered, alias = replace(self, outer=around).query(item), item.alias
        elif isinstance(item, exp.Table):
            refuse_table_modifiers(item)
            lowered, qualifiers = (
                self.table(item),
                tuple(p.name for p in item.parts[:-1] if isinstance(p, exp.Identifier)),
            )
            alias = item.alias or item.name
        else:
            raise UnsupportedError(f"{type(item).__name__.upper()} in FROM{place(item)}")
        renamed = tuple(part.name for part in item.args["alias"].columns) if item.args.get("alias") else ()
        names = renamed + lowered.names[len(renamed) :]
        return lowered.operator, alias, names, qualifiers if not item.args.get("alias") else ()

    def table(self, item: exp.Table) -> Lowered:
        if isinstance(item.this, exp.Func):
            return self.table_function(item)
        parts = tuple(part.name for part in item.parts)
        if len(parts) == 1 and parts[0].lower() in self.ctes:
            return self.ctes[parts[0].lower()]
        relation = self.facts.resolve(parts, self.context) or self.facts.relations.get(table_text(item))
        if relation is None:
            raise UnsupportedError(f"the relation {'.'.join(parts)}, which was not found{place(item)}")
        return self.relation(relation)

    def relation(self, relation: Relation) -> Lowered:
        if relation.kind == SQL_VIEW:
            return self.inline(relation)
        taken: set[str] = set()
        names = tuple((unique_name(c.name, taken), c.name) for c in relation.columns)
        return Lowered(Scan(relation, names), tuple(c.name for c in relation.columns))

    def inline(self, view: Relation) -> Lowered:
        if self.depth > MAX_DEPTH:
            raise UnsupportedError(f"the view {view.key}, which is nested more than {MAX_DEPTH} views deep")
        query = plain_calls(read(view.definition or ""), self.facts)
        try:
            around = replace(self, context=view.context, ctes={}, depth=self.depth + 1, outer=None)
            lowered = around.query(query)
        except UnsupportedError as error:
            raise UnsupportedError(f"{error} of the view {view.key}") from None
        # the catalog shows a view's columns as they were when it was last bound; its tables may have more by now
        names = tuple(c.name for c in view.columns)
        return Lowered(lowered.operator, names if len(names) == len(lowered.names) else lowered.names)

    def unpivoted(self, item: exp.Expr, around: Scope | None) -> exp.Subquery:
        """A FROM item with the PIVOT and UNPIVOT clauses behind it, as a query."""
        *before, pivot = item.args["pivots"]
        below = item.copy()
        below.set("pivots", before)
        alias = pivot.args.get("alias") or exp.TableAlias(this=identifier(UNNAMED))
        return exp.Subquery(this=self.pivot(pivot, below, around), alias=alias.copy())

    def pivot(self, pivot: exp.Pivot, source: exp.Expr, around: Scope | None) -> exp.Select:
        """The SELECT that a PIVOT or UNPIVOT of `source` means."""
        operator, alias, names, _ = self.source(source, around)
        scope = Scope(operator, [Binding(alias or UNNAMED, tuple(zip(names, operator.columns, strict=True)))])
        taken: set[str] = set()
        named = [(unique_name(name, taken), column(inner)) for name, inner in scope.bindings[0].columns]
        return selection(pivot, source.copy(), scope, rows_query(Project(operator, tuple(named))), self.facts)

    def is_macro(self, item: exp.Expr) -> bool:
        call = item.this if isinstance(item, exp.Table | exp.Lateral) else item
        return any(macro.is_table for macro in self.facts.macros.get(function_name(call), ()))

    def table_function(self, item: exp.Table) -> Lowered:
        name = function_name(item.this)
        overloads = [macro for macro in self.facts.macros.get(name, ()) if macro.is_table]
        if overloads:
            body = plain_calls(expand_call(overloads, list(item.this.expressions), item), self.facts)
            return replace(self, ctes={}, depth=self.depth + 1).query(body)
        relation = self.facts.relations.get(table_text(item))
        if relation is None or name not in FILE_READERS:
            raise UnsupportedError(f"the table function {name}(){place(item)}")
        return self.relation(relation)


def table_text(item: exp.Table) -> str:
    """The key of a relation that is no catalog entry: its text in FROM, without alias."""
    bare = item.copy()
    bare.set("alias", None)
    bare.set("joins", None)
    return text(bare)


def reads(query: exp.Expr, name: str) -> bool:
    return any(table.name.lower() == name.lower() for table in query.find_all(exp.Table))


def refuse_modifiers(node: exp.Expr) -> None:
    """What changes the rows there are in a way that no operator knows."""
    for key, name in (("sample", "a sample"), ("pivots", "PIVOT")):
        value = node.args.get(key)
        if value:
            raise UnsupportedError(f"{name}{place(value[0] if isinstance(value, list) else value)}")


def refuse_table_modifiers(item: exp.Expr) -> None:
    refuse_modifiers(item)
    for key, name in (
        ("limit", "LIMIT"),
        ("offset", "OFFSET"),
        ("when", "time travel"),
        ("version", "time travel"),
        ("ordinality", "WITH ORDINALITY"),
    ):
        if item.args.get(key):
            raise UnsupportedError(f"{name}{place(item)}")


def lower_values(node: exp.Values, facts: CompileFacts, outer: Scope | None) -> Lowered:
    rows = []
    binder = Binder(Scope(Constant((), ()), [], outer=outer), facts)
    for row in node.expressions:
        values = row.expressions if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]
        rows.append(tuple(binder.bind(value) for value in values))
    names = tuple(f"col{index}" for index in range(len(rows[0])))
    return Lowered(Constant(tuple(rows), names), names)


def lower(sql: str, facts: CompileFacts) -> tuple[Operator, list[Operator]]:
    """Lower a query to (its operator tree, those of subqueries that need not stand in it).

    Raises:
        UnsupportedError: it uses a construct that no operator handles; the message names construct and place.
    """
    lowering = Lowering(facts)
    return lowering.query(plain_calls(read(sql), facts)).operator, lowering.idle

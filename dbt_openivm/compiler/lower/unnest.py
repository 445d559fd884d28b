"""Unnest correlated subqueries: from a tree that refers to the rows around it to one that holds the results for all of
them, each beside the values that it belongs to.

Two ways, after Neumann and Kemper (Unnesting Arbitrary Queries, BTW 2015):

- by equality: where the subquery says ``inner = outer`` below everything that aggregates, the inner side stands for
  the outer value, and the query around is not read at all;
- by domain: the subquery is joined with the distinct outer values at its leaves, which carries any correlation up
  through any operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp, parse_one

from dbt_openivm.compiler.algebra import (
    Aggregate,
    Constant,
    Filter,
    Join,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    SemiJoin,
    TopK,
    UnionAll,
    Unnest,
    Window,
    column,
    exactly,
)
from dbt_openivm.compiler.facts import Column, Relation
from dbt_openivm.compiler.keys import EXACT, key_expressions
from dbt_openivm.compiler.lower.carried import carried
from dbt_openivm.compiler.lower.outer import (
    expressions_of,
    map_expressions,
    outer_table,
    references,
    references_below,
    replace_references,
)
from dbt_openivm.compiler.probe import rows_query
from dbt_openivm.compiler.sql import DIALECT, conjunction, conjuncts, equal, null_safe_equal, substitute
from dbt_openivm.errors import UnsupportedError
from dbt_openivm.names import quote

FOUND = "openivm_found"
Items = list[tuple[str, exp.Expr]]


@dataclass(frozen=True)
class Unnested:
    """The results of a subquery for all outer rows.

    Attributes:
        operator: its columns are the subquery's and those of `pairs`.
        pairs: (expression over the outer scope, column of `operator`) that must be equal.
        null_safe: whether NULL of the outer scope belongs to NULL; otherwise it belongs to nothing.
    """

    operator: Operator
    pairs: tuple[tuple[exp.Expr, str], ...]
    null_safe: bool

    def conditions(self, inner: Callable[[str], exp.Expr]) -> list[exp.Expr]:
        """An outer row and its results belong together.

        Args:
            inner: what holds a column of `operator`.
        """
        same = null_safe_equal if self.null_safe else equal
        return [same(outer.copy(), inner(hidden)) for outer, hidden in self.pairs]


@dataclass(frozen=True)
class Unnester:
    """Unnests one subquery.

    Attributes:
        scope: whose columns are replaced.
        outer: the operator of that scope.
        number: of the subquery, to name its columns.
        elsewhere: the outer columns that the subquery reads more than once.
    """

    scope: int
    outer: Operator
    number: int
    elsewhere: set[str] = field(default_factory=set)

    def beside(self, operator: Operator) -> Operator:
        """Every outer row with the rows that `operator` has for it, all columns of both; names must differ."""
        hidden = {name: f"openivm_outer_{self.number}_{index}" for index, name in enumerate(self.outer.columns)}
        if any(isinstance(op, Aggregate | Window | TopK | OuterJoin | Recursive) for op in operator.walk()):
            names = sorted(references_below(operator, self.scope))
            found = self.unnest(operator, names, keep_bare=False)
            result = product(self.outer, found.operator)
            for condition in found.conditions(column):
                result = Filter(result, condition)
            return exactly(result, (*self.outer.columns, *operator.columns))
        # nothing looks at several rows at once: the outer rows themselves can go up from the leaves
        rows = Project(self.outer, tuple((inner, column(name)) for name, inner in hidden.items()))
        result = Domain(self.scope, hidden, rows, None).push(operator)
        items = [(name, column(inner)) for name, inner in hidden.items()]
        return Project(result, (*items, *((name, column(name)) for name in operator.columns)))

    def unnest(self, operator: Operator, names: Sequence[str], keep_bare: bool) -> Unnested:
        """Unnest a tree that refers to the columns `names` of the outer scope.

        Args:
            keep_bare: whether the reader supplies the values of an aggregate over nothing itself.
        """
        hidden = {name: f"openivm_outer_{self.number}_{index}" for index, name in enumerate(names)}
        pairs = tuple((column(name), inner) for name, inner in hidden.items())
        bare = bare_aggregate(operator) if keep_bare else None
        self.elsewhere.clear()
        self.elsewhere.update(name for name in names if references_to(operator, self.scope, name) > 1)
        found = self.by_equality(operator, hidden, bare)
        if found is not None:
            return Unnested(found, pairs, null_safe=False)
        exact = exact_columns(self.outer, hidden)
        domain = distinct_values(self.outer, hidden, exact)
        pushed = Domain(self.scope, hidden, domain, bare, tuple(exact)).push(operator)
        return Unnested(pushed, (*pairs, *((value, name) for name, value in exact.items())), null_safe=True)

    # --- by equality -------------------------------------------------------------------------------------------------

    def by_equality(self, operator: Operator, hidden: Mapping[str, str], bare: Aggregate | None) -> Operator | None:
        """`operator` with the inner sides of equalities as the outer values; None where that is not possible."""
        if isinstance(operator, Filter) and not references_below(operator.child, self.scope):
            return self.bound(operator, hidden)
        if isinstance(operator, Aggregate) and operator.scalar and operator is not bare:
            return None
        correlated = [index for index, c in enumerate(operator.inputs) if references_below(c, self.scope)]
        if len(correlated) != 1 or isinstance(operator, UnionAll | OuterJoin | Recursive) or not supported(operator):
            return None
        if isinstance(operator, SemiJoin) and correlated != [0]:
            return None
        inner = self.by_equality(operator.inputs[correlated[0]], hidden, bare)
        if inner is None:
            return None
        return carried(self.replaced(operator, hidden), {correlated[0]: inner}, tuple(hidden.values()))

    def bound(self, operator: Filter, hidden: Mapping[str, str]) -> Operator | None:
        equal: dict[str, exp.Expr] = {}
        rest: list[exp.Expr] = []
        for part in conjuncts(operator.predicate):
            pair = self.equality(part, operator.child)
            if pair is not None and pair[0] in hidden and pair[0] not in equal:
                equal[pair[0]] = pair[1]
            else:
                rest.append(part)
        if equal.keys() != hidden.keys():
            return None
        items: Items = [(name, column(name)) for name in operator.child.columns]
        items += [(hidden[name], value) for name, value in equal.items()]
        result: Operator = Project(operator.child, tuple(items))
        columns = {name: column(inner) for name, inner in hidden.items()}
        known = [exp.Not(this=exp.Is(this=column(inner), expression=exp.Null())) for inner in hidden.values()]
        for part in [*known, *(replace_references(part, self.scope, columns) for part in rest)]:
            result = Filter(result, part)
        return result

    def equality(self, part: exp.Expr, child: Operator) -> tuple[str, exp.Expr] | None:
        """(outer column, inner column) of an equality of columns of one type.

        Of one type: 1 equals '01' and '1', which are two groups.
        """
        if not isinstance(part, exp.EQ):
            return None
        for one, other in ((part.this, part.expression), (part.expression, part.this)):
            outer, inner = one.unnest(), other.unnest()
            if not isinstance(outer, exp.Column) or not isinstance(inner, exp.Column) or inner.table:
                continue
            if not references(outer, self.scope):
                continue
            types = column_type(self.outer, outer.name), column_type(child, inner.name)
            if types[0] is None or types[0] != types[1]:
                continue
            # by a collation texts are equal that the rest of the subquery may tell apart
            if EXACT.fullmatch(types[0]) or (types[0] == "VARCHAR" and outer.name not in self.elsewhere):
                return outer.name, inner
        return None

    def replaced(self, operator: Operator, hidden: Mapping[str, str]) -> Operator:
        columns = {name: column(inner) for name, inner in hidden.items()}
        return map_expressions(operator, lambda value: replace_references(value, self.scope, columns))


def exact_columns(operator: Operator, hidden: Mapping[str, str]) -> dict[str, exp.Expr]:
    """What tells apart values that DuckDB takes for one, as far as types are known.

    Args:
        hidden: column of `operator` -> the column that holds its value.

    Returns:
        Names after those of the hidden columns -> expressions over `operator`.
    """
    found: dict[str, exp.Expr] = {}
    for name, inner in hidden.items():
        type_, text = column_type(operator, name), quote(name)
        keys = [key for key in key_expressions(text, type_) if key != text] if type_ is not None else []
        found |= {f"{inner}_{index}": parse_one(key, dialect=DIALECT) for index, key in enumerate(keys)}
    return found


def references_to(operator: Operator, scope: int, name: str) -> int:
    """How often a tree refers to a column of a scope."""
    values = (value for op in operator.walk() for value in expressions_of(op))
    found = (node for value in values for node in value.find_all(exp.Column))
    return sum(node.name == name and node.table == outer_table(scope) for node in found)


def column_type(operator: Operator, name: str) -> str | None:
    """The type of a column that comes from a source as it is; None for any other."""
    if isinstance(operator, Scan):
        source = dict(operator.names).get(name)
        return next((c.type for c in operator.relation.columns if c.name == source), None)
    if isinstance(operator, Project):
        value = dict(operator.items).get(name)
        return column_type(operator.child, value.name) if isinstance(value, exp.Column) and not value.table else None
    if isinstance(operator, Join | OuterJoin):
        found = next(((index, inner) for out, index, inner in operator.names if out == name), None)
        return None if found is None else column_type(operator.inputs[found[0]], found[1])
    if isinstance(operator, Aggregate):
        key = dict(operator.keys).get(name)
        return column_type(operator.child, key.name) if isinstance(key, exp.Column) and not key.table else None
    if isinstance(operator, Filter | SemiJoin | Unnest | Window | TopK):
        return column_type(operator.inputs[0], name)
    return None


def bare_aggregate(operator: Operator) -> Aggregate | None:
    """The aggregate without GROUP BY below a chain of filters and projections."""
    while isinstance(operator, Filter | Project):
        operator = operator.child
    return operator if isinstance(operator, Aggregate) and operator.scalar else None


def supported(operator: Operator) -> bool:
    if isinstance(operator, TopK):
        return not operator.percent
    return isinstance(operator, Filter | Project | Join | UnionAll | Unnest | Aggregate | Window | SemiJoin | OuterJoin)


# --- by domain -------------------------------------------------------------------------------------------------------


def distinct_values(outer: Operator, hidden: Mapping[str, str], exact: Mapping[str, exp.Expr]) -> Operator:
    """The outer values, once each; `exact` has more columns by what they hold."""
    keys = tuple((inner, column(name)) for name, inner in hidden.items())
    return Aggregate(outer, (*keys, *exact.items()), (), distinct=True)


def once_each(operator: Operator, names: Sequence[str]) -> Operator:
    """The distinct values of some columns."""
    return distinct_values(operator, {name: name for name in names}, {})


@dataclass(frozen=True)
class Domain:
    """Carries the distinct outer values up from the leaves.

    Attributes:
        hidden: outer column -> the column that holds its value.
        values: the distinct outer values.
        bare: the aggregate without GROUP BY whose value over nothing the reader supplies; None if there is none.
        exact: more columns of the values, see `exact_columns`.
        working: what a recursive CTE reads of itself, by its key: as it is with the columns of the domain.
    """

    scope: int
    hidden: Mapping[str, str]
    values: Operator
    bare: Aggregate | None
    exact: tuple[str, ...] = ()
    working: Mapping[str, Relation] = field(default_factory=dict)
    recursions: dict[int, Recursive] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.hidden.values(), *self.exact)

    def push(self, operator: Operator) -> Operator:
        """`operator` with the columns of the domain, for every row of the domain."""
        if not self.touches(operator):
            return product(self.values, operator)
        if isinstance(operator, Recursive):
            return self.recursive(operator)
        if isinstance(operator, Scan):
            own = tuple((name, name) for name in self.names)
            return Scan(self.working[operator.relation.key], (*own, *operator.names))
        columns = {name: column(inner) for name, inner in self.hidden.items()}
        replaced = map_expressions(operator, lambda value: replace_references(value, self.scope, columns))
        if isinstance(replaced, Constant):
            return self.constant(replaced)
        if not supported(operator):
            kind = "LIMIT %" if isinstance(operator, TopK) else type(operator).__name__.lower()
            raise UnsupportedError(f"a subquery that refers to the query around it from within a {kind}")
        needed = {i for i, child in enumerate(operator.inputs) if self.touches(child)}
        pushed = {i: self.push(operator.inputs[i]) for i in sorted(needed | self.carriers(operator, needed))}
        result = carried(replaced, pushed, self.names)
        if isinstance(operator, Aggregate) and operator.scalar and operator is not self.bare:
            return self.completed(operator, result)
        return result

    def touches(self, operator: Operator) -> bool:
        """Whether the rows of an operator differ between the rows of the domain."""
        if references_below(operator, self.scope):
            return True
        return any(isinstance(op, Scan) and op.relation.key in self.working for op in operator.walk())

    def recursive(self, operator: Recursive) -> Recursive:
        """The recursive CTE of every row of the domain, side by side: rows of each follow from rows of the same."""
        if id(operator) not in self.recursions:
            columns = (*self.names, *operator.columns)
            base = exactly(self.push(operator.base), columns)
            working = replace(
                operator.working,
                key=f"{operator.working.key}:{self.scope}",
                sql=f"({rows_query(base)})",
                columns=tuple(Column(name, "") for name in columns),
            )
            # a row of the domain takes part in a round as long as the last one brought rows for it
            rows = Scan(working, tuple((name, name) for name in self.names))
            known = {**self.working, operator.working.key: working}
            inner = Domain(self.scope, self.hidden, once_each(rows, self.names), None, self.exact, known)
            step = exactly(inner.push(operator.step), columns)
            keys = (*self.names, *operator.keys) if operator.keys else ()
            self.recursions[id(operator)] = Recursive(base, step, working, operator.distinct, keys)
        return self.recursions[id(operator)]

    def carriers(self, operator: Operator, needed: set[int]) -> set[int]:
        """The inputs that must have the columns of the domain for the result to have them."""
        if isinstance(operator, SemiJoin):
            return {0}
        if isinstance(operator, OuterJoin):
            kept = {index for index, keeps in ((0, operator.left_kept), (1, operator.right_kept)) if keeps}
            return kept | ({0} if not kept | needed else set())
        if isinstance(operator, UnionAll):
            return set(range(len(operator.children)))
        return set() if needed else {0}

    def constant(self, rows: Constant) -> Operator:
        branches = []
        for row in rows.rows:
            items: Items = [(name, column(name)) for name in self.names]
            items += list(zip(rows.names, row, strict=True))
            branches.append(Project(self.values, tuple(items)))
        return branches[0] if len(branches) == 1 else UnionAll(tuple(branches))

    def completed(self, aggregate: Aggregate, grouped: Operator) -> Operator:
        """A row for every row of the domain, with the aggregate's value over nothing where it has no group."""
        result = with_found(grouped)
        names = [(f"{name}_domain", 0, name) for name in self.names]
        names += [(name, 1, name) for name in result.columns]
        on = conjunction([null_safe_equal(column(f"{name}_domain"), column(name)) for name in self.names])
        assert on is not None
        joined = OuterJoin(self.values, result, on, tuple(names), left_kept=True, right_kept=False)
        items: Items = [(name, column(f"{name}_domain")) for name in self.names]
        items += [(name, or_empty(column(name), empty_value(call.function))) for name, call in aggregate.calls]
        return Project(joined, tuple(items))


def product(one: Operator, other: Operator) -> Operator:
    names = [(name, 0, name) for name in one.columns] + [(name, 1, name) for name in other.columns]
    return Join((one, other), tuple(names))


def with_found(operator: Operator) -> Operator:
    """The operator with a column that is true."""
    items = [(name, column(name)) for name in operator.columns if name != FOUND]
    return Project(operator, (*items, (FOUND, exp.Boolean(this=True))))


def or_empty(value: exp.Expr, empty: exp.Expr) -> exp.Expr:
    """`value`, or `empty` where the row that would have it is not there."""
    if isinstance(empty, exp.Null):
        return value
    found = exp.Not(this=exp.Is(this=column(FOUND), expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=found, true=value)], default=empty)


COUNTS = frozenset({"count", "count_star", "regr_count", "approx_count_distinct"})


def empty_value(function: str) -> exp.Expr:
    """An aggregate's value over no rows."""
    return exp.Literal.number(0) if function in COUNTS else exp.Null()


# --- existence -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pulled:
    """A subquery with its correlated conditions taken out.

    Attributes:
        operator: without any reference to the outer scope.
        conditions: over `operator`, with references to the outer scope.
        items: the subquery's columns over `operator`.
    """

    operator: Operator
    conditions: tuple[exp.Expr, ...]
    items: Mapping[str, exp.Expr]


def pull(operator: Operator, scope: int) -> Pulled | None:
    """Take the correlated conditions out of a chain of filters and projections; None if more is correlated."""
    if not references_below(operator, scope):
        return Pulled(operator, (), {name: column(name) for name in operator.columns})
    if not isinstance(operator, Filter | Project):
        return None
    inner = pull(operator.child, scope)
    if inner is None:
        return None
    if isinstance(operator, Project):
        if any(references(value, scope) for _, value in operator.items):
            return None
        return replace(inner, items={name: substitute(value, inner.items) for name, value in operator.items})
    result, conditions = inner.operator, list(inner.conditions)
    for part in conjuncts(operator.predicate):
        bound = substitute(part, inner.items)
        if references(part, scope):
            conditions.append(bound)
        else:
            result = Filter(result, bound)
    return Pulled(result, tuple(conditions), inner.items)

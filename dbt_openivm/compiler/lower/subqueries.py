"""Lower subqueries in expressions: each is joined to the rows of the query around it, as a value or a condition.

- EXISTS, IN, ANY, and their negations, as a conjunct of WHERE: a semi or anti join.
- Elsewhere each is a value: a scalar subquery joined on the left, with EXISTS as "is there a group", IN and ANY in
  three-valued logic over such values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from dbt_openivm.compiler.algebra import (
    Aggregate,
    Call,
    Constant,
    Filter,
    Join,
    Operator,
    OuterJoin,
    Project,
    SemiJoin,
    TopK,
    column,
    unique_name,
)
from dbt_openivm.compiler.facts import ANY_ROW, CompileFacts
from dbt_openivm.compiler.lower.outer import outer_column, references_below, replace_references
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.lower.types import type_of
from dbt_openivm.compiler.lower.unnest import FOUND, Unnested, Unnester, bare_aggregate, empty_value, pull, with_found
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import (
    cast,
    column_names,
    conjunction,
    conjuncts,
    equal,
    operand,
    substitute,
)
from dbt_openivm.errors import UnsupportedError

Items = Mapping[str, exp.Expr]
Bind = Callable[[exp.Expr], exp.Expr]

ROWS, KNOWN = "openivm_rows", "openivm_known"
SOME, NULLS = "openivm_some", "openivm_nulls"
TOO_MANY = (
    "More than one row returned by a subquery used as an expression - scalar subqueries can only return a single row."
)
NEGATED: dict[type[exp.Binary], type[exp.Binary]] = {
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
}


class LowersQueries(Protocol):
    """What lowers the subqueries themselves."""

    @property
    def facts(self) -> CompileFacts: ...

    def inner(self, node: exp.Expr, scope: Scope) -> Operator:
        """The operator of a query that may refer to the columns of `scope`."""
        ...

    def number(self) -> int:
        """A number that no other subquery has."""
        ...


@dataclass
class Subqueries:
    """The subqueries over the rows of one scope, to whose operator they are joined."""

    lowers: LowersQueries
    scope: Scope

    # --- as a conjunct -----------------------------------------------------------------------------------------------

    def condition(self, node: exp.Expr, bind: Bind) -> bool:
        """Whether `node`, a conjunct of WHERE, is a semi or anti join; if so, it has been applied to the scope."""
        negated, bare = stripped(node)
        if isinstance(bare, exp.Exists):
            self.semi_join(self.lowers.inner(bare.this, self.scope), lambda _: [], anti=negated)
            return True
        found = quantifier(bare)
        if found is None:
            return False
        inner = self.lowers.inner(found.query, self.scope)
        left = bind(found.value)
        if negated or found.every:
            self.refuse_rows(found, left)
        if found.excludes(negated) and len(inner.columns) == 1:
            self.not_in(left, inner)
        elif found.every == negated:
            # x op ANY: some y is in the relation; NOT (x op ALL): some y surely is not
            self.semi_join(inner, lambda items: [is_false(found.compared(left, items), found.every)], anti=False)
        else:
            # x op ALL: there is no y for which x op y is not true; NOT (x op ANY): none for which it is not false
            self.semi_join(inner, lambda items: [is_not(found.compared(left, items), found.every)], anti=True)
        return True

    def refuse_rows(self, found: Quantified, left: exp.Expr) -> None:
        """Refuse rows where DuckDB does not compare them column by column, in three-valued logic."""
        if isinstance(left, exp.Tuple) and self.lowers.facts.old_rows:
            raise UnsupportedError(f"NOT IN for rows, or IN for rows as a value, before DuckDB 2.0{place(found.query)}")

    def semi_join(self, inner: Operator, on: Callable[[Items], list[exp.Expr]], anti: bool) -> None:
        """Keep the rows of the scope for which `inner` has a row (or, anti, has none) that fulfils `on`."""
        number, left = self.scope.number, self.scope.operator
        taken = {name.lower() for name in left.columns}
        pulled = pull(inner, number)
        if pulled is None:
            unnested = self.unnested(inner, keep_bare=False)
            right, items = unnested.operator, columns_of(inner)
        else:
            right, items = pulled.operator, pulled.items
        names = {name: unique_name(name, taken) for name in right.columns}
        flat = {name: column(out) for name, out in names.items()}
        if pulled is None:
            conditions = unnested.conditions(flat.__getitem__)
        else:
            outer = {name: column(name) for name in left.columns}
            conditions = [replace_references(substitute(c, flat), number, outer) for c in pulled.conditions]
        conditions += on({name: substitute(value, flat) for name, value in items.items()})
        pairs = tuple((out, name) for name, out in names.items())
        condition = conjunction(conditions) or exp.Boolean(this=True)
        self.scope.operator = SemiJoin(left, right, condition, pairs, anti)

    def not_in(self, left: exp.Expr, inner: Operator) -> None:
        """x NOT IN (..): no value equals x, and either there is none at all or neither x nor any of them is NULL."""
        some, nulls = self.presence(inner)
        self.semi_join(inner, lambda items: [equal(left, next(iter(items.values())))], anti=True)
        known = exp.And(this=exp.Not(this=is_null(left)), expression=exp.Not(this=exp.Paren(this=nulls)))
        allowed = exp.Or(this=exp.Not(this=exp.Paren(this=some)), expression=exp.Paren(this=known))
        self.scope.operator = Filter(self.scope.operator, allowed)

    # --- as a value --------------------------------------------------------------------------------------------------

    def value(self, node: exp.Expr, bind: Bind) -> exp.Expr | None:
        """The value of an expression that is a subquery or compares with one; None for any other."""
        if not is_subquery(node):
            return None
        found = quantifier(node)
        query = query_of(node)
        return self.value_of(node, self.lowers.inner(query, self.scope), None if found is None else bind(found.value))

    def value_of(self, node: exp.Expr, inner: Operator, left: exp.Expr | None) -> exp.Expr:
        """The value of a subquery that is lowered already; `left` is what it is compared with."""
        found = quantifier(node)
        if found is not None and left is not None:
            return found.negate(self.member(found.positive(), left, inner))
        if isinstance(node, exp.Exists):
            return self.any_row(inner)
        return self.scalar(inner, node)

    def member(self, found: Quantified, left: exp.Expr, inner: Operator) -> exp.Expr:
        """``left op ANY (inner)`` in three-valued logic."""
        self.refuse_rows(found, left)
        value = found.compared(self.outer_operand(left), columns_of(inner))
        true = self.any_row(Filter(inner, value))
        if found.comparison is exp.EQ and len(inner.columns) == 1:
            some, nulls = self.presence(inner)
            either = exp.And(this=is_null(left), expression=exp.Paren(this=some))
            unknown: exp.Expr = exp.Or(this=exp.Paren(this=either), expression=exp.Paren(this=nulls))
        else:
            unknown = self.any_row(Filter(inner, is_null(exp.Paren(this=value.copy()))))
        null = exp.cast(exp.Null(), exp.DataType.Type.BOOLEAN)
        branches = [exp.If(this=true, true=exp.Boolean(this=True)), exp.If(this=unknown, true=null)]
        return exp.Case(ifs=branches, default=exp.Boolean(this=False))

    def outer_operand(self, value: exp.Expr) -> exp.Expr:
        """`value` as a reference from within a subquery to columns of the scope's rows."""
        if isinstance(value, exp.Tuple):
            return exp.Tuple(expressions=[self.outer_operand(part) for part in value.expressions])
        if isinstance(value, exp.Column):
            return value.copy() if value.table else outer_column(self.scope.number, value.name)
        operator = self.scope.operator
        name = f"openivm_operand_{self.lowers.number()}"
        self.scope.operator = Project(operator, (*((n, column(n)) for n in operator.columns), (name, value)))
        return outer_column(self.scope.number, name)

    def any_row(self, inner: Operator) -> exp.Expr:
        """Whether the subquery has a row."""
        if not references_below(inner, self.scope.number):
            counted = Aggregate(Project(inner, ()), (), ((ROWS, count_star()),), scalar=True)
            return self.joined(Project(counted, ((SOME, more(ROWS)),)), [], SOME, "INNER")
        unnested = self.unnested(inner, keep_bare=False)
        groups = with_found(Aggregate(unnested.operator, keys_of(unnested), (), distinct=True))
        return exp.Not(this=is_null(self.joined(groups, [unnested], FOUND, "LEFT")))

    def presence(self, inner: Operator) -> tuple[exp.Expr, exp.Expr]:
        """Whether the subquery has a row, and whether its only column is NULL in one of them: one internal view."""
        value = column(inner.columns[0])
        known = Call("count", value, None, exp.Count(this=value.copy(), big_int=True), simple=True)
        calls = ((ROWS, count_star()), (KNOWN, known))
        nulls = exp.GT(this=column(ROWS), expression=column(KNOWN))
        if not references_below(inner, self.scope.number):
            counted = Aggregate(inner, (), calls, scalar=True)
            names = self.joined_all(Project(counted, ((SOME, more(ROWS)), (NULLS, nulls))), [], "INNER")
            return column(names[SOME]), column(names[NULLS])
        unnested = self.unnested(inner, keep_bare=False)
        keys = keys_of(unnested)
        groups = Aggregate(unnested.operator, keys, calls)
        shown = with_found(Project(groups, (*((name, column(name)) for name, _ in keys), (NULLS, nulls))))
        names = self.joined_all(shown, [unnested], "LEFT")
        some = exp.Not(this=is_null(column(names[FOUND])))
        return some, exp.Coalesce(this=column(names[NULLS]), expressions=[exp.Boolean(this=False)])

    def scalar(self, inner: Operator, node: exp.Expr) -> exp.Expr:
        if len(inner.columns) != 1:
            raise UnsupportedError(f"a subquery with {len(inner.columns)} columns as a value{place(node)}")
        bare = bare_aggregate(inner)
        correlated = bool(references_below(inner, self.scope.number))
        if not correlated and (bare is not None or one_row(inner) or first_row(inner)):
            sure = bare is not None and not filtered(inner)
            return self.joined(inner, [], inner.columns[0], "INNER" if sure else "LEFT")
        if correlated and one_row(inner):
            return self.of_row(inner)
        if correlated and first_row(inner):
            unnested = self.unnested(inner, keep_bare=False)
            return self.joined(unnested.operator, [unnested], inner.columns[0], "LEFT")
        if correlated and bare is not None:
            unnested = self.unnested(inner, keep_bare=True)
            empty = over_nothing(inner, self.scope, self.lowers.facts)
            if isinstance(empty, exp.Null):
                return self.joined(unnested.operator, [unnested], inner.columns[0], "LEFT")
            names = self.joined_all(with_found(unnested.operator), [unnested], "LEFT")
            exists = exp.Not(this=is_null(column(names[FOUND])))
            value = column(names[inner.columns[0]])
            return exp.Case(ifs=[exp.If(this=exists, true=value)], default=empty)
        name = inner.columns[0]
        first = exp.Anonymous(this="first", expressions=[column(name)])
        calls = (("openivm_first", Call("first", column(name), None, first, simple=True)), (ROWS, count_star()))
        if not correlated:
            result_op: Operator = Aggregate(inner, (), calls, scalar=True)
            names = self.joined_all(result_op, [], "INNER")
        else:
            unnested = self.unnested(inner, keep_bare=False)
            result_op = Aggregate(unnested.operator, keys_of(unnested), calls)
            names = self.joined_all(result_op, [unnested], "LEFT")
        if ANY_ROW in self.lowers.facts.settings:
            return column(names["openivm_first"])
        many = more(names[ROWS], 1)
        error = exp.Anonymous(this="error", expressions=[exp.Literal.string(TOO_MANY)])
        return exp.Case(ifs=[exp.If(this=many, true=error)], default=column(names["openivm_first"]))

    def of_row(self, inner: Operator) -> exp.Expr:
        """A subquery without FROM: an expression of the outer row, under the conditions of its WHERE."""
        items, conditions = chain(inner)
        value = replace_references(items[inner.columns[0]], self.scope.number, AsColumns())
        if not conditions:
            return exp.Paren(this=value)
        condition = conjunction([replace_references(c, self.scope.number, AsColumns()) for c in conditions])
        return exp.Case(ifs=[exp.If(this=condition, true=value)])

    # --- joining -----------------------------------------------------------------------------------------------------

    def unnested(self, inner: Operator, keep_bare: bool) -> Unnested:
        names = sorted(references_below(inner, self.scope.number))
        unnester = Unnester(self.scope.number, self.scope.operator, self.lowers.number())
        return unnester.unnest(inner, names, keep_bare)

    def joined(self, right: Operator, pairs: list[Unnested], name: str, side: str) -> exp.Expr:
        return column(self.joined_all(right, pairs, side)[name])

    def joined_all(self, right: Operator, pairs: list[Unnested], side: str) -> dict[str, str]:
        """Join the scope's rows with `right`, on the pairs of the subquery; returns what its columns are called."""
        number = self.lowers.number()
        names = {name: f"openivm_subquery_{number}_{index}" for index, name in enumerate(right.columns)}

        left = self.scope.operator
        entries = [(name, 0, name) for name in left.columns] + [(flat, 1, name) for name, flat in names.items()]
        if side == "INNER":
            self.scope.operator = Join((left, right), tuple(entries))
            return names
        conditions = [c for found in pairs for c in found.conditions(lambda name: column(names[name]))]
        on = conjunction(conditions) or exp.Boolean(this=True)
        self.scope.operator = OuterJoin(left, right, on, tuple(entries), left_kept=True, right_kept=False)
        return names


class Binds(Protocol):
    """What binds expressions over a scope whose `subqueries` are set."""

    @property
    def scope(self) -> Scope: ...

    def bind(self, node: exp.Expr) -> exp.Expr: ...


def apply_conditions(conditions: Sequence[exp.Expr], binder: Binds) -> None:
    """Filter the rows of a scope: first by what reads nothing else, then by subqueries."""
    scope = binder.scope
    subqueries = scope.subqueries
    assert isinstance(subqueries, Subqueries)
    for condition in conditions:
        if not has_subquery(condition):
            scope.operator = Filter(scope.operator, binder.bind(condition))
    parts = [part for condition in conditions if has_subquery(condition) for part in conjuncts(condition)]
    for part in sorted(parts, key=has_subquery):
        if not has_subquery(part) or not subqueries.condition(part, binder.bind):
            bound = binder.bind(part)  # this may join subqueries to the operator
            scope.operator = Filter(scope.operator, bound)


class AsColumns(dict[str, exp.Expr]):
    """Maps every name to the column of that name."""

    def __missing__(self, name: str) -> exp.Expr:
        return column(name)


@dataclass(frozen=True)
class Quantified:
    """``value op ANY (query)`` or, with `every`, ``value op ALL (query)``."""

    value: exp.Expr
    comparison: type[exp.Binary]
    query: exp.Expr
    every: bool

    def compared(self, left: exp.Expr, items: Items) -> exp.Expr:
        """``left op (columns of a row of the query)``; rows compare column by column, in three-valued logic.

        Raises:
            UnsupportedError: rows of other widths, or rows that are compared by order.
        """
        values = list(items.values())
        lefts = left.expressions if isinstance(left, exp.Tuple) else [left]
        if len(lefts) != len(values) or (len(values) > 1 and self.comparison not in (exp.EQ, exp.NEQ)):
            raise UnsupportedError(f"a comparison of {len(lefts)} values with {len(values)} columns{place(self.query)}")
        parts = [
            self.comparison(this=operand(one.copy()), expression=operand(other.copy()))
            for one, other in zip(lefts, values, strict=True)
        ]
        result: exp.Expr = parts[0]
        for part in parts[1:]:
            both = exp.And if self.comparison is exp.EQ else exp.Or
            result = both(this=result, expression=part)
        return result

    def excludes(self, negated: bool) -> bool:
        """Whether it says that no row equals the value: NOT IN, or ``<> ALL``."""
        return self.comparison is (exp.NEQ if self.every else exp.EQ) and self.every != negated

    def positive(self) -> Quantified:
        """The ANY whose value, negated for an ALL, is this one's: ``x < ALL q`` is ``NOT (x >= ANY q)``."""
        if not self.every:
            return self
        return Quantified(self.value, NEGATED[self.comparison], self.query, every=False)

    def negate(self, value: exp.Expr) -> exp.Expr:
        return exp.Not(this=exp.Paren(this=value)) if self.every else value


def quantifier(node: exp.Expr) -> Quantified | None:
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        return Quantified(as_tuple(node.this), exp.EQ, node.args["query"], every=False)
    if isinstance(node, tuple(NEGATED)) and isinstance(node.expression, exp.Any | exp.All):
        query = node.expression.this
        if isinstance(query, exp.Query):
            every = isinstance(node.expression, exp.All)
            value = as_tuple(node.this)
            return next(Quantified(value, kind, query, every) for kind in NEGATED if isinstance(node, kind))
    return None


def as_tuple(value: exp.Expr) -> exp.Expr:
    """``(a, b)``, which DuckDB writes as ``row(a, b)`` in the text of a view."""
    if isinstance(value, exp.Anonymous) and value.name.lower() == "row":
        return exp.Tuple(expressions=value.expressions)
    return value


def has_subquery(node: exp.Expr) -> bool:
    return any(is_subquery(part) for part in node.walk())


def is_subquery(node: exp.Expr) -> bool:
    """Whether an expression is a subquery or compares with one."""
    return isinstance(node, exp.Subquery | exp.Exists) or quantifier(node) is not None


def query_of(node: exp.Expr) -> exp.Expr:
    """The query in it."""
    found = quantifier(node)
    if found is not None:
        return found.query
    return node.this if isinstance(node, exp.Exists) else node


def stripped(node: exp.Expr) -> tuple[bool, exp.Expr]:
    """(whether it is negated, what stands below NOT and parentheses)."""
    negated = False
    while isinstance(node, exp.Not | exp.Paren):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    return negated, node


def is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=operand(value.copy()), expression=exp.Null())


def is_false(value: exp.Expr, wanted: bool) -> exp.Expr:
    """That `value` is false, or, not `wanted`, the value itself."""
    return exp.Is(this=exp.Paren(this=value), expression=exp.Boolean(this=False)) if wanted else value


def is_not(value: exp.Expr, truth: bool) -> exp.Expr:
    """That `value` is anything but `truth`."""
    return exp.Not(this=exp.Paren(this=exp.Is(this=exp.Paren(this=value), expression=exp.Boolean(this=truth))))


def columns_of(operator: Operator) -> Items:
    return {name: column(name) for name in operator.columns}


def keys_of(unnested: Unnested) -> tuple[tuple[str, exp.Expr], ...]:
    """The outer values as keys of a grouping."""
    return tuple((hidden, column(hidden)) for _, hidden in unnested.pairs)


def more(name: str, than: int = 0) -> exp.Expr:
    return exp.GT(this=column(name), expression=exp.Literal.number(than))


def count_star() -> Call:
    return Call("count_star", None, None, exp.Count(this=exp.Star(), big_int=True), simple=True)


def filtered(operator: Operator) -> bool:
    """Whether a condition stands above the aggregate or row at the end of the chain."""
    while isinstance(operator, Filter | Project):
        if isinstance(operator, Filter):
            return True
        operator = operator.child
    return False


def one_row(operator: Operator) -> bool:
    """Whether there is no more than one row because there is no FROM."""
    while isinstance(operator, Filter | Project):
        operator = operator.child
    return isinstance(operator, Constant) and len(operator.rows) == 1


def first_row(operator: Operator) -> bool:
    """Whether there is no more than one row because of LIMIT 1."""
    while isinstance(operator, Filter | Project):
        operator = operator.child
    return isinstance(operator, TopK) and not operator.percent and operator.limit == exp.Literal.number(1)


def chain(operator: Operator) -> tuple[dict[str, exp.Expr], list[exp.Expr]]:
    """A chain of filters and projections as (columns, conditions) over what stands at its end."""
    if isinstance(operator, Filter):
        items, conditions = chain(operator.child)
        return items, [*conditions, substitute(operator.predicate, items)]
    if isinstance(operator, Project):
        items, conditions = chain(operator.child)
        return {name: substitute(value, items) for name, value in operator.items}, conditions
    if isinstance(operator, Constant):
        return dict(zip(operator.names, operator.rows[0], strict=True)), []
    return {name: column(name) for name in operator.columns}, []


def over_nothing(operator: Operator, around: Scope, facts: CompileFacts) -> exp.Expr:
    """The value of a subquery with an aggregate but no GROUP BY where there are no rows to aggregate."""
    bare = bare_aggregate(operator)
    assert bare is not None
    empty = {name: empty_value(call.function) for name, call in bare.calls}
    items, conditions = chain(operator)
    shown = items[operator.columns[0]]
    if not isinstance(shown, exp.Column):
        # a NULL without a type would leave the type to what stands beside it: COALESCE(NULL, 1) is an INTEGER
        read = [name for name in column_names(shown) if isinstance(empty.get(name), exp.Null)]
        types = {
            name: type_of(bare, column(name), facts, f"the aggregate {name}", around).text for name in sorted(read)
        }
        empty |= {name: cast(exp.Null(), type_) for name, type_ in types.items()}
    value = replace_references(substitute(shown, empty), around.number, AsColumns())
    if not conditions:
        return value
    kept = [replace_references(substitute(part, empty), around.number, AsColumns()) for part in conditions]
    return exp.Case(ifs=[exp.If(this=conjunction(kept), true=value)])

"""SemiJoin and anti join: a row of the left stays for as long as the right holds a match (or, anti, holds none).

    delta(L semi R) = delta(L) semi new(R)  +  old(L) x ([matched in new(R)] - [matched in old(R)])

The second part concerns rows whose match appeared or vanished, and these match a row of delta(R). How many matches a
row had is how many it has less what delta(R) brought, so the old R is never read. Rows of L are told apart by what `on`
reads of them. In the usual case, a conjunction of equalities between columns of one type, they need not even be looked
up: the keys of delta(R) whose existence changed are found on the right alone, and mostly there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import SemiJoin
from dbt_openivm.compiler.fragment import Fragment, over, times
from dbt_openivm.compiler.keys import EXACT, key_expressions
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form, Forms
from dbt_openivm.compiler.rules.references import empty_products
from dbt_openivm.names import MULTIPLICITY

MATCHES = "openivm_matches"
CHANGE = "openivm_change"


@dataclass(frozen=True)
class Condition:
    """`on` taken apart.

    Attributes:
        pairs: equalities (left side, right side).
        right: conjuncts that read columns of the right only.
        rest: the others.
    """

    pairs: tuple[tuple[exp.Expr, exp.Expr], ...]
    right: tuple[exp.Expr, ...]
    rest: tuple[exp.Expr, ...]


def take_apart(join: SemiJoin) -> Condition:
    names = {name for name, _ in join.right_names}
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    right: list[exp.Expr] = []
    rest: list[exp.Expr] = []
    for part in sql.conjuncts(join.on):
        pair = equality(part, names)
        if pair is not None:
            pairs.append(pair)
        elif sql.column_names(part) <= names:
            right.append(part)
        else:
            rest.append(part)
    return Condition(tuple(pairs), tuple(right), tuple(rest))


def equality(part: exp.Expr, right: set[str]) -> tuple[exp.Expr, exp.Expr] | None:
    """(left side, right side) of ``left = right`` in either order."""
    if not isinstance(part, exp.EQ):
        return None
    for one, other in ((part.this, part.expression), (part.expression, part.this)):
        reads, others = sql.column_names(one), sql.column_names(other)
        if reads and reads.isdisjoint(right) and others and others <= right:
            return one, other
    return None


def delta(join: SemiJoin, context: Context, forms: Forms) -> list[Fragment]:
    left, right = forms.delta(join.left, context), forms.delta(join.right, context)
    fragments = [matched(join, fragment, context, forms.new) for fragment in left]
    if right and (1, 0) not in empty_products(join, context):
        fragments += transitions(join, right, context, forms)
    return fragments


def whole(join: SemiJoin, context: Context, form: Form) -> list[Fragment]:
    return [matched(join, fragment, context, form) for fragment in form(join.left, context)]


def matched(join: SemiJoin, fragment: Fragment, context: Context, form: Form) -> Fragment:
    """The rows of a fragment of the left that have a match (or, anti, have none)."""
    right = context.single(form(join.right, context.with_positive()), join.right.columns)
    return native(join, fragment, right, context, anti=join.anti)


def native(join: SemiJoin, left: Fragment, right: Fragment, context: Context, anti: bool) -> Fragment:
    """DuckDB's own semi or anti join.

    Not EXISTS: for a correlated subquery DuckDB takes equal outer values for one, even 30 days and 1 month.
    """
    weighted = left.weight is not None
    one, other = context.alias("openivm_left"), context.alias("openivm_right")
    columns = {name: sql.qualified(one, name) for name in join.columns}
    items = sql.at_least_one([sql.named(value, name) for name, value in columns.items()])
    if weighted:
        items.append(sql.named(sql.qualified(one, MULTIPLICITY), MULTIPLICITY))
    query = sql.select(items, [sql.derived(left.select(sql.at_least_one(left.all_items()), weighted), one)])
    matches = sql.derived(right.select(sql.at_least_one(right.all_items())), other)
    inner = {name: sql.qualified(other, column) for name, column in join.right_names}
    on = sql.substitute(join.on, {**columns, **inner})
    query.set("joins", [exp.Join(this=matches, kind="ANTI" if anti else "SEMI", on=on)])
    return over(query, context.alias("openivm_semi"), join.columns, weighted)


def bind(join: SemiJoin, value: exp.Expr, left: Mapping[str, exp.Expr], right: Fragment) -> exp.Expr:
    """An expression over both sides, as one over their sources."""
    return sql.substitute(value, {**left, **{name: right.columns[inner] for name, inner in join.right_names}})


def transitions(join: SemiJoin, changes: list[Fragment], context: Context, forms: Forms) -> list[Fragment]:
    """Old rows of the left whose match appeared or vanished."""
    condition = take_apart(join)
    if not condition.rest and comparable(join, condition):
        return by_key(join, condition, changes, context, forms)
    return by_row(join, changes, context, forms)


def comparable(join: SemiJoin, condition: Condition) -> bool:
    """Whether equal keys of the right are equal to the same rows of the left.

    ``1 = '01'`` and ``1 = '1'``, or two spellings under a collation, match one row through different keys.
    """
    if not condition.pairs:
        return True
    if join.types is None:
        return False
    width = len(join.left.columns)
    right = dict(zip(join.right.columns, join.types[width:], strict=True))
    types = dict(zip(join.left.columns, join.types[:width], strict=True))
    types |= {name: right[inner] for name, inner in join.right_names}
    return all(
        isinstance(one, exp.Column)
        and isinstance(other, exp.Column)
        and types[one.name] == types[other.name]
        and EXACT.fullmatch(types[one.name]) is not None
        for one, other in condition.pairs
    )


def by_key(
    join: SemiJoin, condition: Condition, changes: list[Fragment], context: Context, forms: Forms
) -> list[Fragment]:
    """Find the keys on the right whose existence changed, then the rows of the left with these keys."""
    names = [f"openivm_key_{index}" for index in range(len(condition.pairs))]

    def keys(fragment: Fragment) -> tuple[list[exp.Expr], list[exp.Expr]]:
        values = [bind(join, value, {}, fragment) for _, value in condition.pairs]
        return values, [bind(join, value, {}, fragment) for value in condition.right]

    touched = []
    for fragment in changes:
        values, conditions = keys(fragment)
        known = [exp.Not(this=exp.Is(this=sql.operand(value.copy()), expression=exp.Null())) for value in values]
        items = [sql.named(value, name) for value, name in zip(values, names, strict=True)]
        touched.append(fragment.select(items, weighted=True, extra=[*conditions, *known]))
    changed = context.keep(summed(touched, names, nonzero=True), "touched", "find the touched keys")
    present = []
    for fragment in forms.new(join.right, context):
        values, conditions = keys(fragment)
        alias = context.alias("touched")
        items = [sql.named(sql.qualified(alias, name), name) for name in names]
        same = [sql.equal(value, sql.qualified(alias, name)) for value, name in zip(values, names, strict=True)]
        query = fragment.select(items, weighted=True, extra=[*conditions, *same])
        present.append(sql.with_source(query, sql.table(changed, alias)))
    turned = turns(changed, summed(present, names), None, names, context)
    fragments = []
    for fragment in forms.old(join.left, context):
        alias = context.alias("turned")
        pairs = zip(condition.pairs, names, strict=True)
        same = [sql.equal(fragment.bind(left), sql.qualified(alias, name)) for (left, _), name in pairs]
        fragments.append(turning(join, fragment, sql.table(turned, alias), alias, same))
    return fragments


def by_row(join: SemiJoin, changes: list[Fragment], context: Context, forms: Forms) -> list[Fragment]:
    """Find the rows of the left that match a changed row, then how many matches each had and has."""
    right = context.keep_rows(changes, join.right.columns, "changes", "keep the changes of the right side")
    columns = join.left.columns
    touched = [native(join, fragment, right, context, anti=False) for fragment in forms.old(join.left, context)]
    rows = context.keep_rows(touched, columns, "candidates", "find the rows that match a change")
    read = sorted(sql.column_names(join.on) & set(columns))
    values = [rows.columns[column] for column in read]
    values += exact_keys(values, [left_types(join).get(column, "") for column in read])
    names = [f"openivm_key_{index}" for index in range(len(values))]
    items = [sql.named(value.copy(), name) for value, name in zip(values, names, strict=True)]
    distinct = sql.select(sql.at_least_one(items), [sql.placeable(source) for source in rows.sources])
    distinct.set("distinct", exp.Distinct())
    kept = context.keep(distinct, "touched", "find the touched keys")

    def matches(fragments: list[Fragment]) -> exp.Expr:
        found = []
        for fragment in fragments:
            alias = context.alias("touched")
            left = {column: sql.qualified(alias, name) for column, name in zip(read, names, strict=False)}
            shown = [sql.named(sql.qualified(alias, name), name) for name in names]
            query = fragment.select(shown, weighted=True, extra=[bind(join, join.on, left, fragment)])
            found.append(sql.with_source(query, sql.table(kept, alias)))
        return summed(found, names)

    turned = turns(kept, matches(forms.new(join.right, context)), matches([right]), names, context)
    alias = context.alias("turned")
    pairs = zip(values, names, strict=True)
    same = [sql.null_safe_equal(value.copy(), sql.qualified(alias, name)) for value, name in pairs]
    return [turning(join, rows, sql.table(turned, alias), alias, same)]


def left_types(join: SemiJoin) -> dict[str, str]:
    return {} if join.types is None else dict(zip(join.left.columns, join.types, strict=False))


def exact_keys(values: Sequence[exp.Expr], types: Sequence[str]) -> list[exp.Expr]:
    """What tells apart values that DuckDB calls equal and a condition may not: 30 days and 1 month."""
    found = []
    for value, type_ in zip(values, types, strict=True):
        text = sql.text(value)
        found += [parse_one(key, dialect=sql.DIALECT) for key in key_expressions(text, type_) if key != text]
    return found


def summed(queries: list[exp.Select], names: list[str], nonzero: bool = False) -> exp.Select:
    """The weights of rows (names.., weight) added up a key."""
    total = exp.Coalesce(this=exp.Sum(this=exp.Column(this=sql.identifier(MULTIPLICITY))), expressions=[sql.zero()])
    keys = [exp.Column(this=sql.identifier(name)) for name in names]
    query = sql.select(
        [*keys, sql.named(sql.cast(total, "BIGINT"), MATCHES)],
        [sql.derived(sql.union_all(queries), "openivm_rows")],
        group=[key.copy() for key in keys],
    )
    if nonzero:
        query.set("having", exp.Having(this=exp.NEQ(this=total.copy(), expression=sql.zero())))
    return query


def turns(changed: str, present: exp.Expr, brought: exp.Expr | None, names: list[str], context: Context) -> str:
    """Keep the keys whose existence changed, with +1 where it began and -1 where it ended.

    Args:
        changed: the table of touched keys; it holds the matches that the delta brought unless `brought` has them.
        present: matches in the new rows, by key.
        brought: matches in the delta, by key.
    """

    def matches(alias: str) -> exp.Expr:
        return exp.Coalesce(this=sql.qualified(alias, MATCHES), expressions=[sql.zero()])

    now, came = matches("n"), matches("k" if brought is None else "c")
    before = exp.Paren(this=exp.Sub(this=now.copy(), expression=came))
    exists, existed = (exp.Paren(this=exp.GT(this=count, expression=sql.zero())) for count in (now, before))
    change = exp.Case(ifs=[exp.If(this=exists.copy(), true=sql.one())], default=exp.Neg(this=sql.one()))
    items = [sql.named(sql.qualified("k", name), name) for name in names]
    query = sql.select(
        [*items, sql.named(change, CHANGE)],
        [sql.table(changed, "k")],
        [exp.NEQ(this=exists, expression=existed)],
    )
    others = [("n", present)] + ([] if brought is None else [("c", brought)])
    joins = []
    for alias, rows in others:
        same = [sql.null_safe_equal(sql.qualified(alias, name), sql.qualified("k", name)) for name in names]
        on = sql.conjunction(same) or exp.Boolean(this=True)
        joins.append(exp.Join(this=sql.derived(rows, alias), side="LEFT", on=on))
    query.set("joins", joins)
    return context.keep(query, "turned", "find the keys whose match appeared or vanished")


def turning(join: SemiJoin, fragment: Fragment, source: exp.Expr, alias: str, same: list[exp.Expr]) -> Fragment:
    """Rows of the left, each counted as its match turned."""
    change: exp.Expr = sql.qualified(alias, CHANGE)
    weight = times(fragment.weight, exp.Neg(this=change) if join.anti else change)
    return Fragment((*fragment.sources, source), (*fragment.conditions, *same), fragment.columns, weight)

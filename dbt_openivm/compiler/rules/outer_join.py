"""OuterJoin: the pairs of an inner join, and the unmatched rows of an anti join padded with NULL.

    delta(L left join R)  =  delta(L) left join new(R)  +  old(L) join delta(R)
                             +  old(L) x ([unmatched in new(R)] - [unmatched in old(R)]) x NULLs

A left join is linear in its left side, so the first part is DuckDB's own; the last part is that of an anti join. A
right join is the mirror image, and a full join has the unmatched rows of the right besides. As a whole it is DuckDB's
own outer join, over rows with positive weights on the side that may be padded.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Operator, OuterJoin, Project, SemiJoin, column
from dbt_openivm.compiler.fragment import Fragment, over, times
from dbt_openivm.compiler.rules import semi_join
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form, Forms
from dbt_openivm.compiler.rules.references import empty_products
from dbt_openivm.names import MULTIPLICITY


@dataclass(frozen=True)
class Side:
    """One input with its columns named as the join names them.

    Attributes:
        types: their types, None where unknown.
        changes: its delta.
    """

    operator: Operator
    types: tuple[str, ...] | None
    changes: tuple[Fragment, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.operator.columns

    def nulls(self) -> dict[str, exp.Expr]:
        """The columns of a row that is not there."""
        types: tuple[str | None, ...] = self.types or (None,) * len(self.columns)
        return {
            name: exp.Null() if type_ is None else sql.cast(exp.Null(), type_)
            for name, type_ in zip(self.columns, types, strict=True)
        }


def side(join: OuterJoin, index: int) -> Side:
    child = join.inputs[index]
    names = [(out, inner) for out, position, inner in join.names if position == index]
    types = None
    if join.types is not None:
        start = 0 if index == 0 else len(join.left.columns)
        known = dict(zip(child.columns, join.types[start:], strict=False))
        types = tuple(known[inner] for _, inner in names)
    return Side(Project(child, tuple((out, column(inner)) for out, inner in names)), types)


def delta(join: OuterJoin, context: Context, forms: Forms) -> list[Fragment]:
    left, right = (changed(side(join, index), context, forms) for index in (0, 1))
    if not join.left_kept:  # a right join
        left, right = right, left
    parts = [outer(join, change, right, context, forms) for change in left.changes]
    parent = 1 if join.left_kept else 0
    if right.changes and (parent, 1 - parent) not in empty_products(join, context):
        before = context.single(forms.old(left.operator, context), left.columns)
        parts += [inner(join, before, context.single(list(right.changes), right.columns))]
        parts += unmatched(join, left, right, context, forms, others=True)
    if join.left_kept and join.right_kept:
        parts += unmatched(join, right, left, context, forms, others=False)
    return [ordered(join, part) for part in parts]


def changed(one: Side, context: Context, forms: Forms) -> Side:
    """A side with its delta, which several parts read: kept, unless it is a plain read of a change log."""
    changes = forms.delta(one.operator, context)
    simple = len(changes) <= 1 and not any(isinstance(op, OuterJoin | SemiJoin) for op in one.operator.walk())
    if changes and not simple:
        changes = [context.keep_rows(changes, one.columns, "changes", "keep the changes of one side")]
    return Side(one.operator, one.types, tuple(changes))


def outer(join: OuterJoin, change: Fragment, right: Side, context: Context, forms: Forms) -> Fragment:
    """Changed rows with their matches, or with NULLs if they have none."""
    rows = context.single(forms.new(right.operator, context.with_positive()), right.columns)
    return native(join, change, rows, "LEFT", context)


def inner(join: OuterJoin, left: Fragment, right: Fragment) -> Fragment:
    columns = {**left.columns, **right.columns}
    condition = sql.substitute(join.on, columns)
    weight = times(left.weight, right.weight)
    return Fragment((*left.sources, *right.sources), (*left.conditions, *right.conditions, condition), columns, weight)


def unmatched(join: OuterJoin, left: Side, right: Side, context: Context, forms: Forms, others: bool) -> list[Fragment]:
    """The changes of the anti join, padded.

    Args:
        others: whether the changed rows of `left` themselves are counted elsewhere.
    """
    types = None if left.types is None or right.types is None else left.types + right.types
    names = tuple((name, name) for name in right.columns)
    anti = SemiJoin(left.operator, right.operator, join.on, names, anti=True, types=types)
    rows = [] if others else [semi_join.matched(anti, change, context, forms.new) for change in left.changes]
    if right.changes:
        rows += semi_join.transitions(anti, list(right.changes), context, forms)
    nulls = right.nulls()
    return [Fragment(row.sources, row.conditions, {**row.columns, **nulls}, row.weight) for row in rows]


def whole(join: OuterJoin, context: Context, form: Form) -> list[Fragment]:
    left, right = side(join, 0), side(join, 1)
    padded = {0: join.right_kept, 1: join.left_kept}
    rows = [
        context.single(form(one.operator, context.with_positive() if padded[index] else context), one.columns)
        for index, one in enumerate((left, right))
    ]
    kind = "FULL" if join.left_kept and join.right_kept else "LEFT" if join.left_kept else "RIGHT"
    return [ordered(join, native(join, rows[0], rows[1], kind, context))]


def opaque(weight: exp.Expr) -> exp.Expr:
    """The weight in words that DuckDB has no statistics of.

    Where these tell that the right side is empty, it takes the outer join for empty, too, and so a sum over it for
    zero: ``HAVING sum(weight) <> 0`` is never true then (seen in 2.0.1).
    """
    return exp.BitwiseOr(this=exp.Paren(this=weight), expression=sql.zero())


def native(join: OuterJoin, left: Fragment, right: Fragment, kind: str, context: Context) -> Fragment:
    """DuckDB's own outer join; the weight of a row that is not there is 1."""
    weighted = left.weight is not None or right.weight is not None
    sides = []
    for fragment, alias in ((left, context.alias("openivm_left")), (right, context.alias("openivm_right"))):
        items = sql.at_least_one(fragment.all_items())
        sides.append((alias, sql.derived(fragment.select(items, fragment.weight is not None), alias)))
    columns = {
        name: sql.qualified(alias, name)
        for fragment, (alias, _) in zip((left, right), sides, strict=True)
        for name in fragment.columns
    }
    weights = [
        exp.Coalesce(this=sql.qualified(alias, MULTIPLICITY), expressions=[sql.one()])
        for fragment, (alias, _) in zip((left, right), sides, strict=True)
        if fragment.weight is not None
    ]
    items = sql.at_least_one([sql.named(value, name) for name, value in columns.items()])
    if weighted:
        weight = weights[0] if len(weights) == 1 else exp.Mul(this=weights[0], expression=weights[1])
        items.append(sql.named(opaque(weight), MULTIPLICITY))
    query = sql.select(items, [sides[0][1]])
    query.set("joins", [exp.Join(this=sides[1][1], side=kind, on=sql.substitute(join.on, columns))])
    return over(query, context.alias("openivm_outer"), tuple(columns), weighted)


def ordered(join: OuterJoin, fragment: Fragment) -> Fragment:
    """The columns in the join's order."""
    columns = {name: fragment.columns[name] for name in join.columns}
    return Fragment(fragment.sources, fragment.conditions, columns, fragment.weight)

"""LIMIT and OFFSET that subqueries give: the rows are numbered in their order, and joined with the bounds."""

from __future__ import annotations

from sqlglot import exp

from dbt_openivm.compiler.algebra import Constant, Filter, Join, Operator, Project, column, exactly, names_of
from dbt_openivm.compiler.lower.expressions import Binder
from dbt_openivm.compiler.lower.limits import Limit, Order, numbered_rows
from dbt_openivm.compiler.lower.reading import LAST
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.lower.subqueries import LowersQueries, Subqueries
from dbt_openivm.compiler.sql import cast, zero

LIMIT, OFFSET = "openivm_limit", "openivm_offset"


def within(operator: Operator, order: Order, limit: Limit, lowers: LowersQueries) -> Operator:
    """The rows whose place in the order lies within the bounds; NULL is no limit, and no offset."""
    bounds = bounds_of(limit, lowers)
    numbered, number = numbered_rows(operator, (), (*order, *ties(operator, order)))
    inputs = (numbered, bounds)
    names = [(name, index, name) for index, child in enumerate(inputs) for name in child.columns]
    first: Operator = Join(inputs, tuple(names))
    skipped: exp.Expr = zero()
    if OFFSET in bounds.columns:
        skipped = exp.Coalesce(this=column(OFFSET), expressions=[zero()])
        first = Filter(first, exp.GT(this=column(number), expression=skipped))
    if LIMIT in bounds.columns:
        inside = exp.LTE(this=column(number), expression=exp.Add(this=skipped.copy(), expression=column(LIMIT)))
        first = Filter(first, exp.Or(this=inside, expression=exp.Is(this=column(LIMIT), expression=exp.Null())))
    return exactly(first, operator.columns)


def bounds_of(limit: Limit, lowers: LowersQueries) -> Operator:
    """One row with the limit and the offset: unsigned numbers for DuckDB, here in a type that holds their sum."""
    scope = Scope(Constant(((),), ()), [], number=lowers.number())
    scope.subqueries = Subqueries(lowers, scope)
    binder = Binder(scope, lowers.facts)
    items = [
        (name, cast(cast(binder.bind(value), "UBIGINT"), "HUGEINT"))
        for name, value in ((LIMIT, limit.limit), (OFFSET, limit.offset))
        if value is not None
    ]
    return Project(scope.operator, tuple(items))  # after the items, whose subqueries were joined to it


def ties(operator: Operator, order: Order) -> Order:
    """The columns that are not ordered by: rows that the order leaves tied go by them, whenever they are numbered."""
    ordered = names_of(order)
    others = [name for name in operator.columns if name not in ordered]
    return tuple(
        exp.Ordered(this=column(name), desc=False, nulls_first=False, with_fill=LAST.copy()) for name in others
    )

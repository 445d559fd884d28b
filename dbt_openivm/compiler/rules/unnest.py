"""Unnest is linear: each row becomes as many as its longest list has elements, all of the row's weight."""

from __future__ import annotations

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Unnest
from dbt_openivm.compiler.fragment import Fragment, over
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form, Forms


def delta(operator: Unnest, context: Context, forms: Forms) -> list[Fragment]:
    return whole(operator, context, forms.delta)


def whole(operator: Unnest, context: Context, form: Form) -> list[Fragment]:
    return [elements(operator, fragment, context) for fragment in form(operator.child, context)]


def elements(operator: Unnest, fragment: Fragment, context: Context) -> Fragment:
    """A derived table: UNNEST stands in a select list, where several go side by side, and nothing may be above it."""
    weighted = fragment.weight is not None
    lists = [
        sql.named(exp.Anonymous(this="unnest", expressions=[fragment.bind(value)]), name)
        for name, value in operator.items
    ]
    query = fragment.select([*fragment.all_items(), *lists], weighted)
    return over(query, context.alias("openivm_elements"), operator.columns, weighted)

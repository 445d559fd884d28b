"""Aggregate as rows: used only where a query is read as a whole (type probes), never in a delta.

Maintenance of an aggregate is a program of its own (see `dbt_openivm.compiler.grouped`): below another operator it is
split off into an internal view first, so no delta rule ever meets one.
"""

from __future__ import annotations

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Aggregate, column
from dbt_openivm.compiler.fragment import Fragment, over
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form


def whole(operator: Aggregate, context: Context, form: Form) -> list[Fragment]:
    """One fragment: the keys are computed below the grouping, where a constant cannot be taken for an ordinal."""
    source = context.single(form(operator.child, context), operator.child.columns)
    keys = [sql.named(source.bind(value), name) for name, value in operator.keys]
    inner = source.select(sql.at_least_one([*keys, *source.all_items()]))
    calls = [sql.named(call.expression.copy(), name) for name, call in operator.calls]
    names = [column(name) for name, _ in operator.keys]
    group = None if operator.scalar else [name.copy() for name in names]
    query = sql.select([*names, *calls], [sql.derived(inner, context.alias("openivm_rows"))], group=group)
    return [over(query, context.alias("openivm_groups"), operator.columns, weighted=False)]

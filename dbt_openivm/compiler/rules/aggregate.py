"""Aggregate as rows: used only where a query is read as a whole (type probes), never in a delta.

Maintenance of an aggregate is a program of its own (see `dbt_openivm.compiler.grouped`): below another operator it is
split off into an internal view first, so no delta rule ever meets one.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Aggregate
from dbt_openivm.compiler.fragment import Fragment, over
from dbt_openivm.compiler.rules.context import Context


def rows(operator: Aggregate, context: Context, child: list[Fragment]) -> list[Fragment]:
    source = context.single(child, operator.child.columns)
    keys = [sql.named(source.bind(value), name) for name, value in operator.keys]
    calls = [sql.named(source.bind(call.expression), name) for name, call in operator.calls]
    query = source.select([*keys, *calls])
    if not operator.scalar:
        query.set("group", exp.Group(expressions=[source.bind(value) for _, value in operator.keys]))
    return [over(query, context.alias("openivm_groups"), operator.columns, weighted=False)]

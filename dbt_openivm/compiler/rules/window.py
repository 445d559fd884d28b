"""Window calls as rows. Their maintenance is a program of its own (see `dbt_openivm.compiler.keyed`)."""

from __future__ import annotations

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Window
from dbt_openivm.compiler.fragment import Fragment, over
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form


def whole(operator: Window, context: Context, form: Form) -> list[Fragment]:
    fragment = rows(operator, [form(operator.child, context)], context)
    return [Fragment(fragment.sources, (), {name: fragment.columns[name] for name in operator.columns})]


def rows(operator: Window, inputs: list[list[Fragment]], context: Context) -> Fragment:
    """The operator's rows with its keys beside them, over rows of the input that weigh 1 each."""
    child = context.single(inputs[0], operator.child.columns)
    keys = [sql.named(child.bind(value), name) for name, value in operator.keys]
    inner = child.select(sql.at_least_one([*child.all_items(), *keys]))
    shown = [*operator.child.columns, *operator.key_names]
    items: list[exp.Expr] = [exp.Column(this=sql.identifier(name)) for name in shown]
    items += [sql.named(value.copy(), name) for name, value in operator.calls]
    query = sql.select(items, [sql.derived(inner, context.alias("openivm_rows"))])
    names = (*shown, *(name for name, _ in operator.calls))
    return over(query, context.alias("openivm_windows"), names, weighted=False)

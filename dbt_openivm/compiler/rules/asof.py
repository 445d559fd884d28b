"""ASOF joins as rows. Their maintenance is a program of its own (see `dbt_openivm.compiler.keyed`)."""

from __future__ import annotations

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Asof
from dbt_openivm.compiler.fragment import Fragment, over
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form


def whole(operator: Asof, context: Context, form: Form) -> list[Fragment]:
    fragment = rows(operator, [form(child, context) for child in operator.inputs], context)
    return [Fragment(fragment.sources, (), {name: fragment.columns[name] for name in operator.columns})]


def rows(operator: Asof, inputs: list[list[Fragment]], context: Context) -> Fragment:
    """DuckDB's own ASOF join, with its keys beside it, over rows of the inputs that weigh 1 each."""
    columns: dict[str, exp.Expr] = {}
    sides = []
    for index, (child, fragments) in enumerate(zip(operator.inputs, inputs, strict=True)):
        fragment = context.single(fragments, child.columns)
        alias = context.alias("openivm_right" if index else "openivm_left")
        names = [(out, inner) for out, position, inner in operator.names if position == index]
        items = [sql.named(fragment.columns[inner].copy(), out) for out, inner in names]
        columns |= {out: sql.qualified(alias, out) for out, _ in names}
        sides.append(sql.derived(fragment.select(items), alias))
    items = [sql.named(columns[name].copy(), name) for name in operator.columns]
    held = [sql.substitute(value, columns) for value in operator.held_keys]
    items += [sql.named(value, name) for name, value in zip(operator.key_names, held, strict=True)]
    query = sql.select(items, [sides[0]])
    on = sql.substitute(operator.on, columns)
    query.set("joins", [exp.Join(this=sides[1], method="ASOF", side=operator.side, on=on)])
    return over(query, context.alias("openivm_asof"), (*operator.columns, *operator.key_names), weighted=False)

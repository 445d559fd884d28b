"""The first rows in an order. Their maintenance is a program of its own (see `dbt_openivm.compiler.top_k`)."""

from __future__ import annotations

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import TopK, names_of
from dbt_openivm.compiler.facts import Column
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.keys import key_expressions
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form
from dbt_openivm.names import quote


def whole(operator: TopK, context: Context, form: Form) -> list[Fragment]:
    child = context.single(form(operator.child, context), operator.child.columns)
    rows = f"({sql.text(child.select(child.all_items()))}) AS openivm_rows"
    alias = context.alias("openivm_first")
    source = sql.table(f"({first_rows(operator, rows)})", alias)
    return [Fragment((source,), (), {name: sql.qualified(alias, name) for name in operator.columns})]


def first_rows(operator: TopK, source: str) -> str:
    """SELECT the first rows of what `source` is in FROM."""
    query = f"SELECT * FROM {source} ORDER BY {', '.join([*map(sql.text, operator.order), *ties(operator)])}"
    if operator.limit is not None:
        query += f" LIMIT ({sql.text(operator.limit)}){' %' if operator.percent else ''}"
    if operator.offset is not None:
        query += f" OFFSET ({sql.text(operator.offset)})"
    return query


def ties(operator: TopK) -> list[str]:
    """Whatever tells rows apart that the order does not."""
    types = operator.types or ("",) * len(operator.columns)
    ordered = names_of(operator.order)
    found: list[str] = []
    for item in map(Column, operator.columns, types):
        keys = key_expressions(quote(item.name), item.type)
        found += [key for key in keys if item.name not in ordered or key != quote(item.name)]
    return found

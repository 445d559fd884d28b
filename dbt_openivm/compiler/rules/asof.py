"""ASOF joins as rows. Their maintenance is a program of its own (see `dbt_openivm.compiler.keyed`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Asof
from dbt_openivm.compiler.fragment import Fragment, over
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form

ROW = "openivm_row"
RIGHT = "openivm_right_rows"
MET = "openivm_met"


def whole(operator: Asof, context: Context, form: Form) -> list[Fragment]:
    fragment = rows(operator, [form(child, context) for child in operator.inputs], context)
    return [Fragment(fragment.sources, (), {name: fragment.columns[name] for name in operator.columns})]


def rows(operator: Asof, inputs: list[list[Fragment]], context: Context) -> Fragment:
    """DuckDB's own ASOF join, with its keys beside it, over rows of the inputs that weigh 1 each."""
    columns: dict[str, exp.Expr] = {}
    sides: list[tuple[exp.Expr, str]] = []
    for index, (child, fragments) in enumerate(zip(operator.inputs, inputs, strict=True)):
        fragment = context.single(fragments, child.columns)
        alias = context.alias("openivm_right" if index else "openivm_left")
        names = [(out, inner) for out, position, inner in operator.names if position == index]
        items = [sql.named(fragment.columns[inner].copy(), out) for out, inner in names]
        columns |= {out: sql.qualified(alias, out) for out, _ in names}
        sides.append((fragment.select(items), alias))
    keeps_right = operator.side in ("RIGHT", "FULL")
    query = (_keeping_right if keeps_right else _met)(operator, sides, columns)
    return over(query, context.alias("openivm_asof"), (*operator.columns, *operator.key_names), weighted=False)


def _items(operator: Asof, columns: Mapping[str, exp.Expr], keys: Sequence[exp.Expr]) -> list[exp.Expr]:
    held = [sql.substitute(value, columns) for value in keys]
    return [
        *(sql.named(columns[name].copy(), name) for name in operator.columns),
        *(sql.named(value, name) for name, value in zip(operator.key_names, held, strict=True)),
    ]


def _join(operator: Asof, items: list[exp.Expr], columns: Mapping[str, exp.Expr], *sides: exp.Expr) -> exp.Select:
    left, right = sides
    query = sql.select(items, [left])
    side = "LEFT" if operator.side in ("LEFT", "FULL") else ""
    query.set("joins", [exp.Join(this=right, method="ASOF", side=side, on=sql.substitute(operator.on, columns))])
    return query


def _met(operator: Asof, sides: Sequence[tuple[exp.Expr, str]], columns: Mapping[str, exp.Expr]) -> exp.Expr:
    items = _items(operator, columns, operator.held_keys)
    return _join(operator, items, columns, *(sql.derived(query, alias) for query, alias in sides))


def _keeping_right(operator: Asof, sides: Sequence[tuple[exp.Expr, str]], columns: Mapping[str, exp.Expr]) -> exp.Expr:
    """The rows that met, and after them the rows of the right that none of the left met.

    DuckDB's own ASOF RIGHT and FULL joins can lose rows of the right (2.0.1), or never end (1.5.5, 2.0.1), where keys
    have no row on the left; among a few touched keys there are hardly ever rows of all.
    """
    (left, left_alias), (right, right_alias) = sides
    numbered = right.copy()
    numbered.append("expressions", sql.named(exp.Window(this=exp.RowNumber()), ROW))
    held = _items(operator, columns, operator.held_keys)
    row = sql.qualified(right_alias, ROW)
    met = _join(operator, [*held, row.copy()], columns, sql.derived(left, left_alias), sql.table(RIGHT, right_alias))
    alone = dict(columns) | {out: exp.null() for out, index, _ in operator.names if index == 0}
    itself = exp.EQ(this=sql.qualified(MET, ROW), expression=row)
    found = exp.Exists(this=sql.select([sql.one()], [sql.table(MET, MET)], [itself]))
    items = _items(operator, alone, operator.input_keys[1])
    rest = sql.select(items, [sql.table(RIGHT, right_alias)], [exp.Not(this=found)])
    shown = [sql.qualified(MET, name) for name in (*operator.columns, *operator.key_names)]
    query = sql.union_all([sql.select(shown, [sql.table(MET, MET)]), rest])
    tables = [(RIGHT, numbered), (MET, met)]
    query.set("with_", exp.With(expressions=[_materialized(name, table) for name, table in tables]))
    return query


def _materialized(name: str, query: exp.Expr) -> exp.CTE:
    return exp.CTE(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)), materialized=True)

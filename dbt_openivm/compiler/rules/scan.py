"""Scan: a source's delta comes from its change log, its old and new rows from its current relation less what came
later."""

from __future__ import annotations

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Scan
from dbt_openivm.compiler.facts import NODE, Column
from dbt_openivm.compiler.fragment import Fragment, over
from dbt_openivm.compiler.keys import row_keys, row_outputs
from dbt_openivm.compiler.rules.context import Context, SourceState
from dbt_openivm.names import BATCH, MULTIPLICITY, quote


def delta(scan: Scan, context: Context) -> list[Fragment]:
    """log(cursor, version], or nothing where that is empty."""
    state = context.states[scan.relation.key]
    if state.shape == "empty":
        return []
    alias = context.alias("delta_" + hint(scan))
    if state.shape == "mixed" and scan.relation.kind != NODE:
        return [net_delta(scan, state, alias)]
    weight = None if state.shape == "insert-only" and state.unit else sql.qualified(alias, MULTIPLICITY)
    return [Fragment((sql.table(state.log, alias),), within(state, alias), outputs(scan, alias), weight)]


def net_delta(scan: Scan, state: SourceState, alias: str) -> Fragment:
    """The delta with rows gone whose weights cancel.

    A row that came and went since the cursor must leave no trace: the view's expressions may fail on it, or overflow,
    where the query as it stands now does not. The delta of an internal node is one batch, and so is net already.
    """
    columns = source_columns(scan)
    group = f" GROUP BY {', '.join(row_keys(columns))}" if columns else ""
    query = (
        f"(SELECT {', '.join([*row_outputs(columns), f'CAST(sum({MULTIPLICITY}) AS BIGINT) AS {MULTIPLICITY}'])} "
        f"FROM {state.log} AS l WHERE {' AND '.join(map(sql.text, within(state, 'l')))}{group} "
        f"HAVING sum({MULTIPLICITY}) <> 0)"
    )
    weight = sql.qualified(alias, MULTIPLICITY)
    return Fragment((sql.table(query, alias),), (), outputs(scan, alias), weight)


def new(scan: Scan, context: Context) -> list[Fragment]:
    """The source at the version that this refresh reads."""
    state = context.states[scan.relation.key]
    return [past(scan, context, state.version) if state.later else current(scan, context)]


def old(scan: Scan, context: Context) -> list[Fragment]:
    """The source at the view's cursor: new - delta, as a Z-set."""
    state = context.states[scan.relation.key]
    if not state.later and state.shape == "empty":
        return [current(scan, context)]
    return [past(scan, context, state.cursor)]


def past(scan: Scan, context: Context, version: int) -> Fragment:
    """The source at an earlier version, in the form that the context asks for."""
    state = context.states[scan.relation.key]
    cancels = state.inserts or state.later or state.unnumbered  # else what is undone are deletions, which add rows
    if context.positive and not context.bag and cancels:
        return consolidated_at(scan, context, version)
    return at(scan, context, version)


def current(scan: Scan, context: Context) -> Fragment:
    alias = context.alias(hint(scan))
    return Fragment((sql.table(context.states[scan.relation.key].current, alias),), (), outputs(scan, alias))


def at(scan: Scan, context: Context, version: int) -> Fragment:
    """``current - log(version, infinity)``: a Z-set, or a bag if the context asks for one."""
    state = context.states[scan.relation.key]
    now, undone = current(scan, context), later_rows(scan, context, state, version)
    query = sql.union_all(
        [now.select(now.all_items(), weighted=True), undone.select(undone.all_items(), weighted=True)]
    )
    if not context.bag:
        return over(query, context.alias("at_" + hint(scan)), scan.columns, weighted=True)
    types = {column.name: column.type for column in scan.relation.columns}
    columns = [Column(out, types[source]) for out, source in scan.names]
    return over(as_bag(query, columns), context.alias("at_" + hint(scan)), scan.columns, weighted=False)


def consolidated_at(scan: Scan, context: Context, version: int) -> Fragment:
    """``current - log(version, infinity)`` without rows that cancel: all weights are positive.

    In the plain form a row that is new stands twice, with +1 and -1. A join of many inputs would multiply them, 2^n
    rows for nothing. Rows without a namesake in the log, nearly all, pass as they are; only the others are added up.
    """
    state = context.states[scan.relation.key]
    columns = source_columns(scan)
    since = f"({BATCH} > {version} OR {BATCH} IS NULL)"
    pairs = zip(row_keys(columns, "n."), row_keys(columns, "l."), strict=True)
    same = " AND ".join([since, *(f"{kept} IS NOT DISTINCT FROM {logged}" for kept, logged in pairs)])
    namesake = f"EXISTS (SELECT 1 FROM {state.log} AS l WHERE {same})"
    names = [quote(column.name) for column in columns]
    listed = "".join(f"{name}, " for name in names)
    group = f" GROUP BY {', '.join(row_keys(columns))}" if columns else ""
    query = (
        f"(SELECT {listed}1 AS {MULTIPLICITY} FROM {state.current} AS n WHERE NOT {namesake} UNION ALL "
        f"SELECT {''.join(f'{output}, ' for output in row_outputs(columns))}CAST(sum({MULTIPLICITY}) AS BIGINT) FROM ("
        f"SELECT {listed}1 AS {MULTIPLICITY} FROM {state.current} AS n WHERE {namesake} UNION ALL "
        f"SELECT {listed}-{MULTIPLICITY} FROM {state.log} WHERE {since}){group} HAVING sum({MULTIPLICITY}) <> 0)"
    )
    alias = context.alias("at_" + hint(scan))
    return Fragment((sql.table(query, alias),), (), outputs(scan, alias), sql.qualified(alias, MULTIPLICITY))


def source_columns(scan: Scan) -> list[Column]:
    """The columns of the source that are read, once each."""
    types = {column.name: column for column in scan.relation.columns}
    return [types[name] for name in dict.fromkeys(source for _, source in scan.names)]


def later_rows(scan: Scan, context: Context, state: SourceState, version: int) -> Fragment:
    alias = context.alias("later_" + hint(scan))
    weight = exp.Neg(this=sql.qualified(alias, MULTIPLICITY))
    return Fragment((sql.table(state.log, alias),), (all_after(alias, version),), outputs(scan, alias), weight)


def as_bag(query: exp.Expr, columns: list[Column]) -> exp.Expr:
    """Repeat each row as often as its consolidated weight says."""
    group = f"GROUP BY {', '.join(row_keys(columns))} " if columns else ""
    total = (
        f"(SELECT {''.join(f'{output}, ' for output in row_outputs(columns))}CAST(sum({MULTIPLICITY}) AS BIGINT) "
        f"AS {MULTIPLICITY} FROM ({sql.text(query)}) AS z {group}HAVING sum({MULTIPLICITY}) > 0)"
    )
    items: list[exp.Expr] = [sql.qualified("b", column.name) for column in columns]
    items = sql.at_least_one(items)
    copies = sql.table(f"range(b.{MULTIPLICITY})", "openivm_copies")
    return sql.select(items, [sql.table(total, "b"), copies])


def within(state: SourceState, alias: str) -> tuple[exp.Expr, ...]:
    """Which rows of the log are the delta."""
    if state.unnumbered:
        return (unnumbered(alias),)
    if state.whole:
        return (all_after(alias, state.cursor),)
    return (after(alias, state.cursor), up_to(alias, state.version))


def after(alias: str, version: int) -> exp.Expr:
    return exp.GT(this=sql.qualified(alias, BATCH), expression=exp.Literal.number(version))


def unnumbered(alias: str) -> exp.Expr:
    return exp.Is(this=sql.qualified(alias, BATCH), expression=exp.Null())


def all_after(alias: str, version: int) -> exp.Expr:
    """A row without a number is later than every number."""
    return exp.Or(this=after(alias, version), expression=unnumbered(alias))


def up_to(alias: str, version: int) -> exp.Expr:
    return exp.LTE(this=sql.qualified(alias, BATCH), expression=exp.Literal.number(version))


def outputs(scan: Scan, alias: str) -> dict[str, exp.Expr]:
    return {out: sql.qualified(alias, source) for out, source in scan.names}


def hint(scan: Scan) -> str:
    """A readable alias: the last part of the source's name."""
    name = scan.relation.key.rsplit(".", 1)[-1]
    return name if name.isidentifier() else "source"

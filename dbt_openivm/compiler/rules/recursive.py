"""A recursive CTE as rows. Its maintenance is a program of its own (see `dbt_openivm.compiler.recursion`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Operator, Recursive, Scan
from dbt_openivm.compiler.facts import RECURSION
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.rules.context import Context, SourceState
from dbt_openivm.compiler.rules.forms import Form
from dbt_openivm.names import quote


def whole(operator: Recursive, context: Context, form: Form) -> list[Fragment]:
    """DuckDB's own recursive CTE."""
    name = quote(context.alias("openivm_recursive"))
    base, step = (
        rows_text(operator, part, reading(operator, replace(context, bag=True), name), form)
        for part in (operator.base, operator.step)
    )
    columns = ", ".join(map(quote, operator.columns))
    key = f" USING KEY ({', '.join(map(quote, operator.keys))})" if operator.keys else ""
    union = "UNION" if operator.distinct else "UNION ALL"
    query = f"(WITH RECURSIVE {name}({columns}){key} AS ({base} {union} {step}) SELECT * FROM {name})"
    alias = context.alias("openivm_rows")
    return [
        Fragment((sql.table(query, alias),), (), {known: sql.qualified(alias, known) for known in operator.columns})
    ]


def reading(operator: Recursive, context: Context, rows: str) -> Context:
    """A context in which the step reads `rows`, a FROM item with the columns of the CTE, as the last round's."""
    states: Mapping[str, SourceState] = {**context.states, operator.working.key: SourceState(rows)}
    return replace(context, states=states)


def rows_text(operator: Recursive, part: Operator, context: Context, form: Form) -> str:
    fragment = context.single(form(part, context), part.columns)
    return sql.text(fragment.select(typed(operator, fragment)))


def typed(operator: Recursive, fragment: Fragment) -> list[exp.Expr]:
    """The columns of rows of the base or the step, in the types of the CTE."""
    types = operator.types or (None,) * len(operator.columns)
    return [
        sql.named(value.copy() if type_ is None or type_ == '"NULL"' else sql.cast(value.copy(), type_), name)
        for (name, value), type_ in zip(fragment.columns.items(), types, strict=True)
    ]


def is_working(operator: Operator) -> bool:
    return isinstance(operator, Scan) and operator.relation.kind == RECURSION


def reads(operator: Operator, key: str) -> bool:
    """Whether an operator tree reads the rows of the last round of a recursive CTE."""
    return any(isinstance(op, Scan) and op.relation.key == key for op in operator.walk())

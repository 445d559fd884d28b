"""PIVOT and UNPIVOT, written as the SELECT that they stand for.

PIVOT is a grouping with one filtered aggregate for each value; UNPIVOT takes a list of the columns apart. What the
columns of a PIVOT are called is DuckDB's answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from sqlglot import exp

from dbt_openivm.compiler.aggregates import is_call
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.rows import Flat
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.lower.stars import columns_in, of_columns
from dbt_openivm.compiler.lower.types import answer, parse_type
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import DIALECT, conjunction, derived, identifier, null_safe_equal, text
from dbt_openivm.errors import UnsupportedError

UNNAMED = "__unnamed_pivot"


def selection(pivot: exp.Pivot, source: exp.Expr, scope: Scope, rows: str, facts: CompileFacts) -> exp.Select:
    """The SELECT over `source` that a PIVOT or UNPIVOT means.

    Args:
        pivot: the clause, or the statement.
        source: what it is applied to, unbound.
        scope: of that, with one relation.
        rows: a query for the rows of `source` under the names of its columns.
    """
    if pivot.args.get("unpivot"):
        return unpivoted(pivot, source, scope, facts)
    return pivoted(pivot, source, scope, rows, facts)


def is_statement(pivot: exp.Pivot) -> bool:
    return pivot.this is not None


# --- PIVOT ------------------------------------------------------------------------------------------------------------


def pivoted(pivot: exp.Pivot, source: exp.Expr, scope: Scope, rows: str, facts: CompileFacts) -> exp.Select:
    fields = pivot.expressions if is_statement(pivot) else pivot.args["fields"]
    calls = (pivot.args.get("using") or [exp.Count(this=exp.Star())]) if is_statement(pivot) else pivot.expressions
    combinations = [conjunction(parts) for parts in product(*map(conditions, fields))]
    group = pivot.args.get("group")
    used = names_in([*fields, *calls])
    others = [name for name in names_of(scope) if name.lower() not in used]
    keys = group.expressions if group else list(map(reference, others))
    values = [filtered(call.unalias(), condition, facts) for condition in combinations for call in calls]
    names = output_names(pivot, scope, rows, facts)
    if len(names) != len(keys) + len(values):
        raise UnsupportedError(f"PIVOT with other columns than the compiler makes of it{place(pivot)}")
    items = [exp.Alias(this=value, alias=identifier(name)) for name, value in zip(names, [*keys, *values], strict=True)]
    select = exp.Select(expressions=items, from_=exp.From(this=source))
    if keys:
        select.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return select


def names_of(scope: Scope) -> list[str]:
    return [name for binding in scope.bindings for name, _ in binding.columns]


def names_in(values: Sequence[exp.Expr]) -> set[str]:
    return {part.name.lower() for value in values for part in value.find_all(exp.Column)}


def reference(name: str) -> exp.Column:
    return exp.Column(this=identifier(name))


def conditions(field: exp.Expr) -> list[exp.Expr]:
    """One condition for each value of ``column IN (..)``. DuckDB compares their texts."""
    if not isinstance(field, exp.In):
        raise UnsupportedError(f"PIVOT without IN, whose columns follow the data,{place(field)}")
    if not field.expressions:
        raise UnsupportedError(f"PIVOT by the values of a type or query{place(field)}")
    column = field.this.unnest()
    columns = column.expressions if isinstance(column, exp.Tuple) else [column]
    found: list[exp.Expr] = []
    for value in field.expressions:
        value = value.this if isinstance(value, exp.PivotAlias | exp.Alias) else value
        parts = value.expressions if isinstance(value, exp.Tuple) else [value]
        if len(parts) != len(columns):
            raise UnsupportedError(f"PIVOT by tuples of another length{place(field)}")
        pairs = zip(columns, parts, strict=True)
        equal = [null_safe_equal(as_text(one), as_text(other)) for one, other in pairs]
        found.append(exp.Paren(this=conjunction(equal) or exp.Boolean(this=True)))
    return found


def as_text(value: exp.Expr) -> exp.Expr:
    return exp.cast(value.copy(), "VARCHAR", dialect=DIALECT)


def filtered(value: exp.Expr, condition: exp.Expr | None, facts: CompileFacts) -> exp.Expr:
    """`value` with its aggregate calls over the rows that fulfil the condition."""
    assert condition is not None
    holder = exp.Paren(this=value.copy())
    calls = [part for part in holder.walk(prune=lambda part: is_call(part, facts)) if is_call(part, facts)]
    for call in calls:
        inner, both = call, condition.copy()
        if isinstance(call, exp.Filter):
            inner, both = call.this, exp.And(this=both, expression=exp.Paren(this=call.expression.this))
        call.replace(exp.Filter(this=inner.copy(), expression=exp.Where(this=both.copy())))
    made: exp.Expr = holder.this.pop()
    return made


def output_names(pivot: exp.Pivot, scope: Scope, rows: str, facts: CompileFacts) -> list[str]:
    """The names of the columns, as DuckDB makes them of values, aliases and texts."""
    bare = pivot.copy()
    bare.set("alias", None)
    stand_in = derived(exp.Var(this=rows), scope.bindings[0].alias)
    if is_statement(bare):
        bare.set("this", stand_in)
        query = text(bare)
    else:
        stand_in.set("pivots", [bare])
        query = f"SELECT * FROM {text(stand_in)}"
    probe = f"SELECT openivm_row FROM ({query}) AS openivm_row"
    return [name for name, _ in parse_type(answer(probe, facts, f"PIVOT{place(pivot)}")).fields]


# --- UNPIVOT ----------------------------------------------------------------------------------------------------------


def unpivoted(pivot: exp.Pivot, source: exp.Expr, scope: Scope, facts: CompileFacts) -> exp.Select:
    if is_statement(pivot):
        into = pivot.args.get("into")
        name = into.this.name if into else "name"
        values = [value.name for value in into.expressions] if into else ["value"]
        columns = pivot.expressions
    else:
        [field] = pivot.args["fields"]
        name = field.this.name
        [value] = pivot.expressions
        values = [part.name for part in (value.expressions if isinstance(value, exp.Tuple) else [value])]
        columns = field.expressions
    rows = [row for item in columns for row in unpivoted_rows(item, scope, facts)]
    if any(len(parts) != len(values) for _, parts in rows):
        raise UnsupportedError(f"UNPIVOT of tuples of another length{place(pivot)}")
    used = names_in([part for _, parts in rows for part in parts])
    items: list[exp.Expr] = [reference(column) for column in names_of(scope) if column.lower() not in used]
    lists: list[list[exp.Expr]] = [[exp.Literal.string(name) for name, _ in rows]]
    lists += [[parts[index].copy() for _, parts in rows] for index in range(len(values))]
    for column, elements in zip((name, *values), lists, strict=True):
        items.append(exp.Alias(this=exp.Explode(this=exp.Array(expressions=elements)), alias=identifier(column)))
    inner = exp.Select(expressions=items, from_=exp.From(this=source))
    if pivot.args.get("include_nulls"):
        return inner
    present = [exp.Not(this=exp.Is(this=reference(value), expression=exp.Null())) for value in values]
    outer = exp.Select(expressions=[exp.Star()], from_=exp.From(this=derived(inner, UNNAMED)))
    outer.set("where", exp.Where(this=conjunction(present)))
    return outer


def unpivoted_rows(item: exp.Expr, scope: Scope, facts: CompileFacts) -> list[tuple[str, list[exp.Expr]]]:
    """(name, values) of the rows that one item makes of each row."""
    value = item.this if isinstance(item, exp.PivotAlias | exp.Alias) else item
    alias = item.args["alias"].name if value is not item else None
    if isinstance(value, exp.Tuple):
        return [(alias or "_".join(map(label, value.expressions)), list(value.expressions))]
    if columns_in(value) or isinstance(value, exp.Star):
        call = value if columns_in(value) else exp.Columns(this=value.copy())
        # of a column, since others are found by their names
        named = of_columns(call, scope, facts, 0)
        back = {inner: name for binding in scope.bindings for name, inner in binding.columns}
        return [(name, [by_name(part, back)]) for name, part in named]
    return [(alias or label(value), [value])]


def label(value: exp.Expr) -> str:
    names = {part.name for part in value.find_all(exp.Column)}
    if len(names) != 1:
        raise UnsupportedError(f"UNPIVOT of an expression over several columns{place(value)}")
    return names.pop()


def by_name(value: exp.Expr, names: dict[str, str]) -> exp.Expr:
    """The expression with resolved columns under their names again."""
    return value.transform(lambda part: reference(names[part.this.name]) if isinstance(part, Flat) else part)

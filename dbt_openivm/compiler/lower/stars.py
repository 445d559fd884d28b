"""Stars in a select list and COLUMNS(): which columns they mean.

What a pattern or a lambda picks is not worked out here: DuckDB is asked for the columns of stand-ins, whose types are
their positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sqlglot import exp

from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.reading import written
from dbt_openivm.compiler.lower.rows import Flat, flat, positional
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.lower.types import answer, parse_type, type_of
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import cast, conjunction, identifier, text
from dbt_openivm.errors import UnsupportedError

Item = tuple[str, exp.Expr]
Shown = tuple[str, str, str]
"""A column of a star as (alias of the relation, name, output column)."""

PATTERNS = (exp.Like, exp.ILike, exp.SimilarTo, exp.Glob)


def expand_items(items: Sequence[exp.Expr], scope: Scope, facts: CompileFacts) -> list[Item]:
    """A select list without stars."""
    expanded: list[Item] = []
    for item in items:
        expanded += expand_item(item, scope, facts, len(expanded))
    return expanded


def expand_item(item: exp.Expr, scope: Scope, facts: CompileFacts, position: int) -> list[Item]:
    if is_star(item):
        if star_of(item).args.get("ilike"):
            return picked(item, None, scope, facts)
        return of_star(item, scope, facts)
    if is_pattern(item):
        return picked(item, None, scope, facts)
    if any(True for _ in columns_in(item)):
        return of_columns(item, scope, facts, position)
    if isinstance(item, exp.PositionalColumn):
        name, column = positional(item, scope)
        return [(name, flat(column))]
    return [(item_name(item, facts) or f"column{position}", item.unalias())]


def item_name(item: exp.Expr, facts: CompileFacts) -> str | None:
    """The name of a select item: its alias, its column, what DuckDB calls an expression, or None if unknown."""
    bare = item.unnest()
    if isinstance(bare, exp.Alias | exp.Column):
        return bare.alias_or_name or None
    if isinstance(item, exp.Dot) and isinstance(item.expression, exp.Identifier):
        return item.name or None
    return facts.names.get(written(item))


def is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def star_of(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Column) else item


def is_pattern(item: exp.Expr) -> bool:
    """``* LIKE 'a%'`` and its kin."""
    inner = item.this if isinstance(item, exp.Not) else item
    return isinstance(inner, PATTERNS) and is_star(inner.this)


def of_star(item: exp.Expr, scope: Scope, facts: CompileFacts) -> list[Item]:
    """The items of ``*``, of a relation's, or of a struct's."""
    if not isinstance(item, exp.Column):
        return star_items(star_of(item), scope.star())
    if scope.has_alias(item.table):
        return star_items(item.this, scope.star(item.table))
    return of_struct(item, scope, facts)


def of_struct(item: exp.Column, scope: Scope, facts: CompileFacts) -> list[Item]:
    found = scope.unqualified(item.table)
    if found is None:
        raise UnsupportedError(f"{item.table}.*, whose relation was not found{place(item)}")
    column = exp.Column(this=identifier(found))
    fields = type_of(scope.operator, column, facts, f"{item.table}.*{place(item)}", scope.outer).fields
    if not fields:
        raise UnsupportedError(f"{item.table}.*, whose relation was not found{place(item)}")
    values = [(item.table, name, exp.Dot(this=flat(found), expression=identifier(name))) for name, _ in fields]
    return adjusted(item.this, values)


def star_items(star: exp.Expr, columns: list[Shown]) -> list[Item]:
    """The items of a star, with EXCLUDE, REPLACE and RENAME applied."""
    return adjusted(star, [(alias, name, flat(inner)) for alias, name, inner in columns])


def adjusted(star: exp.Expr, values: Sequence[tuple[str, str, exp.Expr]]) -> list[Item]:
    parts = star.args.get("except_") or star.args.get("except") or []
    excluded = {(part.text("table").lower(), part.name.lower()) for part in parts}
    replaced = {part.alias.lower(): part.this for part in star.args.get("replace") or []}
    renamed = {part.this.name.lower(): part.alias for part in star.args.get("rename") or []}
    items: list[Item] = []
    for alias, name, value in values:
        if excluded.isdisjoint({("", name.lower()), (alias.lower(), name.lower())}):
            items.append((renamed.get(name.lower(), name), replaced.get(name.lower()) or value))
    return items


# --- COLUMNS() --------------------------------------------------------------------------------------------------------


def columns_in(item: exp.Expr) -> list[exp.Columns]:
    """The calls of COLUMNS in an expression, those of subqueries not counted."""
    for part in item.find_all(exp.Anonymous):
        if (
            part.name.upper() == "UNPACK"
            and len(part.expressions) == 1
            and isinstance(part.expressions[0], exp.Columns)
        ):
            # *COLUMNS(..) as DuckDB writes it in the text of a view
            part.replace(exp.Columns(this=part.expressions[0].this, unpack=True))
    parts = item.walk(prune=lambda part: isinstance(part, exp.Query | exp.Columns))
    return [part for part in parts if isinstance(part, exp.Columns)]


def of_columns(item: exp.Expr, scope: Scope, facts: CompileFacts, position: int) -> list[Item]:
    """One item for each column that COLUMNS means; a single one where its columns are unpacked into arguments."""
    calls = columns_in(item)
    if any(call.this != calls[0].this for call in calls):
        raise UnsupportedError(f"different COLUMNS() in one expression{place(item)}")
    alias = item.alias if isinstance(item, exp.Alias) else None
    unpacked = [bool(call.args.get("unpack")) for call in calls]
    found = meant(calls[0], alias if "\\" in (alias or "") else None, scope, facts)
    if all(unpacked):
        name = alias or item_name(item, facts) or f"column{position}"
        return [(name, replaced(item.unalias(), None, found))]
    given = alias if alias and "\\" not in alias else None
    return [(given or column, replaced(item.unalias(), value, found)) for column, value in found]


def meant(call: exp.Columns, alias: str | None, scope: Scope, facts: CompileFacts) -> list[Item]:
    if alias is None and is_star(call.this) and not star_of(call.this).args.get("ilike"):
        return of_star(call.this, scope, facts)
    return picked(exp.Columns(this=call.this.copy()), alias, scope, facts)


def replaced(value: exp.Expr, one: exp.Expr | None, all_: Sequence[Item]) -> exp.Expr:
    """`value` with a column in the place of COLUMNS, with all of them where they are unpacked."""
    holder = exp.Paren(this=value.copy())
    for call in columns_in(holder):
        if call.args.get("unpack"):
            unpack(call, [expression.copy() for _, expression in all_])
        else:
            assert one is not None
            call.replace(one.copy())
    holder.this.meta.update(value.meta)
    made: exp.Expr = holder.this.pop()
    return made


def unpack(call: exp.Columns, values: list[exp.Expr]) -> None:
    parent = call.parent
    assert parent is not None
    if call.arg_key == "expressions":
        index = next(index for index, part in enumerate(parent.expressions) if part is call)
        parent.set("expressions", [*parent.expressions[:index], *values, *parent.expressions[index + 1 :]])
    elif call.arg_key == "this" and "expressions" in parent.arg_types and not isinstance(parent, exp.Struct):
        parent.set("this", values[0])
        parent.set("expressions", [*values[1:], *parent.expressions])
    else:
        raise UnsupportedError(f"*COLUMNS() in this place{place(call)}")


def picked(item: exp.Expr, alias: str | None, scope: Scope, facts: CompileFacts) -> list[Item]:
    """The columns that a pattern or lambda picks, under the names that they get: DuckDB's answer."""
    shown = scope.star()
    position, relations = 0, []
    for name, group in groupby(shown, key=lambda column: column[0]):
        stand_ins = []
        for _, column, _ in group:
            stand_in = cast(exp.Null(), f"ENUM('{position}')")
            stand_ins.append(exp.Alias(this=stand_in, alias=identifier(column)))
            position += 1
        relations.append(
            f"({text(exp.Select(expressions=stand_ins))}) AS {text(identifier(name or f'openivm_{position}'))}"
        )
    value = exp.Alias(this=item.copy(), alias=identifier(alias)) if alias else item
    probe = f"SELECT openivm_row FROM (SELECT {text(value)} FROM {', '.join(relations)}) AS openivm_row"
    fields = parse_type(answer(probe, facts, f"{text(item)}{place(item)}")).fields
    found = [(name, shown[int(type_.split("'")[1])]) for name, type_ in fields]
    # a struct cannot have equal names, a select list can
    return [(name if alias else column, flat(inner)) for name, (_, column, inner) in found]


def each_column(condition: exp.Expr, scope: Scope, facts: CompileFacts) -> exp.Expr:
    """A condition with COLUMNS holds where it holds for every column."""
    if not columns_in(condition):
        return condition
    parts = [exp.Paren(this=value) for _, value in of_columns(condition, scope, facts, 0)]
    return conjunction(parts) or condition


def reads_columns(value: exp.Expr) -> bool:
    return any(isinstance(part, exp.Column | Flat | exp.PositionalColumn) for part in value.walk())

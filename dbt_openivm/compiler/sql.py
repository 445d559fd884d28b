"""Small builders of sqlglot expressions that several passes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import ErrorLevel

DIALECT = "duckdb"


def text(expression: exp.Expr, comments: bool = True) -> str:
    """The SQL of an expression, without sqlglot's warnings on the way: DuckDB checks what was written."""
    return expression.sql(dialect=DIALECT, comments=comments, unsupported_level=ErrorLevel.IGNORE)


def identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def qualified(alias: str, name: str) -> exp.Column:
    """``"alias"."name"``."""
    return exp.Column(this=identifier(name), table=identifier(alias))


def table(sql: str, alias: str) -> exp.Table:
    """A FROM item from its text."""
    return exp.Table(this=exp.Var(this=sql), alias=exp.TableAlias(this=identifier(alias)))


def placeable(node: exp.Expr) -> exp.Expr:
    """The node itself while it stands nowhere, then copies of it: a node has one parent.

    Sources hold whole queries, so that copying each at every level around it would cost the square of the depth.
    """
    return node if node.parent is None else node.copy()


def derived(query: exp.Expr, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=identifier(alias)))


def one() -> exp.Expr:
    return exp.Literal.number(1)


def named(expression: exp.Expr, name: str) -> exp.Expr:
    """``expression AS "name"``, or the bare column where that is its name already."""
    if isinstance(expression, exp.Column) and expression.name == name:
        return expression
    return exp.Alias(this=expression, alias=identifier(name))


def cast(expression: exp.Expr, type_: str) -> exp.Expr:
    """``CAST(expression AS type)`` with the type as DuckDB spelled it."""
    return exp.Cast(this=expression, to=exp.Var(this=type_))


def conjunction(conditions: Iterable[exp.Expr]) -> exp.Expr | None:
    parts = [exp.Paren(this=part) if isinstance(part, exp.Or) else part for part in conditions]
    if not parts:
        return None
    result = parts[0]
    for part in parts[1:]:
        result = exp.And(this=result, expression=part)
    return result


def select(
    items: Sequence[exp.Expr],
    sources: Sequence[exp.Expr],
    conditions: Sequence[exp.Expr] = (),
    group: Sequence[exp.Expr] | None = None,
) -> exp.Select:
    """A SELECT over the cross product of its sources. `group` of None is no GROUP BY."""
    query = exp.Select(expressions=list(items))
    if sources:
        query.set("from_", exp.From(this=sources[0]))
        query.set("joins", [exp.Join(this=source) for source in sources[1:]])
    where = conjunction(conditions)
    if where is not None:
        query.set("where", exp.Where(this=where))
    if group:
        query.set("group", exp.Group(expressions=list(group)))
    return query


def union_all(queries: Sequence[exp.Expr]) -> exp.Expr:
    result = queries[0]
    for query in queries[1:]:
        result = exp.Union(this=result, expression=query, distinct=False)
    return result


def substitute(expression: exp.Expr, columns: Mapping[str, exp.Expr]) -> exp.Expr:
    """A copy of `expression` with each bare column replaced by what `columns` holds for it."""

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.args.get("table"):
            found = columns.get(node.name)
            if found is not None:
                return parenthesised(found, node)
        return node

    return transform(expression.copy(), replace)


def parenthesised(value: exp.Expr, place: exp.Expr) -> exp.Expr:
    """`value` as it may stand where `place` stood: operators get parentheses under another operator."""
    value = value.copy()
    needs = isinstance(value, exp.Binary | exp.Unary | exp.Between | exp.In | exp.Is) and not isinstance(
        value, exp.Paren
    )
    return exp.Paren(this=value) if needs and place.parent is not None else value


def transform(node: exp.Expr, replace: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Bottom-up replacement that does not look into what it put in."""
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            node.set(key, transform(value, replace))
        elif isinstance(value, list):
            node.set(key, [transform(item, replace) if isinstance(item, exp.Expr) else item for item in value])
    return replace(node)


def column_names(expression: exp.Expr) -> set[str]:
    """The bare columns an expression reads."""
    return {node.name for node in expression.find_all(exp.Column) if not node.args.get("table")}


def at_least_one(items: Sequence[exp.Expr]) -> list[exp.Expr]:
    """What a SELECT shows: it needs a column, also where only the number of rows is of interest."""
    return list(items) or [named(one(), "openivm_row")]


def zero() -> exp.Expr:
    return exp.Literal.number(0)


def bare(value: exp.Expr) -> exp.Expr:
    """What stands in parentheses, a subquery with its own ones."""
    while isinstance(value, exp.Paren):
        value = value.this
    return value


def conjuncts(predicate: exp.Expr) -> list[exp.Expr]:
    """The parts of a conjunction, parentheses looked through."""
    predicate = bare(predicate)
    if isinstance(predicate, exp.And):
        return [*conjuncts(predicate.this), *conjuncts(predicate.expression)]
    return [predicate]


def with_source(query: exp.Select, source: exp.Expr) -> exp.Select:
    """`query` with one more item in its FROM clause."""
    if query.args.get("from_") is None:
        query.set("from_", exp.From(this=source))
    else:
        query.append("joins", exp.Join(this=source))
    return query


def equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.EQ(this=operand(left), expression=operand(right))


def null_safe_equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=operand(left), expression=operand(right))


def operand(value: exp.Expr) -> exp.Expr:
    """`value` as an operand: in parentheses unless it is a column or call, which no operator can tear apart."""
    return value if isinstance(value, exp.Column | exp.Paren | exp.Anonymous) else exp.Paren(this=value)

"""Read a query of another engine into the compiler's notation.

What the compiler does with a tree must be right for the engine: so only constructs pass that are known to behave there
as the compiler's rules assume, and every name is resolved by the engine's rules first. What was read is written back,
and must be the query again. Anything else is computed as it was written, and the reason says what it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from dbt_openivm.compiler.dialects.types import noted
from dbt_openivm.compiler.dialects.writing import Writer
from dbt_openivm.compiler.lower.reading import read
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import text
from dbt_openivm.errors import QueryError

CLAUSES = (
    exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.With, exp.CTE, exp.From, exp.Join, exp.Table,
    exp.TableAlias, exp.Where, exp.Group, exp.Having, exp.Distinct, exp.Order, exp.Ordered, exp.Limit, exp.Offset,
    exp.Alias, exp.Star, exp.Column, exp.Identifier, exp.Values, exp.Tuple,
)  # fmt: skip
VALUES = (
    exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT,
    exp.LTE, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Exists, exp.Like, exp.Add, exp.Sub,
    exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Cast,
    exp.DataType, exp.DataTypeParam, exp.DPipe, exp.Interval, exp.Var, exp.ILike, exp.Escape, exp.RegexpLike,
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseNot,
)  # fmt: skip
FUNCTIONS = (
    exp.Abs, exp.Lower, exp.Upper, exp.Length, exp.MD5, exp.Round, exp.Floor, exp.Ceil, exp.Sign, exp.Sqrt, exp.Cbrt,
    exp.Pow, exp.Exp, exp.Ln, exp.Trunc, exp.Substring, exp.Trim, exp.Replace, exp.StrPosition, exp.Left, exp.Right,
    exp.Initcap, exp.Pad, exp.Reverse, exp.SplitPart, exp.Chr, exp.Ascii, exp.Unicode, exp.Translate, exp.Repeat,
    exp.Concat, exp.ConcatWs, exp.Extract, exp.TimestampTrunc,
)  # fmt: skip
"""Whose value follows from their arguments."""
CALLS = (
    exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count, exp.LogicalAnd, exp.LogicalOr, exp.Filter, exp.Stddev,
    exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop, exp.Window, exp.WindowSpec, exp.RowNumber, exp.Rank,
    exp.DenseRank, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.Ntile, exp.PercentRank, exp.CumeDist,
    exp.GroupConcat, exp.ArrayAgg, exp.WithinGroup, exp.PercentileCont, exp.PercentileDisc, exp.BitwiseAndAgg,
    exp.BitwiseOrAgg, exp.Corr, exp.CovarPop, exp.CovarSamp,
)  # fmt: skip
PASSED = frozenset((*CLAUSES, *VALUES, *FUNCTIONS, *CALLS))
FUNCTION_NAMES = frozenset({"every", "gcd", "lcm", "make_date", "make_time", "btrim", "factorial", "div", "bit_length"})
"""Those of `FUNCTIONS` for which sqlglot has no word."""
ORDERED = (exp.GroupConcat, exp.ArrayAgg)
"""Aggregates whose value depends on the order of rows: they pass with an ORDER BY."""

PARTS: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"expressions", "from_", "joins", "where", "group", "having", "distinct", "order", "limit", "offset", "with_"}
    ),
    exp.Table: frozenset({"this", "db", "catalog", "alias"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Group: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
}
"""What such a node may have: other parts get lost on the way, as the ONLY of a table does."""

CLOCK = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.Localtime, exp.Localtimestamp)
CLOCK_NAMES = frozenset({"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday"})

NAMES: Mapping[type[exp.Expr], str] = {
    exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.Count: "count", exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or", exp.Stddev: "stddev", exp.StddevSamp: "stddev_samp", exp.StddevPop: "stddev_pop",
    exp.VariancePop: "var_pop", exp.Coalesce: "coalesce", exp.Greatest: "greatest", exp.Least: "least",
    exp.Nullif: "nullif", exp.Abs: "abs", exp.Lower: "lower", exp.Upper: "upper", exp.RowNumber: "row_number",
    exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.Lag: "lag", exp.Lead: "lead", exp.FirstValue: "first_value",
    exp.LastValue: "last_value", exp.Exists: "exists",
}  # fmt: skip
"""What PostgreSQL calls a column that has no alias, by the expression."""
NAMELESS = (exp.Binary, exp.Literal, exp.Neg, exp.Null, exp.Not, exp.Between, exp.In, exp.Is)
UNNAMED = "?column?"

Columns = Mapping[str, str]
PLACES = ("this", "db", "catalog")
"""Of the parts of a table's name, the last one first."""


class RefusedError(Exception):
    """Some construct has no incremental form; the text names it."""


@dataclass(frozen=True)
class Reading:
    """Attributes:
    text: the query in the compiler's notation, all names resolved; None where it is not maintained incrementally.
    columns: names of its result.
    tables: the tables that it names, in as many parts as it names them with.
    reason: why `text` is None.
    """

    text: str | None
    columns: tuple[str, ...]
    tables: frozenset[tuple[str, ...]]
    reason: str | None = None


def read_query(sql: str, dialect: str, tables: Mapping[tuple[str, ...], Columns], writer: Writer) -> Reading:
    """Args:
        tables: columns with their types, in the engine's words, by name.

    Raises:
        QueryError: it is no single SELECT, or the names of its columns cannot be told.
    """
    tree = single(sql, dialect)
    named = frozenset(tuple(part.name for part in table.parts) for table in base_tables(tree))
    try:
        refuse_constructs(tree, dialect)
        name_items(tree, dialect)
        normalise_names(tree, dialect, tables)
        resolved = qualified(tree, dialect, tables)
        notation = text(in_notation(resolved), comments=False)
        same(resolved, notation, dialect, writer)
        return Reading(notation, tuple(resolved.named_selects), named)
    except RefusedError as error:
        return Reading(None, column_names(sql, dialect, tables), named, str(error))


def single(sql: str, dialect: str) -> exp.Query:
    try:
        statements = [statement for statement in sqlglot.parse(sql, dialect=dialect) if statement is not None]
    except SqlglotError as error:
        raise QueryError(f"The query could not be read as SQL of {dialect}: {error}") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise QueryError("A view needs one SELECT statement.")
    statement = statements[0]
    inner = statement.unnest() if isinstance(statement, exp.Subquery) else statement
    assert isinstance(inner, exp.Query)
    return inner


def base_tables(tree: exp.Expr) -> list[exp.Table]:
    """The tables of FROM clauses but those that may be CTEs."""
    within = {cte.alias for cte in tree.find_all(exp.CTE)}
    found = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    return [table for table in found if len(table.parts) > 1 or table.name not in within]


def refuse(what: str, dialect: str) -> RefusedError:
    return RefusedError(f"{what} is not maintained incrementally on {dialect}")


def refuse_constructs(tree: exp.Expr, dialect: str) -> None:
    for node in tree.walk():
        if isinstance(node, CLOCK) or (isinstance(node, exp.Anonymous) and node.name.lower() in CLOCK_NAMES):
            raise RefusedError(f"it reads the clock{place(node)}, whose passing is not maintained on {dialect}")
        if isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTION_NAMES:
            continue
        if type(node) not in PASSED:
            raise refuse(f"{shown(node, dialect)}{place(node)}", dialect)
        refuse_form(node, dialect)


def shown(node: exp.Expr, dialect: str) -> str:
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name}()"
    words = node.sql(dialect=dialect)
    return f"{type(node).__name__} ({words if len(words) <= 40 else words[:37] + '...'})"


def refuse_form(node: exp.Expr, dialect: str) -> None:
    """Constructs that pass in some forms only."""
    parts = PARTS.get(type(node), frozenset(node.args))
    more = [name for name, value in node.args.items() if value and name not in parts]
    what = f"{type(node).__name__} with {', '.join(more).upper()}" if more else None
    if what is not None:
        pass
    elif isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
        what = "a function in FROM"
    elif isinstance(node, exp.With) and node.recursive:
        what = "a recursive query"
    elif isinstance(node, exp.Select) and isinstance(node.args.get("distinct"), exp.Distinct):
        what = "DISTINCT ON" if node.args["distinct"].args.get("on") else None
    elif isinstance(node, exp.Subquery) and not isinstance(node.parent, exp.From | exp.Join | exp.SetOperation):
        inner = isinstance(node.parent, exp.In | exp.Exists) or is_one_row(node.this)
        what = None if inner else "a scalar subquery that may have several rows"
    elif isinstance(node, exp.Subquery) and not node.alias and not isinstance(node.parent, exp.SetOperation):
        what = "a subquery without an alias"
    elif isinstance(node, exp.Limit) and not isinstance(node.expression, exp.Literal):
        what = "a LIMIT that is no number"
    elif isinstance(node, exp.SetOperation) and (node.args.get("by_name") or node.args.get("side")):
        what = "a set operation by name"
    elif isinstance(node, exp.Tuple) and not isinstance(node.parent, exp.Values):
        what = "a row value"
    elif isinstance(node, ORDERED) and node.find(exp.Order) is None:
        what = "an aggregate over rows in any order"
    if what is not None:
        raise refuse(what + place(node), dialect)


def is_one_row(query: exp.Expr) -> bool:
    """Whether a query has one row at most, whatever its tables hold."""
    if not isinstance(query, exp.Select) or query.args.get("group") or query.args.get("distinct"):
        return False
    return all(isinstance(item.unalias(), exp.AggFunc | exp.Filter) for item in query.expressions)


# --- names -----------------------------------------------------------------------------------------------------------


def name_items(tree: exp.Expr, dialect: str) -> None:
    """Give every item of a select list the name that the engine gives it."""
    for select in tree.find_all(exp.Select):
        for item in list(select.expressions):
            if not isinstance(item, exp.Alias | exp.Column | exp.Star):
                name = name_of(item)
                if name is None:
                    raise refuse("an expression without a name (give it one with AS)", dialect)
                item.replace(exp.Alias(this=item.copy(), alias=exp.to_identifier(name, quoted=True)))
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() == "every":
            call.replace(exp.LogicalAnd(this=call.expressions[0]))


def name_of(item: exp.Expr) -> str | None:
    if isinstance(item, exp.Paren | exp.Filter | exp.Window):
        return name_of(item.this)
    if isinstance(item, NAMELESS):
        return UNNAMED
    if isinstance(item, exp.Cast):
        return item.this.name if isinstance(item.this, exp.Column) else None
    if isinstance(item, exp.Anonymous):
        return item.name.lower()
    return item.name if isinstance(item, exp.Column) else NAMES.get(type(item))


def normalise_names(tree: exp.Expr, dialect: str, tables: Mapping[tuple[str, ...], Columns]) -> None:
    """The compiler takes names that differ in their case only for one.

    Raises:
        RefusedError: the query or its tables have such names.
    """
    normalize_identifiers(tree, dialect=dialect)
    known = {part for name, columns in tables.items() for part in (*name, *columns)}
    spellings: dict[str, str] = {}
    for name in [*known, *(identifier.name for identifier in tree.find_all(exp.Identifier))]:
        other = spellings.setdefault(name.lower(), name)
        if other != name:
            raise refuse(f"a query with the two names {other} and {name}", dialect)
    for select in tree.find_all(exp.Select):
        refuse_ambiguous(select, dialect, {column for columns in tables.values() for column in columns})


def refuse_ambiguous(select: exp.Select, dialect: str, columns: set[str]) -> None:
    """In GROUP BY a name means a column first, and then what the select list calls so; not every reader knows it."""
    group = select.args.get("group")
    names = {node.name for node in (group.expressions if group else ()) if isinstance(node, exp.Column)}
    inner = {name for query in select.find_all(exp.Query) if query is not select for name in query.named_selects}
    for item in select.expressions:
        if isinstance(item, exp.Alias) and item.alias in names:
            plain = isinstance(item.this, exp.Column) and item.this.name == item.alias
            if not plain and item.alias in columns | inner:
                raise refuse(f"GROUP BY {item.alias}, the name of a column and of another expression,", dialect)


def qualified(tree: exp.Expr, dialect: str, tables: Mapping[tuple[str, ...], Columns]) -> exp.Query:
    """Every column with its table, every star as its columns.

    Raises:
        RefusedError: some name is not known.
    """
    schema = MappingSchema(dialect=dialect, normalize=False)
    for name, columns in tables.items():
        parts = [exp.to_identifier(part, quoted=True) for part in name]
        table = exp.Table(**dict(zip(PLACES, parts[::-1], strict=False)))
        schema.add_table(table, dict(columns), dialect=dialect, match_depth=False)
    try:
        found = qualify(tree, dialect=dialect, schema=schema, quote_identifiers=True, validate_qualify_columns=True)
    except (OptimizeError, SqlglotError) as error:
        raise refuse(f"a query whose names could not be resolved ({error})", dialect) from error
    assert isinstance(found, exp.Query)
    return found


def column_names(sql: str, dialect: str, tables: Mapping[tuple[str, ...], Columns]) -> tuple[str, ...]:
    """Raises:
    QueryError: they cannot be told.
    """
    tree = single(sql, dialect)
    unnamed = [item for item in tree.selects if not item.alias_or_name and not isinstance(item, exp.Star)]
    try:
        if unnamed:
            name_items(tree, dialect)
        normalize_identifiers(tree, dialect=dialect)
        return tuple(qualified(tree, dialect, tables).named_selects) if tree.is_star else tuple(tree.named_selects)
    except RefusedError as error:
        raise QueryError(
            f"The names of the query's columns cannot be told: {error}. Name each of them with AS."
        ) from error


# --- notation --------------------------------------------------------------------------------------------------------


def in_notation(tree: exp.Query) -> exp.Query:
    """A copy without what sqlglot would write in other words for DuckDB, where it means something else."""
    found = tree.copy()
    for division in found.find_all(exp.Div):
        division.set("typed", False)
        division.set("safe", False)
    for query in [found, *found.find_all(exp.Query)]:
        name_order(query)
    for node in inner_first(found, exp.LogicalAnd, exp.LogicalOr):  # DuckDB's are written with a cast
        name = "bool_and" if isinstance(node, exp.LogicalAnd) else "bool_or"
        node.replace(exp.Anonymous(this=name, expressions=[node.this]))
    for node in inner_first(found, exp.Is):
        if node.args.get("negate"):
            node.set("negate", None)
            node.replace(exp.Not(this=node.copy()))
    for node in inner_first(found, exp.NullSafeEQ):
        # what the compiler itself writes so compares a value with itself at another time
        node.replace(exp.Not(this=exp.Paren(this=exp.NullSafeNEQ(this=node.this, expression=node.expression))))
    for kind in list(found.find_all(exp.DataType)):
        kind.replace(noted(kind))
    return found


def inner_first(tree: exp.Expr, *kinds: type[exp.Expr]) -> list[exp.Expr]:
    return list(tree.find_all(*kinds))[::-1]


def name_order(query: exp.Expr) -> None:
    """In ORDER BY a name means an item of the select list first."""
    order = query.args.get("order")
    names = query.named_selects if isinstance(query, exp.Query) else []
    for item in order.expressions if order else ():
        column = item.this
        if isinstance(column, exp.Column) and not column.table and names.count(column.name) == 1:
            column.replace(exp.Literal.number(names.index(column.name) + 1))


def same(tree: exp.Query, notation: str, dialect: str, writer: Writer) -> None:
    """Raises:
    RefusedError: the notation, written back, is another query than the one that was read.
    """
    expected = writer.tree(in_notation(tree))
    try:
        found = writer.tree(read(notation))
    except SqlglotError as error:
        raise refuse(f"a query that sqlglot cannot read again ({error})", dialect) from error
    if found != expected:
        start = next((at for at, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), 0)
        raise refuse(
            f"a construct that sqlglot reads in another sense: {expected[max(start - 30, 0) : start + 30]!r}", dialect
        )

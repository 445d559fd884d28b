"""The types that PostgreSQL gives to expressions, as far as the compiler must know them: what a sum adds up, what rows
are told apart by.

Types are spelled as the compiler spells DuckDB's. PostgreSQL has three that DuckDB has not:

- ``DECIMAL(9999, 9999)``: numbers whose scale differs from value to value. Sums of these are not maintained by
  addition, since the scale of what is left does not follow from the sum.
- ``DECIMAL(9999,s)``: a numeric without a typmod, all of whose values have the scale s.
- ``VARCHAR(n)`` is varchar, n = `ANY_LENGTH` where it has no length; ``VARCHAR`` alone is text.

An empty text is a type that is not known, which is always right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from dbt_openivm.compiler.lower.reading import read
from dbt_openivm.compiler.sql import text

Types = tuple[str, ...]
Scope = Mapping[tuple[str, str], str]
"""(alias, column) -> type; under the alias "" each column by its name alone."""

ANY_PRECISION = 9999
ANY_LENGTH = 9999999
NUMERIC = f"DECIMAL({ANY_PRECISION}, {ANY_PRECISION})"
"""Not as other decimals are spelled, whose equality tells all values apart: 1.0 = 1.00."""
NULL, STRING = "NULL", "STRING"
"""Of a literal that takes the type that is wanted of it; both end as text."""
INTEGERS = ("SMALLINT", "INTEGER", "BIGINT")
FLOATS = ("FLOAT", "DOUBLE")

PLAIN = {
    exp.DType.BOOLEAN: "BOOLEAN", exp.DType.SMALLINT: "SMALLINT", exp.DType.INT: "INTEGER", exp.DType.BIGINT: "BIGINT",
    exp.DType.FLOAT: "FLOAT", exp.DType.DOUBLE: "DOUBLE", exp.DType.DATE: "DATE",
    exp.DType.TIMESTAMP: "TIMESTAMP", exp.DType.TIMESTAMPNTZ: "TIMESTAMP", exp.DType.UUID: "UUID",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE", exp.DType.TIME: "TIME", exp.DType.INTERVAL: "INTERVAL",
}  # fmt: skip

PREDICATES = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean, exp.LogicalAnd, exp.LogicalOr, exp.Exists)
SAME = (
    exp.Paren,
    exp.Neg,
    exp.Abs,
    exp.Min,
    exp.Max,
    exp.AnyValue,
    exp.Filter,
    exp.Distinct,
    exp.Nullif,
    exp.IgnoreNulls,
)
TEXTS = (
    exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.DPipe, exp.MD5, exp.Replace, exp.Left, exp.Right, exp.Initcap,
    exp.Pad, exp.Reverse, exp.SplitPart, exp.Chr, exp.Translate, exp.Repeat, exp.Concat, exp.ConcatWs, exp.GroupConcat,
)  # fmt: skip
RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)


TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL")
TIME_RESULTS: dict[tuple[type[exp.Expr], str, str], str] = {
    (exp.Add, "DATE", "INTEGER"): "DATE", (exp.Sub, "DATE", "INTEGER"): "DATE", (exp.Sub, "DATE", "DATE"): "INTEGER",
    **{(kind, left, "INTERVAL"): left for kind in (exp.Add, exp.Sub) for left in TIMES[1:]},
    **{(kind, "DATE", "INTERVAL"): "TIMESTAMP" for kind in (exp.Add, exp.Sub)},
    **{(exp.Sub, left, left): "INTERVAL" for left in TIMES[1:]},
}  # fmt: skip


def decimal(scale: int) -> str:
    return f"DECIMAL({ANY_PRECISION},{scale})"


def scale_of(type_: str) -> int | None:
    """The one scale of all values of an exact number's type; None if there is no such scale, or it is no number."""
    if type_ in INTEGERS:
        return 0
    found = re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", type_)
    return int(found[1]) if found else None


def is_number(type_: str) -> bool:
    return type_ in (*INTEGERS, *FLOATS, NUMERIC) or type_.startswith("DECIMAL")


def noted(kind: exp.DataType) -> exp.DataType:
    """A type of PostgreSQL in the compiler's notation, where a varchar without length would be text."""
    if kind.this == exp.DType.DECIMAL and not kind.expressions:
        return exp.DataType.build(f"DECIMAL({ANY_PRECISION}, {ANY_PRECISION})", dialect="duckdb")
    if kind.this == exp.DType.VARCHAR and not kind.expressions:
        return exp.DataType.build(f"VARCHAR({ANY_LENGTH})", dialect="postgres")
    return kind


def type_of(kind: exp.DataType) -> str:
    """A type of the notation as the compiler spells it; empty for one that it does not know."""
    if kind.args.get("nested") or kind.args.get("values"):
        return ""
    parameters = [int(one.name) for one in kind.expressions if one.name.isdigit()]
    if kind.this == exp.DType.DECIMAL:
        wide = not parameters or parameters == [ANY_PRECISION, ANY_PRECISION]
        return NUMERIC if wide else f"DECIMAL({parameters[0]},{[*parameters, 0][1]})"
    if kind.this in (exp.DType.CHAR, exp.DType.BPCHAR):
        return f"CHAR({parameters[0]})" if parameters else ""
    if kind.this in (exp.DType.VARCHAR, exp.DType.TEXT):
        return f"VARCHAR({parameters[0]})" if parameters else "VARCHAR"
    return "" if parameters else PLAIN.get(kind.this, "")


def describe(query: str) -> Types:
    """The types of a query's columns, in the compiler's notation; none if they cannot be told at all."""
    return query_types(read(query), {})


def query_types(query: exp.Expr, tables: Mapping[str, Mapping[str, str]]) -> Types:
    """Args:
    tables: types of the columns of each relation, by what stands for it in FROM.
    """
    if isinstance(query, exp.Subquery | exp.Paren):
        return query_types(query.this, tables)
    if isinstance(query, exp.SetOperation):
        sides = query_types(query.this, tables), query_types(query.expression, tables)
        if len(sides[0]) != len(sides[1]):
            return ()
        return tuple(settled(common(pair)) for pair in zip(*sides, strict=True))
    if isinstance(query, exp.Values):
        rows = [[infer(value, {}) for value in row.expressions] for row in query.expressions]
        return tuple(settled(common(column)) for column in zip(*rows, strict=True))
    if not isinstance(query, exp.Select):
        return ()
    scope = scope_of(query, tables)
    return tuple(settled(infer(item.unalias(), scope)) for item in query.expressions)


def scope_of(query: exp.Select, tables: Mapping[str, Mapping[str, str]]) -> Scope:
    first = query.args.get("from_")
    items = ([] if first is None else [first.this]) + [join.this for join in query.args.get("joins") or ()]
    scope: dict[tuple[str, str], str] = {}
    for item in items:
        for name, type_ in columns_of(item, tables):
            scope[item.alias_or_name, name] = type_
            scope["", name] = type_
    return scope


def columns_of(item: exp.Expr, tables: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    if isinstance(item, exp.Table):
        known = tables.get(text(exp.Table(this=item.this, db=item.args.get("db"), catalog=item.args.get("catalog"))))
        return [] if known is None else list(known.items())
    names = item.alias_column_names or (item.this.named_selects if isinstance(item, exp.Subquery) else [])
    return list(zip(names, query_types(item, tables), strict=False))


def settled(type_: str) -> str:
    """The type of a column: a literal whose type nobody asked for is text."""
    return "VARCHAR" if type_ in (NULL, STRING) else type_


def infer(value: exp.Expr, scope: Scope) -> str:
    """The type of an expression; empty if it is not known."""
    if isinstance(value, exp.Column):
        return scope.get((value.table, value.name), "")
    if isinstance(value, exp.Cast):
        kind = value.args["to"]
        return type_of(kind) if isinstance(kind, exp.DataType) else ""
    if isinstance(value, exp.Literal):
        return STRING if value.is_string else number(value.name)
    if isinstance(value, exp.Null):
        return NULL
    if isinstance(value, PREDICATES):
        return "BOOLEAN"
    if isinstance(value, exp.Count):
        return "BIGINT"
    if isinstance(value, SAME):
        inner = value.expressions[0] if isinstance(value, exp.Distinct) and value.expressions else value.this
        return infer(inner, scope)
    if isinstance(value, exp.Binary | exp.Sum | exp.Avg):
        return computed(value, scope)
    return other(value, scope)


def computed(value: exp.Expr, scope: Scope) -> str:
    inner = infer(value.this, scope)
    if isinstance(value, exp.Sum):
        return sum_of(inner)
    if isinstance(value, exp.Avg):
        return ("DOUBLE" if inner in FLOATS else NUMERIC) if is_number(inner) else ""
    if isinstance(value, exp.DPipe):
        return "VARCHAR"
    return arithmetic(value, inner, infer(value.expression, scope))


def other(value: exp.Expr, scope: Scope) -> str:
    if isinstance(value, exp.Case):
        branches = [infer(branch.args["true"], scope) for branch in value.args["ifs"]]
        default = value.args.get("default")
        return common([*branches, NULL if default is None else infer(default, scope)])
    if isinstance(value, exp.Coalesce | exp.Greatest | exp.Least):
        return common([infer(part, scope) for part in (value.this, *value.expressions)])
    if isinstance(value, TEXTS):
        return "VARCHAR"
    if isinstance(value, exp.Round | exp.Floor | exp.Ceil):
        return rounded(value, infer(value.this, scope))
    if isinstance(value, exp.Interval):
        return "INTERVAL"
    if isinstance(value, exp.Length | exp.StrPosition | exp.Ascii | exp.Unicode):
        return "INTEGER"
    if isinstance(value, exp.Window):
        return "BIGINT" if isinstance(value.this, RANKS) else infer(value.this, scope)
    if isinstance(value, exp.Lag | exp.Lead | exp.FirstValue | exp.LastValue):
        return infer(value.this, scope)
    return ""


def rounded(value: exp.Expr, type_: str) -> str:
    places = value.args.get("decimals")
    if places is None:
        return "DOUBLE" if type_ in (*INTEGERS, *FLOATS) else decimal(0) if is_number(type_) else ""
    is_exact = is_number(type_) and type_ not in FLOATS
    return decimal(int(places.name)) if is_exact and isinstance(places, exp.Literal) and places.is_int else ""


def number(digits: str) -> str:
    if digits.isdigit():
        value = int(digits)
        return "INTEGER" if value < 2**31 else "BIGINT" if value < 2**63 else decimal(0)
    whole = re.fullmatch(r"\d*\.(\d*)", digits)
    return decimal(len(whole[1])) if whole else NUMERIC


def sum_of(type_: str) -> str:
    if type_ in ("SMALLINT", "INTEGER"):
        return "BIGINT"
    scale = scale_of(type_)
    if scale is not None:
        return decimal(scale)
    return type_ if type_ in (*FLOATS, NUMERIC) else ""


def arithmetic(value: exp.Expr, left: str, right: str) -> str:
    left = right if left in (NULL, STRING) else left
    right = left if right in (NULL, STRING) else right
    if left in TIMES or right in TIMES:
        return TIME_RESULTS.get((type(value), left, "INTEGER" if right in INTEGERS else right)) or ""
    if not (is_number(left) and is_number(right)):
        return ""
    if left in FLOATS or right in FLOATS:
        return "FLOAT" if left == right == "FLOAT" else "DOUBLE"
    if left in INTEGERS and right in INTEGERS:
        return max(left, right, key=INTEGERS.index)
    scales = scale_of(left), scale_of(right)
    if scales[0] is None or scales[1] is None or isinstance(value, exp.Div):
        return NUMERIC
    if isinstance(value, exp.Mul):
        return decimal(scales[0] + scales[1])
    return decimal(max(scales[0], scales[1])) if isinstance(value, exp.Add | exp.Sub | exp.Mod) else ""


def common(types: Sequence[str]) -> str:
    """The type of a CASE, a COALESCE or a UNION over values of these types."""
    known = [type_ for type_ in types if type_ not in (NULL, STRING)]
    if not known:
        return STRING if STRING in types else NULL
    if len(set(known)) == 1:
        return known[0]
    if not all(map(is_number, known)):
        return "VARCHAR" if all(type_.startswith("VARCHAR") for type_ in known) else ""
    for type_ in ("DOUBLE", "FLOAT", NUMERIC):
        if type_ in known:
            return type_
    if all(type_ in INTEGERS for type_ in known):
        return max(known, key=INTEGERS.index)
    scales = {scale_of(type_) for type_ in known if type_ not in INTEGERS}
    mixed = len(scales) > 1 or any(type_ in INTEGERS for type_ in known)
    return NUMERIC if mixed else decimal(scales.pop() or 0)

"""PostgreSQL, from version 15 on."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.generators.postgres import PostgresGenerator

from dbt_openivm.compiler.dialects.types import ANY_LENGTH, ANY_PRECISION
from dbt_openivm.compiler.sql import conjuncts

EXACT_TEXT = 'CAST({} AS TEXT) COLLATE "C"'
"""Tells apart all texts, whatever the collation takes for equal; NaN is one value, and -0 has its sign."""


class Generator(PostgresGenerator):
    """sqlglot's generator, with what it would write in other words than are meant."""

    TYPE_MAPPING: ClassVar = {**PostgresGenerator.TYPE_MAPPING, exp.DType.INT128: "NUMERIC"}
    TRANSFORMS: ClassVar = {
        **PostgresGenerator.TRANSFORMS,
        exp.AnyValue: lambda self, node: f"(ARRAY_AGG({self.sql(node, 'this')}))[1]",
        exp.Max: lambda self, node: self.func("MAX", node.this),
        exp.Min: lambda self, node: self.func("MIN", node.this),
        exp.Explode: lambda self, node: self.sql(node, "this"),  # of a series, which is a set of rows by itself
        exp.Div: lambda self, node: self.binary(node, "/"),
        exp.Mod: lambda self, node: self.binary(node, "%"),
    }

    def nullsafeeq_sql(self, node: exp.NullSafeEQ) -> str:
        """Unlike IS NOT DISTINCT FROM, an equality that joins can hash and indexes can find; arrays hold NULLs."""
        return f"ARRAY[{self.sql(node, 'this')}] = ARRAY[{self.sql(node, 'expression')}]"

    def bracket_sql(self, node: exp.Bracket) -> str:
        if isinstance(node.this, exp.ArrayAgg | exp.List) or node.this.name.lower() == "list":
            [part] = node.this.expressions or [node.this.this]
            return f"(ARRAY_AGG({self.sql(part)}))[1]"
        return super().bracket_sql(node)

    def subquery_sql(self, node: exp.Subquery, sep: str = " AS ") -> str:
        """Before version 16 a subquery in FROM must have an alias."""
        written = super().subquery_sql(node, sep)
        named = node.alias or not isinstance(node.parent, exp.From | exp.Join)
        return written if named else f"{written} AS openivm_rows"

    def ignorenulls_sql(self, node: exp.IgnoreNulls) -> str:
        """DuckDB's any_value() is one; the compiler only asks for it where all values are equal."""
        return self.sql(node, "this") if isinstance(node.this, exp.AnyValue) else super().ignorenulls_sql(node)

    def anonymous_sql(self, node: exp.Anonymous) -> str:
        name = node.name.lower()
        if name == "encode" and len(node.expressions) == 1:
            return EXACT_TEXT.format(self.sql(node.expressions[0]))
        if name == "signbit":
            return f"CAST({self.sql(node.expressions[0])} AS TEXT) LIKE '-%'"
        return super().anonymous_sql(node)

    def encode_sql(self, node: exp.Encode) -> str:
        return EXACT_TEXT.format(self.sql(node, "this"))

    def generateseries_sql(self, node: exp.GenerateSeries) -> str:
        """``range(n)`` is the only one that the compiler writes, for n copies."""
        return f"GENERATE_SERIES(1, {self.sql(node, 'end')})"

    def ordered_sql(self, node: exp.Ordered) -> str:
        if node.args.get("with_fill") is not None:  # the mark of NULLS LAST, see `reading.Parser`
            node = node.copy()
            node.set("with_fill", None)
            node.set("nulls_first", False)
        return super().ordered_sql(node)

    def datatype_sql(self, node: exp.DataType) -> str:
        parameters = [one.name for one in node.expressions]
        if node.this == exp.DType.DECIMAL and parameters[:1] == [str(ANY_PRECISION)]:
            return "NUMERIC"
        if node.this in (exp.DType.TEXT, exp.DType.VARCHAR) and parameters:
            return "VARCHAR" if parameters == [str(ANY_LENGTH)] else f"VARCHAR({parameters[0]})"
        if node.this == exp.DType.VARCHAR:
            return "TEXT"
        return super().datatype_sql(node)


def split_keys(tree: exp.Expr) -> exp.Expr:
    """Take the rows of touched keys in two parts, those of a key and those of NULL, so that an index may find them.

    No index of a table's owner is one of ``ARRAY[key]``.
    """
    for select in list(tree.find_all(exp.Select))[::-1]:  # what stands inside comes first
        parts = by_null(select)
        if parts is not None and select is tree:
            tree = parts
        elif parts is not None:
            select.replace(parts)
    return tree


def by_null(select: exp.Select) -> exp.Expr | None:
    """A plain SELECT with a null-safe condition on touched keys as two SELECTs; None for any other."""
    where = select.args.get("where")
    if where is None or any(select.args.get(name) for name in ("group", "having", "distinct", "order", "limit")):
        return None
    index = next((at for at, part in enumerate(conjuncts(where.this)) if of_touched(part)), None)
    if index is None or any(item.find(exp.AggFunc, exp.Window) for item in select.expressions):
        return None
    sides = []
    for is_null in (False, True):
        side = select.copy()
        condition = conjuncts(side.args["where"].this)[index]
        one, other = condition.this, condition.expression
        nulls = [exp.Is(this=value.copy(), expression=exp.Null()) for value in (one, other)]
        equal = exp.EQ(this=one.copy(), expression=other.copy())
        condition.replace(exp.And(this=nulls[0], expression=nulls[1]) if is_null else equal)
        sides.append(side)
    return exp.Union(this=sides[0], expression=sides[1], distinct=False)


def of_touched(part: exp.Expr) -> bool:
    keys = part.expression if isinstance(part, exp.NullSafeEQ) else None
    return isinstance(keys, exp.Column) and keys.table.startswith("affected")


class PostgresWriter:
    name = "postgres"

    def tree(self, expression: exp.Expr) -> str:
        dialect = Dialect.get_or_raise("postgres")
        generator = Generator(dialect=dialect, comments=False, unsupported_level=ErrorLevel.RAISE)
        return generator.generate(split_keys(expression))

"""Which relations and functions a query names: what the engine must look up before it can compile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from dbt_openivm.compiler.lower.expressions import function_name
from dbt_openivm.compiler.lower.reading import read, statements, written
from dbt_openivm.compiler.sql import text
from dbt_openivm.errors import QueryError

FILE_READERS = frozenset(
    [
        "read_parquet",
        "parquet_scan",
        "read_csv",
        "read_csv_auto",
        "read_json",
        "read_json_auto",
        "read_ndjson",
        "read_ndjson_auto",
        "read_json_objects",
        "read_ndjson_objects",
        "read_text",
        "read_blob",
        "delta_scan",
        "iceberg_scan",
        "postgres_scan",
        "sqlite_scan",
        "mysql_scan",
    ]
)
"""Table functions whose rows are data that may change: bases, captured by diff."""
REMEMBERED = 1024
"""Texts whose names are kept: each refresh asks again, and reading a text takes longer than many a refresh."""


def written_name(node: exp.Expr) -> str:
    """DuckDB's name of a function: what sqlglot writes for it, not what sqlglot calls it; empty for an operator."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return function_name(node)
    found = re.match(r"(\w+)\s*\(", text(node))
    return found[1].lower() if found else ""


@dataclass(frozen=True)
class References:
    """Names that a query mentions.

    Attributes:
        tables: relation names as one to three parts, CTE names excluded.
        readers: FROM texts of file readers.
        functions: function names in lower case.
        unnamed: texts of select items below the outermost SELECT whose column has no name but what DuckDB gives it.
    """

    tables: frozenset[tuple[str, ...]]
    readers: frozenset[str]
    functions: frozenset[str]
    unnamed: tuple[str, ...] = ()


def parse(sql: str) -> exp.Expr:
    """Parse one SELECT.

    Raises:
        QueryError: more than one statement, none, or one that is no query.
        sqlglot.errors.ParseError: the text is not understood by sqlglot (DuckDB may still understand it).
    """
    found = statements(sql)
    if len(found) != 1:
        raise QueryError(f"A view needs one SELECT statement, but its SQL has {len(found)} statements.")
    statement = found[0]
    while isinstance(statement, exp.Paren | exp.Subquery) and not statement.args.get("alias"):
        if not isinstance(statement.this, exp.Query) or any(v for k, v in statement.args.items() if k != "this"):
            break
        statement = statement.this
    if not isinstance(statement, exp.Query | exp.Values | exp.Pivot):
        raise QueryError(f"A view needs a SELECT statement, but its SQL is {type(statement).__name__.upper()}.")
    return statement


@lru_cache(maxsize=REMEMBERED)
def named_by(query: str) -> References:
    """The names in the query of a view.

    Raises:
        QueryError, sqlglot.errors.ParseError: as `parse`.
    """
    return references(parse(query))


@lru_cache(maxsize=REMEMBERED)
def named_in(text_: str) -> References:
    """The names in the body of a macro or of a plain view.

    Raises:
        sqlglot.errors.ParseError: the text is not understood by sqlglot.
    """
    return references(read(text_))


def references(query: exp.Expr) -> References:
    """Collect the names under `query`, those of CTEs too: looking up more is harmless."""
    from dbt_openivm.compiler.lower.query import table_text

    tables, readers, functions = set(), set(), set()
    for node in query.walk():
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
            functions.add(function_name(node.this))
            readers.add(table_text(node))
        elif isinstance(node, exp.Table):
            tables.add(tuple(part.name for part in node.parts))
        elif isinstance(node, exp.Func):
            functions.add(written_name(node))
    return References(frozenset(tables), frozenset(readers), frozenset(functions) - {""}, tuple(unnamed_items(query)))


def unnamed_items(query: exp.Expr) -> list[str]:
    """Texts of the select items below the outermost SELECT whose column has no name but what DuckDB gives it."""
    found: dict[str, None] = {}
    for select in query.find_all(exp.Select):
        for item in select.expressions:
            field = isinstance(item, exp.Dot) and not isinstance(item.expression, exp.Func)
            named = isinstance(item, exp.Alias | exp.Column | exp.Star) or field
            if select is not query and not named:
                found[written(item)] = None
    return list(found)

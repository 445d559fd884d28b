"""Parse SQL into sqlglot's tree, in a form that stays right when parts of it are moved elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType

from dbt_openivm.compiler.lower.arrays import plain_arrays
from dbt_openivm.compiler.sql import DIALECT, text
from dbt_openivm.errors import ConfigError

OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
BYTES = {"x": "BLOB", "b": "BIT"}
"""Prefixes of literals that are written as strings, and their types."""
AS_WRITTEN = frozenset(
    [
        "APPLY",
        "ARRAY_CAT",
        "ARRAY_CONCAT",
        "DATEDIFF",
        "DATE_ADD",
        "DATE_DIFF",
        "JARO_WINKLER_SIMILARITY",
        "JSON_EXTRACT",
        "JSON_EXTRACT_PATH",
        "JSON_EXTRACT_PATH_TEXT",
        "JSON_EXTRACT_STRING",
        "LIST_CONCAT",
        "LOG10",
        "LOG2",
        "MOD",
        "REDUCE",
    ]
)
FIRST = 1
"""DuckDB counts list elements from 1."""
LAST = exp.Var(this="NULLS LAST")
"""Stands in an ORDER BY where the query says so (see `Parser._parse_ordered`)."""
WRITTEN = "openivm_written"
"""Under this key an expression's meta holds the text that it was read from."""


class Parser(DuckDBParser):
    """sqlglot's parser of DuckDB's dialect, with what it forgets that matters to the meaning of a query."""

    # sqlglot would write them as something that is not quite the same
    FUNCTIONS: ClassVar = {name: made for name, made in DuckDBParser.FUNCTIONS.items() if name not in AS_WRITTEN}
    FUNC_TOKENS: ClassVar = {*DuckDBParser.FUNC_TOKENS, TokenType.APPLY}
    # JSON '[1,  2]' keeps its spaces, json('[1,  2]') does not
    TYPE_LITERAL_PARSERS: ClassVar = {}
    # a key is a key: j->'a.b' is no path
    JSON_OPERATORS: ClassVar = {
        TokenType.ARROW: lambda _parser, this, path: exp.JSONExtract(this=this, expression=path),
        TokenType.DARROW: lambda _parser, this, path: exp.JSONExtractScalar(this=this, expression=path),
    }

    def _parse_expression(self) -> exp.Expr | None:
        """Keep the text of an expression: DuckDB names a column without alias after it."""
        start = self._curr
        found = super()._parse_expression()
        if found is not None and start is not None and self._prev is not None:
            found.meta[WRITTEN] = self._find_sql(start, self._prev)
        return found

    def _parse_primary(self) -> exp.Expr | None:
        """Leave ``.5`` without a zero: DuckDB makes a DECIMAL(1,1) of it, and a DECIMAL(2,1) of ``0.5``."""
        if self._match_pair(TokenType.DOT, TokenType.NUMBER):
            return exp.Literal.number(f".{self._prev.text}")
        return super()._parse_primary()

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        before, string = self._curr, self._next
        bytes_ = before and before.text.lower() in BYTES and string and string.token_type == TokenType.STRING
        if bytes_ and string.start == before.end + 1:
            return self._parse_bytes()
        found = super()._parse_type(parse_interval, fallback_to_identifier)
        while found is not None and self._curr and self._curr.text == "!" and not self._is_operator_ahead():
            self._advance()
            found = exp.Anonymous(this="factorial", expressions=[found])
        return found

    def _is_operator_ahead(self) -> bool:
        """Whether the exclamation mark begins an operator, as in ``!~``."""
        return bool(self._next) and self._next.start == self._curr.end + 1 and self._next.text[:1] in "~="

    def _parse_ordered(self, parse_method: Callable[[], exp.Expr | None] | None = None) -> exp.Ordered | None:
        """Keep NULLS LAST: it is DuckDB's default only as long as nobody sets another one.

        It is kept in a place that is written behind the order, and that DuckDB has no use for.
        """
        found = super()._parse_ordered(parse_method)
        said = [token.text.upper() for token in self._tokens[max(self._index - 2, 0) : self._index]]
        if found is not None and said == ["NULLS", "LAST"]:
            found.set("with_fill", LAST.copy())
        return found

    def _parse_bytes(self) -> exp.Expr:
        """``x'1F'`` is a BLOB, ``b'01'`` a BIT."""
        type_ = BYTES[self._curr.text.lower()]
        digits = self._next.text
        self._advance(2)
        text_ = digits if type_ == "BIT" else "".join(f"\\x{digits[at : at + 2]}" for at in range(0, len(digits), 2))
        return exp.Cast(this=exp.Literal.string(text_), to=exp.DataType.build(type_, dialect=DIALECT))

    def _warn_unsupported(self) -> None:
        """Say nothing in users' terminals: what is not understood becomes the reason of a full refresh."""


def parser(dialect: Dialect) -> Parser:
    """A new parser.

    Raises:
        ConfigError: sqlglot is installed in a form that cannot be extended.
    """
    try:
        return Parser(dialect=dialect)
    except TypeError as error:  # mypyc's classes refuse to be the base of others, but only when one is made
        if "compiled" not in str(error):
            raise
        raise ConfigError(
            "sqlglot is installed in its compiled form (the package sqlglotc, which sqlglot[c] and sqlglot[rs] bring), "
            "whose parser dbt-openivm cannot extend. Nothing was changed. Run: pip uninstall sqlglotc"
        ) from error


def statements(query: str) -> list[exp.Expr]:
    """Parse every statement of a text.

    Raises:
        sqlglot.errors.ParseError: sqlglot does not understand the text.
        ConfigError: sqlglot is installed in a form that cannot be extended.
    """
    dialect = Dialect.get_or_raise(DIALECT)
    found = parser(dialect).parse(dialect.tokenize(query), query)
    return [settled(statement) for statement in found if statement is not None]


def read(query: str) -> exp.Expr:
    """Parse one statement.

    Raises:
        sqlglot.errors.ParseError: sqlglot does not understand the text.
    """
    found = statements(query)
    if not found:
        raise ParseError("there is no statement")
    return found[0]


def written(item: exp.Expr) -> str:
    """The text that an item of a select list was read from."""
    return str(item.meta.get(WRITTEN) or text(item))


def settled(tree: exp.Expr) -> exp.Expr:
    """Fix every subscript as it was written.

    sqlglot counts from 0 inside and adds the 1 on writing, but only where it believes that a list stands before the
    bracket; an expression put in the place of a column would change its mind.
    """
    for type_ in tree.find_all(exp.DataType):
        kind = type_.args.get("kind")
        if isinstance(kind, str) and not re.fullmatch(r"\w+(\.\w+)*", kind):
            type_.set("kind", ".".join(f'"{part}"' for part in [kind.replace('"', '""')]))
    brackets = [node for node in tree.find_all(exp.Bracket) if not node.args.get("offset")]
    if brackets:
        generator = Dialect.get_or_raise(DIALECT).generator()
        for node in brackets:
            node.set("expressions", generator.bracket_offset_expressions(node))
            node.set("offset", FIRST)
    plain_arrays(tree)
    for select in list(tree.find_all(exp.Select)):
        name_groups(select)
    return tree


def name_groups(select: exp.Select) -> None:
    """What is grouped by and repeats a select item with a subquery becomes the item's position: it is one value."""
    group = select.args.get("group")
    items = [item.unalias() for item in select.expressions]
    if group is None or not any(item.find(exp.Query) for item in items):
        return
    several = (exp.Columns, exp.Explode, exp.Unnest)
    plain = next((at for at, item in enumerate(items) if item.is_star or item.find(*several)), len(items))
    for node in list(group.walk(prune=lambda part: isinstance(part, exp.Query))):
        if node.find(exp.Query) and node in items[:plain]:
            node.replace(exp.Literal.number(items.index(node) + 1))


def view_query(create: str) -> str:
    """The query of a CREATE VIEW statement, as it is written there: nothing of it gets another name on the way.

    Raises:
        sqlglot.errors.SqlglotError: sqlglot does not understand the text, or it is another statement.
    """
    depth = 0
    tokens = Dialect.get_or_raise(DIALECT).tokenize(create)
    for token, following in pairwise(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if token.token_type == TokenType.ALIAS and depth == 0:
            query = create[following.start :].rstrip().rstrip(";")
            read(query)
            return query
    raise ParseError("this is no CREATE VIEW statement")


def split_arguments(call: str) -> list[str]:
    """The texts of the arguments in ``(a, f(b, c))``.

    Raises:
        sqlglot.errors.TokenError: it is no text that DuckDB would write.
    """
    tokens = Dialect.get_or_raise(DIALECT).tokenize(call)
    depth, start, pieces = 0, 0, []
    for token in tokens:
        depth -= token.token_type in CLOSING
        if (token.token_type == TokenType.COMMA and depth == 1) or (token.token_type in CLOSING and depth == 0):
            pieces.append(call[start : token.start].strip())
            start = token.end + 1
        if token.token_type in OPENING:
            start = token.end + 1 if depth == 0 else start
            depth += 1
    return [piece for piece in pieces if piece]


def called_names(query: str) -> set[str]:
    """The names before an opening parenthesis, in lower case: what the query calls, whatever sqlglot makes of it."""
    tokens = Dialect.get_or_raise(DIALECT).tokenize(query)
    return {token.text.lower() for token, following in pairwise(tokens) if following.token_type == TokenType.L_PAREN}

"""Parse SQL into sqlglot's tree, in a form that stays right when parts of it are moved elsewhere."""

from __future__ import annotations

from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

DIALECT = "duckdb"
FIRST = 1
"""DuckDB counts list elements from 1."""


def read(text: str) -> exp.Expr:
    """Parse one statement.

    Raises:
        sqlglot.errors.ParseError: sqlglot does not understand the text.
    """
    return settled(sqlglot.parse_one(text, dialect=DIALECT))


def settled(tree: exp.Expr) -> exp.Expr:
    """Fix every subscript as it was written.

    sqlglot counts from 0 inside and adds the 1 on writing, but only where it believes that a list stands before the
    bracket; an expression put in the place of a column would change its mind.
    """
    brackets = [node for node in tree.find_all(exp.Bracket) if not node.args.get("offset")]
    if brackets:
        generator = Dialect.get_or_raise(DIALECT).generator()
        for node in brackets:
            node.set("expressions", generator.bracket_offset_expressions(node))
            node.set("offset", FIRST)
    return tree


def called_names(text: str) -> set[str]:
    """The names before an opening parenthesis, in lower case: what the text calls, whatever sqlglot makes of it."""
    tokens = Dialect.get_or_raise(DIALECT).tokenize(text)
    return {token.text.lower() for token, following in pairwise(tokens) if following.token_type == TokenType.L_PAREN}

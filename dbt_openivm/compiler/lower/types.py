"""Types that lowering itself needs: which fields a struct has, whether UNNEST gets a list or a struct.

Lowering has no connection. Where the tree depends on a type it asks for it (`TypeWantedError`); whoever compiles finds
out and lowers again, see `dbt_openivm.compiler.compile.settle`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt_openivm.compiler.algebra import Operator, Project, column
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.outer import references, references_below, replace_references, rescoped
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.probe import rows_query
from dbt_openivm.compiler.sql import cast
from dbt_openivm.errors import UnsupportedError

VALUE = "openivm_value"
CLOSING = {")": "(", "]": "["}


class TypeWantedError(Exception):
    """The type of a query's columns decides how another one is lowered."""

    def __init__(self, probe: str) -> None:
        super().__init__(probe)
        self.probe = probe


@dataclass(frozen=True)
class Nested:
    """A type as far as it can be taken apart.

    Attributes:
        text: as DuckDB spells it.
        element: the type of the elements of a list or an array, None for any other type.
        fields: (name, type) of a struct; empty for any other type.
    """

    text: str
    element: str | None = None
    fields: tuple[tuple[str, str], ...] = ()


def type_of(operator: Operator, value: exp.Expr, facts: CompileFacts, what: str, around: Scope | None = None) -> Nested:
    """The type of an expression over the columns of `operator`.

    Args:
        what: names the construct in a message.
        around: the scope around the query, which both may refer to.

    Raises:
        TypeWantedError: it is not known yet.
        UnsupportedError: DuckDB does not tell it.
    """
    while around is not None:
        # what a column refers to is of no matter here, only its type
        names = references(value, around.number) | references_below(operator, around.number)
        nulls = {
            name: cast(exp.Null(), type_of(around.operator, column(name), facts, what, around.outer).text)
            for name in sorted(names)
        }
        value = replace_references(value, around.number, nulls)
        operator = rescoped(operator, around.number, nulls)
        around = around.outer
    return parse_type(answer(rows_query(Project(operator, ((VALUE, value),))), facts, what))


def answer(probe: str, facts: CompileFacts, what: str) -> str:
    """The type of the one column of a query."""
    found = facts.types.get(probe)
    if found is None:
        raise TypeWantedError(probe)
    if not found:
        raise UnsupportedError(f"{what}, whose type DuckDB does not tell,")
    return found[0]


def parse_type(text: str) -> Nested:
    """Take a type apart.

    Example:
        >>> parse_type('STRUCT(a INTEGER, "b c" DECIMAL(5,2)[])[]').element
        'STRUCT(a INTEGER, "b c" DECIMAL(5,2)[])'
        >>> parse_type('STRUCT(a INTEGER, "b c" DECIMAL(5,2)[])').fields
        (('a', 'INTEGER'), ('b c', 'DECIMAL(5,2)[]'))
    """
    if text.endswith("]"):
        return Nested(text, element=text[: text.rindex("[")])
    kind, _, inside = text.partition("(")
    if kind == "STRUCT" and inside.endswith(")"):
        return Nested(text, fields=tuple(map(field, pieces(inside[:-1]))))
    return Nested(text)


def field(piece: str) -> tuple[str, str]:
    """A name, quoted where it must be, and the type behind it."""
    if not piece.startswith('"'):
        name, _, type_ = piece.partition(" ")
        return name, type_
    end = 1
    while piece[end] != '"' or piece[end + 1 : end + 2] == '"':
        end += 2 if piece[end] == '"' else 1
    return piece[1:end].replace('""', '"'), piece[end + 2 :]


def pieces(listed: str) -> list[str]:
    """The parts between the outermost commas."""
    found, start, depth, quote = [], 0, 0, ""
    for position, char in enumerate(listed):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in CLOSING.values():
            depth += 1
        elif char in CLOSING:
            depth -= 1
        elif char == "," and depth == 0:
            found.append(listed[start:position].strip())
            start = position + 1
    return [*found, listed[start:].strip()]

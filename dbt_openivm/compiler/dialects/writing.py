"""Write the compiler's notation in the words of an engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from sqlglot import exp

from dbt_openivm.compiler.lower.reading import read

QUERIES = frozenset({"query"})
PLAIN = frozenset({"allowed", "version", "share", "kind", "event"})
"""Arguments of steps that are no SQL."""
FROM_ITEM = re.compile(r"(?s)\((.*)\)( AS \w+)?")


class Writer(Protocol):
    """Writes what was read in the compiler's notation."""

    name: str

    def tree(self, expression: exp.Expr) -> str:
        """The SQL of a tree."""


def query(writer: Writer, text: str) -> str:
    return writer.tree(read(text))


def item(writer: Writer, text: str) -> str:
    """An expression, an identifier, the name of a relation, or an item of a select list."""
    if text.isidentifier():
        return text
    [found] = read(f"SELECT {text}").expressions
    return writer.tree(found)


def source(writer: Writer, text: str) -> str:
    """What stands in FROM: a relation, or a query in parentheses."""
    found = FROM_ITEM.fullmatch(text)
    return item(writer, text) if found is None else f"({query(writer, found[1])}){found[2] or ''}"


def arguments(writer: Writer, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a step in the engine's words."""
    return {name: argument(writer, name, value) for name, value in given.items()}


def argument(writer: Writer, name: str, value: Any) -> Any:
    if name in PLAIN or value is None:
        return value
    if isinstance(value, Mapping):
        return arguments(writer, value)
    if isinstance(value, list | tuple):
        return [argument(writer, name, part) for part in value]
    if not isinstance(value, str):
        return value
    if name in QUERIES:
        return query(writer, value)
    return source(writer, value) if name == "source" else item(writer, value)

"""Where in the user's query a construct stands, for messages."""

from __future__ import annotations

from sqlglot import exp


def line(node: exp.Expr) -> int | None:
    """The line of the first token under `node`, counted from 1; None where the parser kept no position."""
    for part in node.walk():
        found = part.meta.get("line")
        if found is not None:
            return int(found)
    return None


def place(node: exp.Expr) -> str:
    """`` at line N``, or nothing."""
    number = line(node)
    return "" if number is None else f" at line {number}"

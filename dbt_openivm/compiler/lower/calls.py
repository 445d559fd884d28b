"""Calls with a dot before them: ``schema.f(x)`` is ``f(x)``, and ``x.f(y)`` is ``f(x, y)``."""

from __future__ import annotations

from sqlglot import exp

from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.macros import at
from dbt_openivm.compiler.lower.reading import WRITTEN, read
from dbt_openivm.compiler.sql import text

BUILT_IN = {("main",), ("system", "main"), ("pg_catalog",), ("system", "pg_catalog")}


def plain_calls(tree: exp.Expr, facts: CompileFacts) -> exp.Expr:
    """`tree` without such calls; one that could mean several things stays, and is refused further on."""

    dotted = [node for node in tree.walk() if is_dotted(node)]
    for node in reversed(dotted):  # what is written before a dot may hold such a call itself
        made = changed(node, facts)
        if node is tree:
            return made
        if made is not node:
            node.replace(made)
    return tree


def is_dotted(node: exp.Expr) -> bool:
    if isinstance(node, exp.Dot):
        return isinstance(node.expression, exp.Func)
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Filter)


def changed(node: exp.Expr, facts: CompileFacts) -> exp.Expr:
    if isinstance(node, exp.Dot):
        return plain(node, node.this, node.expression, facts)
    assert isinstance(node, exp.Column)
    # sqlglot reads x.sum() FILTER (..) as a column of the table x that is called after the call
    before = [part.copy() for part in node.parts[:-1]]
    call = plain(node, exp.Dot.build(before) if len(before) > 1 else before[0], node.this.this, facts)
    return exp.Filter(this=call, expression=node.this.expression)


def plain(node: exp.Expr, before: exp.Expr, call: exp.Func, facts: CompileFacts) -> exp.Expr:
    name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
    arguments = [text(part) for part in call.iter_expressions()]
    parts = identifiers(before)
    homes = {macro.home.lower() for macro in facts.macros.get(name.lower(), ())}
    if parts is not None and any(matches(home, parts) for home in homes):
        if len(homes) > 1:
            return node
    elif parts not in BUILT_IN:
        arguments = [text(before), *arguments]
    elif homes:
        return node
    made = read(f"SELECT {name}({', '.join(arguments)})").expressions[0]
    made = at(made, node)
    if WRITTEN in node.meta:
        made.meta[WRITTEN] = node.meta[WRITTEN]
    return made


def matches(home: str, parts: tuple[str, ...]) -> bool:
    """Whether ``schema`` or ``database.schema`` means the home of a macro."""
    return tuple(home.split("."))[-len(parts) :] == parts


def identifiers(value: exp.Expr) -> tuple[str, ...] | None:
    """The names of ``a.b`` in lower case; None if it is anything else."""
    if isinstance(value, exp.Identifier):
        return (value.name.lower(),)
    if isinstance(value, exp.Dot) and isinstance(value.expression, exp.Identifier):
        before = identifiers(value.this)
        return None if before is None else (*before, value.expression.name.lower())
    return None

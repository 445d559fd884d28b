"""Bind expressions: every column becomes an output column of the operator below, macros are inlined.

What a later stage could not treat as a deterministic function of one row is refused here with its name and place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from sqlglot import exp

from dbt_openivm.compiler.algebra import column
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.calls import plain_calls
from dbt_openivm.compiler.lower.macros import expand_call
from dbt_openivm.compiler.lower.outer import is_outer, outer_column
from dbt_openivm.compiler.lower.rows import Flat, positional, whole_row
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import text
from dbt_openivm.errors import UnsupportedError

Alias = Callable[[str], exp.Expr | None]

REFUSED: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Window, "a window function"),
    (exp.Exists, "EXISTS"),
    (exp.Query, "a subquery in an expression"),
    (exp.Unnest, "UNNEST"),
    (exp.Explode, "UNNEST"),
    (exp.Star, "a star inside an expression"),
    (exp.Columns, "COLUMNS()"),
    (exp.Placeholder, "a parameter"),
    (exp.Parameter, "a parameter"),
    (exp.Grouping, "GROUPING()"),
)


UNNESTING = frozenset({"unnest", "generate_subscripts", "regexp_split_to_table"})
"""Functions that make several rows of one."""


def refuse(node: exp.Expr) -> None:
    """Raise for a construct that no operator handles yet."""
    for kind, name in REFUSED:
        counted = isinstance(node, exp.Star) and isinstance(node.parent, exp.Count)
        if isinstance(node, kind) and not counted:
            raise UnsupportedError(f"{name}{place(node)}")
    if isinstance(node, exp.Anonymous) and function_name(node) in UNNESTING:
        raise UnsupportedError(f"{function_name(node)}(){place(node)}")


def function_name(node: exp.Expr) -> str:
    """DuckDB's name of a function node in lower case."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return str(node.name).lower()
    return str(node.sql_name()).lower() if isinstance(node, exp.Func) else ""


def expand_macro(node: exp.Expr, facts: CompileFacts) -> exp.Expr | None:
    """The body of a user's scalar macro with its arguments put in, or None if `node` calls none."""
    if not isinstance(node, exp.Func) or not facts.macros:
        return None
    overloads = [macro for macro in facts.macros.get(function_name(node), ()) if not macro.is_table]
    if not overloads:
        return None
    arguments = list(node.expressions) if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
    return exp.Paren(this=plain_calls(expand_call(overloads, arguments, node), facts))


def no_alias(_name: str) -> exp.Expr | None:
    return None


class CollectsWindows(Protocol):
    """What computes the window calls of a block."""

    def bound(self, call: exp.Window, bind: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """The column that will hold the value of a call."""
        ...


class Binder:
    """Binds scalar expressions over one scope.

    Args:
        scope: the relations of FROM.
        facts: for macros.
        alias: what an unresolved unqualified name may also mean (an earlier alias of the select list), unbound.
        windows: collects window calls; without it they are refused.
    """

    def __init__(
        self, scope: Scope, facts: CompileFacts, alias: Alias | None = None, windows: CollectsWindows | None = None
    ) -> None:
        self.scope = scope
        self.facts = facts
        self.alias = alias or no_alias
        self.windows = windows

    def bind(self, node: exp.Expr, locals_: frozenset[str] = frozenset()) -> exp.Expr:
        """A bound copy of `node`. `locals_` are the variables of enclosing list comprehensions."""
        if self.scope.subqueries is not None and not locals_:
            value = self.scope.subqueries.value(node, self.bind)
            if value is not None:
                return grouped(value)
        if isinstance(node, exp.Window) and self.windows is not None:
            return self.windows.bound(node, lambda part: self.bind(part, locals_))
        refuse(node)
        expanded = expand_macro(node, self.facts)
        if expanded is not None:
            return self.bind(expanded, locals_)
        if isinstance(node, exp.Column):
            return self.bind_column(node, locals_)
        if isinstance(node, Flat):
            return column(node.this.name)
        if isinstance(node, exp.PositionalColumn):
            return column(positional(node, self.scope)[1])
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            raise UnsupportedError(f"the qualified function {text(node)}{place(node)}")
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            return struct_field(self.bind(node.this, locals_), node.expression.name)
        if isinstance(node, exp.Comprehension):
            variables = (node.expression, node.args.get("position"))
            locals_ = locals_ | {variable.name.lower() for variable in variables if variable is not None}
        return rebuild(node, lambda child: self.bind(child, locals_))

    def bind_column(self, node: exp.Column, locals_: frozenset[str]) -> exp.Expr:
        if is_outer(node):
            return node.copy()
        parts = [part.name for part in node.parts]
        if parts[0].lower() in locals_:
            # an identifier, as the variables of lambdas are: no later pass takes it for a column
            return fields(exp.to_identifier(parts[0], quoted=True), parts[1:])
        bound = self.lookup(parts)
        if bound is not None:
            return bound
        if len(parts) == 1:
            meant = self.alias(parts[0])
            if meant is not None and not (isinstance(meant, exp.Column) and meant.name.lower() == parts[0].lower()):
                return grouped(self.bind(meant, locals_))
            row = whole_row(self.scope, parts[0], column)
            if row is not None:
                return row
        around = self.scope.outer
        while around is not None:
            bound = look_up(around, parts, partial(outer_column, around.number))
            if bound is not None:
                return bound
            around = around.outer
        raise UnsupportedError(f"the column {'.'.join(parts)}, which could not be resolved{place(node)}")

    def lookup(self, parts: list[str]) -> exp.Expr | None:
        return look_up(self.scope, parts, column)


def look_up(scope: Scope, parts: list[str], make: Callable[[str], exp.Expr]) -> exp.Expr | None:
    """``[database.][schema.]table.column[.field..]`` or ``column[.field..]``; a table wins over a struct."""
    for width in (3, 2, 1):
        if len(parts) > width and (flat := scope.qualified(tuple(parts[:width]), parts[width])) is not None:
            return fields(make(flat), parts[width + 1 :])
    flat = scope.unqualified(parts[0])
    return None if flat is None else fields(make(flat), parts[1:])


def grouped(value: exp.Expr) -> exp.Expr:
    """`value` in parentheses where it could be torn apart by an operator around it."""
    atomic = isinstance(value, exp.Column | exp.Literal | exp.Func | exp.Paren | exp.Cast)
    return value if atomic and not isinstance(value, exp.Binary) else exp.Paren(this=value)


def fields(value: exp.Expr, names: list[str]) -> exp.Expr:
    for name in names:
        value = struct_field(value, name)
    return value


def struct_field(value: exp.Expr, name: str) -> exp.Expr:
    """``(value)."name"``, which DuckDB takes for a field of a struct and for a key of JSON alike."""
    return exp.Dot(this=exp.Paren(this=value), expression=exp.to_identifier(name, quoted=True))


def rebuild(node: exp.Expr, bind: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A copy of `node` whose direct children went through `bind`; identifiers, types and leaves stay."""
    copy = node.__class__()
    if node.type is not None and isinstance(node, exp.Cast):
        copy.type = node.type
    copy.meta.update(node.meta)
    for key, value in node.args.items():
        copy.set(key, _rebuild_value(value, bind))
    return copy


def _rebuild_value(value: object, bind: Callable[[exp.Expr], exp.Expr]) -> object:
    if isinstance(value, list):
        return [_rebuild_value(item, bind) for item in value]
    if isinstance(value, exp.Identifier | exp.DataType | exp.Literal | exp.Var | exp.Star):
        return value.copy()
    return bind(value) if isinstance(value, exp.Expr) else value

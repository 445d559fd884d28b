"""Columns that are resolved already, rows as values, columns by position."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.places import place
from dbt_openivm.errors import UnsupportedError

Make = Callable[[str], exp.Expr]
"""Output column of the scope's operator -> expression."""


class Flat(exp.Expression):
    """A column that is resolved already: a star's expansion needs no look-up, and must not find a namesake."""

    arg_types = {"this": True}


def flat(name: str) -> Flat:
    return Flat(this=exp.to_identifier(name, quoted=True))


def whole_row(scope: Scope, alias: str, make: Make) -> exp.Expr | None:
    """The row of the relation called `alias` as a struct; None if there is no such relation."""
    found = [binding for binding in scope.bindings if binding.alias.lower() == alias.lower()]
    if not found:
        return None
    names = [name.lower() for name, _ in found[0].columns]
    if len(found) > 1 or len(set(names)) < len(names):
        raise UnsupportedError(f"the row of {alias}, whose names are not unique,")
    return struct([(name, make(inner)) for name, inner in found[0].columns])


def struct(fields: list[tuple[str, exp.Expr]]) -> exp.Expr:
    pairs = [exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=value) for name, value in fields]
    return exp.Struct(expressions=pairs)


def positional(node: exp.PositionalColumn, scope: Scope) -> tuple[str, str]:
    """(name, output column) of ``#1``."""
    listed = [pair for binding in scope.bindings for pair in binding.columns]
    number = int(node.this.name)
    if not 0 < number <= len(listed):
        raise UnsupportedError(f"the column #{number}{place(node)}")
    return listed[number - 1]


def with_local_names(node: exp.Comprehension) -> exp.Comprehension:
    """A list comprehension whose variables are identifiers, as those of lambdas are: no pass takes them for columns."""
    copy = node.copy()
    variables = (copy.expression, copy.args.get("position"))
    names = {variable.name.lower() for variable in variables if variable is not None}
    for key in ("this", "condition"):
        if copy.args.get(key) is not None:
            copy.set(key, copy.args[key].transform(lambda part: local(part, names)))
    return copy


def local(node: exp.Expr, names: set[str]) -> exp.Expr:
    if not isinstance(node, exp.Column) or node.parts[0].name.lower() not in names:
        return node
    value: exp.Expr = exp.to_identifier(node.parts[0].name, quoted=True)
    for part in node.parts[1:]:
        value = exp.Dot(this=value, expression=exp.to_identifier(part.name, quoted=True))
    return value

"""Calls of macros: which overload is meant, and its body with the arguments put in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from dbt_openivm.compiler.facts import Macro
from dbt_openivm.compiler.lower.reading import read
from dbt_openivm.compiler.places import line, place
from dbt_openivm.compiler.sql import cast, text
from dbt_openivm.errors import UnsupportedError

Values = dict[str, exp.Expr]
"""What stands for each parameter, by its name in lower case."""


def expand_call(overloads: Sequence[Macro], arguments: Sequence[exp.Expr], node: exp.Expr) -> exp.Expr:
    """The body of the macro that a call means, with the call's arguments in the places of its parameters.

    Raises:
        UnsupportedError: more than one macro of this name could be meant, or none.
    """
    name = overloads[0].name
    if len({macro.home for macro in overloads}) > 1:
        raise UnsupportedError(f"the macro {name}, of which several schemas have one,{place(node)}")
    if len(overloads) > 1 and any(macro.defaults is None for macro in overloads):
        raise UnsupportedError(f"the overloaded macro {name}{place(node)}")
    found = [(macro, values) for macro in overloads if (values := matched(macro, arguments)) is not None]
    if not found:
        raise UnsupportedError(f"the macro {name}, called with other arguments than it has,{place(node)}")
    if len(found) > 1:
        raise UnsupportedError(f"the macro {name}, whose overloads differ by type only,{place(node)}")
    macro, values = found[0]
    return substitute_names(at(read(macro.body), node), values)


def at(body: exp.Expr, call: exp.Expr) -> exp.Expr:
    """`body` as if it stood where the call does: lines within a macro say nothing to the reader of a query."""
    for part in body.walk():
        part.meta.pop("line", None)
    if (number := line(call)) is not None:
        body.meta["line"] = number
    return body


def matched(macro: Macro, arguments: Sequence[exp.Expr]) -> Values | None:
    """The values of all parameters, defaults included; None if the call does not fit."""
    named = [argument for argument in arguments if isinstance(argument, exp.PropertyEQ | exp.Kwarg)]
    positional = list(arguments[: len(arguments) - len(named)])
    if len(positional) > len(macro.parameters) or named != list(arguments[len(positional) :]):
        return None
    values = dict(zip(map(str.lower, macro.parameters), positional, strict=False))
    for argument in named:
        if argument.this.name.lower() in values:
            return None
        values[argument.this.name.lower()] = argument.expression
    defaults = macro.defaults or (None,) * len(macro.parameters)
    for parameter, default in zip(macro.parameters, defaults, strict=True):
        if parameter.lower() not in values and default is not None:
            values[parameter.lower()] = unqualified(read(default))
    if values.keys() != set(map(str.lower, macro.parameters)):
        return None
    return values | {
        parameter.lower(): cast(values[parameter.lower()].copy(), type_)
        for parameter, type_ in zip(macro.parameters, macro.types, strict=bool(macro.types))
        if type_ is not None
    }


def unqualified(value: exp.Expr) -> exp.Expr:
    """A default as DuckDB writes it, without the schema of DuckDB's own functions."""

    def strip(node: exp.Expr) -> exp.Expr:
        own = isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func)
        return node.expression if own and text(node.this).replace('"', "").lower() == "system.main" else node

    return value.transform(strip)


def substitute_names(body: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """Replace the unqualified columns of `body` named in `values` (lower case)."""

    def replace(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in values:
            return exp.Paren(this=values[node.name.lower()].copy())
        return node

    return body.copy().transform(replace)

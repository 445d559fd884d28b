"""References from a subquery to the query around it.

While a subquery is lowered, a column of the query around it is written as a column of a table called after the scope
that it belongs to. `unnest` replaces all of them; none is left in a finished tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any
from weakref import WeakKeyDictionary

from sqlglot import exp

from dbt_openivm.compiler.algebra import Call, Operator, bottom_up
from dbt_openivm.compiler.sql import parenthesised, qualified, transform

OUTER = "openivm_outer_scope_"

_BELOW: WeakKeyDictionary[Operator, frozenset[tuple[str, str]]] = WeakKeyDictionary()
"""What `outer_references` found: an operator and its expressions never change, and each pass over scopes asks."""


def outer_table(scope: int) -> str:
    return f"{OUTER}{scope}"


def outer_column(scope: int, name: str) -> exp.Column:
    """The column `name` of the operator of an enclosing scope."""
    return qualified(outer_table(scope), name)


def references(value: exp.Expr, scope: int) -> set[str]:
    """The columns of a scope that an expression refers to."""
    return {node.name for node in value.find_all(exp.Column) if node.table == outer_table(scope)}


def references_below(operator: Operator, scope: int) -> set[str]:
    """The columns of a scope that any expression of an operator tree refers to."""
    table = outer_table(scope)
    return {name for at, name in outer_references(operator) if at == table}


def outer_references(operator: Operator) -> frozenset[tuple[str, str]]:
    """The (table, column) of each reference from an operator tree to a scope around it."""
    found = _BELOW.get(operator)
    if found is None:
        columns = (node for value in expressions_of(operator) for node in value.find_all(exp.Column))
        own = frozenset((node.table, node.name) for node in columns if node.table.startswith(OUTER))
        found = _BELOW[operator] = own.union(*map(outer_references, operator.inputs))
    return found


def expressions_of(operator: Operator) -> Iterator[exp.Expr]:
    """The expressions of one operator."""
    for part in fields(operator):
        yield from _expressions(getattr(operator, part.name))


def _expressions(value: Any) -> Iterator[exp.Expr]:
    if isinstance(value, exp.Expr):
        yield value
    elif isinstance(value, Call):
        yield value.expression
    elif isinstance(value, tuple):
        for item in value:
            yield from _expressions(item)


def replace_references(value: exp.Expr, scope: int, columns: Mapping[str, exp.Expr]) -> exp.Expr:
    """A copy of `value` with each reference to the scope replaced by what `columns` holds for it."""

    def put(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table == outer_table(scope):
            return parenthesised(columns[node.name], node)
        return node

    return transform(value.copy(), put)


def map_expressions(operator: Operator, change: Callable[[exp.Expr], exp.Expr]) -> Operator:
    """The operator with every expression of its own changed."""
    changed = {part.name: _mapped(getattr(operator, part.name), change) for part in fields(operator)}
    return replace(operator, **changed)


def _mapped(value: Any, change: Callable[[exp.Expr], exp.Expr]) -> Any:
    if isinstance(value, exp.Expr):
        return change(value)
    if isinstance(value, Call):
        argument = None if value.argument is None else change(value.argument)
        condition = None if value.condition is None else change(value.condition)
        return replace(value, argument=argument, condition=condition, expression=change(value.expression))
    if isinstance(value, tuple) and any(isinstance(item, exp.Expr | Call | tuple) for item in value):
        return tuple(_mapped(item, change) for item in value)
    return value


def rescoped(operator: Operator, scope: int, columns: Mapping[str, exp.Expr]) -> Operator:
    """A tree whose references to a scope are replaced, each by what `columns` holds for it."""

    def replaced(op: Operator) -> Operator:
        return map_expressions(op, lambda value: replace_references(value, scope, columns))

    return bottom_up(operator, replaced) if references_below(operator, scope) else operator

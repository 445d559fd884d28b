"""Smaller queries out of a query: one part taken away or replaced, each result a candidate for the shrinker."""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

DIALECT = "duckdb"
CLAUSES = ("where", "having", "qualify", "distinct", "order", "limit", "offset", "group")


def smaller_queries(sql: str) -> Iterator[str]:
    """Queries made from `sql` by one reduction, the boldest first. They need not bind, or mean the same."""
    try:
        tree = sqlglot.parse_one(sql, dialect=DIALECT)
    except SqlglotError:
        return
    seen = {_sql(tree)}
    for candidate in _candidates(tree):
        text = _sql(candidate)
        if text not in seen and len(text) < len(sql) + 20:
            seen.add(text)
            yield text


def _sql(tree: exp.Expression) -> str:
    return tree.sql(dialect=DIALECT)


def _candidates(tree: exp.Expression) -> Iterator[exp.Expression]:
    yield from _hoisted(tree)
    yield from _without_clauses(tree)
    yield from _without_items(tree)
    yield from _simpler_values(tree)


def _nodes(tree: exp.Expression, *kinds: type[exp.Expression]) -> list[int]:
    """Positions in a walk, which are the same in a copy."""
    return [i for i, node in enumerate(tree.walk()) if isinstance(node, kinds)]


def _node(tree: exp.Expression, position: int) -> exp.Expression:
    for i, node in enumerate(tree.walk()):
        if i == position:
            return node
    raise IndexError(position)


def _hoisted(tree: exp.Expression) -> Iterator[exp.Expression]:
    """An inner query in the place of the whole, one side of a union in the place of both."""
    for position in _nodes(tree, exp.Select, exp.SetOperation)[1:]:
        yield _node(tree, position).copy()
    for position in _nodes(tree, exp.SetOperation):
        for side in ("this", "expression"):
            copy = tree.copy()
            node = _node(copy, position)
            if node is copy:
                yield node.args[side].copy()
            else:
                node.replace(node.args[side])
                yield copy


def _without_clauses(tree: exp.Expression) -> Iterator[exp.Expression]:
    for position in _nodes(tree, exp.Select):
        for clause in CLAUSES:
            if _node(tree, position).args.get(clause):
                copy = tree.copy()
                _node(copy, position).set(clause, None)
                yield copy
    for position in _nodes(tree, exp.With):
        copy = tree.copy()
        _node(copy, position).pop()
        yield copy


def _without_items(tree: exp.Expression) -> Iterator[exp.Expression]:
    """Without one item of a list: select items, joins, group keys, CTEs."""
    lists = ((exp.Select, "joins"), (exp.Select, "expressions"), (exp.Group, "expressions"), (exp.With, "expressions"))
    for kind, name in lists:
        for position in _nodes(tree, kind):
            items = _node(tree, position).args.get(name) or []
            for i in range(len(items)):
                if len(items) == 1 and name != "joins":
                    continue
                copy = tree.copy()
                node = _node(copy, position)
                node.set(name, [item for j, item in enumerate(node.args[name]) if j != i])
                yield copy


def _simpler_values(tree: exp.Expression) -> Iterator[exp.Expression]:
    """A part of an expression in the place of the whole expression, or a plain constant."""
    composed = (
        exp.Binary,
        exp.Unary,
        exp.Func,
        exp.Cast,
        exp.Case,
        exp.Filter,
        exp.Paren,
        exp.Between,
        exp.In,
        exp.Alias,
    )
    for position in _nodes(tree, *composed):
        node = _node(tree, position)
        children = [child for child in node.iter_expressions() if isinstance(child, exp.Condition | exp.Alias)]
        for number, _ in enumerate(children):
            copy = tree.copy()
            target = _node(copy, position)
            child = [child for child in target.iter_expressions() if isinstance(child, exp.Condition | exp.Alias)][
                number
            ]
            if target.parent is not None:
                target.replace(child.copy())
                yield copy
        if isinstance(node, exp.Func | exp.Case | exp.Binary) and node.parent is not None:
            copy = tree.copy()
            _node(copy, position).replace(exp.Literal.number(1))
            yield copy

"""A Z-set as one SELECT block: sources, conditions, columns, and the weight of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.names import MULTIPLICITY


@dataclass(frozen=True, eq=False)
class Fragment:
    """Attributes:
    sources: aliased FROM items, joined by commas.
    conditions: conjuncts of WHERE.
    columns: output column -> expression over the sources.
    weight: the multiplicity of a row; None where every row weighs 1.
    """

    sources: tuple[exp.Expr, ...]
    conditions: tuple[exp.Expr, ...]
    columns: Mapping[str, exp.Expr]
    weight: exp.Expr | None = None

    def select(self, items: Sequence[exp.Expr], weighted: bool = False, extra: Sequence[exp.Expr] = ()) -> exp.Select:
        """SELECT items (and the weight, if asked for) FROM this fragment."""
        columns = list(items)
        if weighted:
            columns.append(sql.named(self.weight_or_one(), MULTIPLICITY))
        sources = [sql.placeable(source) for source in self.sources]
        return sql.select(columns, sources, [c.copy() for c in (*self.conditions, *extra)])

    def weight_or_one(self) -> exp.Expr:
        return exp.Literal.number(1) if self.weight is None else self.weight.copy()

    def bind(self, expression: exp.Expr) -> exp.Expr:
        """An expression over the output columns, as one over the sources."""
        return sql.substitute(expression, self.columns)

    def all_items(self) -> list[exp.Expr]:
        return [sql.named(value.copy(), name) for name, value in self.columns.items()]


def times(left: exp.Expr | None, right: exp.Expr | None) -> exp.Expr | None:
    """The weight of a joined row."""
    if left is None or right is None:
        return right if left is None else left
    return exp.Mul(this=left.copy(), expression=right.copy())


def combine(queries: Sequence[Fragment]) -> tuple[exp.Expr, bool]:
    """UNION ALL of fragments with equal columns, and whether it has a weight column."""
    weighted = any(fragment.weight is not None for fragment in queries)
    selects = [fragment.select(sql.at_least_one(fragment.all_items()), weighted) for fragment in queries]
    return sql.union_all(selects), weighted


def over(query: exp.Expr, alias: str, columns: Sequence[str], weighted: bool) -> Fragment:
    """A fragment that reads a derived table."""
    return Fragment(
        (sql.derived(query, alias),),
        (),
        {name: sql.qualified(alias, name) for name in columns},
        sql.qualified(alias, MULTIPLICITY) if weighted else None,
    )

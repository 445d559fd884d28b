"""Subqueries in expressions: EXISTS, IN, ANY, ALL and scalar ones, correlated in every way, nested in each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from dbt_openivm.names import quote
from tests.property.expressions import BOOL, INT, NUMERIC, Expr, Expressions
from tests.property.schema import Column, Relation
from tests.property.sources import Rejected

MOST_ROWS = 400
"""Where a FROM clause has more rows than this, a subquery for each would take too long."""


@dataclass
class Inner:
    """A subquery's FROM and WHERE, and its columns as they are written."""

    text: str
    columns: list[Expr]


class Subqueries:
    """Draws subqueries over `relations`; notes their kinds in `features`."""

    def __init__(
        self, rng: Random, relations: Sequence[Relation], fresh: Callable[[str], str], features: list[str]
    ) -> None:
        self.rng = rng
        self.relations = [relation for relation in relations if relation.rows <= MOST_ROWS]
        self.fresh = fresh
        self.features = features

    def predicate(self, outer: Expressions, depth: int = 1) -> str:
        """A condition with a subquery in it, as it may stand in WHERE."""
        rng = self.rng
        sql = self._bare(outer, depth)
        other = outer.predicate(1).sql
        return rng.choice(
            (
                sql,
                sql,
                sql,
                f"NOT {sql}",
                f"({sql} OR {other})",
                f"({sql} AND {other})",
                f"CASE WHEN {other} THEN {sql} ELSE NOT {sql} END",
                f"({sql}) IS NOT TRUE",
            )
        )

    def value(self, outer: Expressions) -> Expr:
        """A select item with a subquery in it."""
        if self.rng.random() < 0.4:
            return Expr(f"({self._bare(outer, 1)})", BOOL)
        return Expr(self._scalar(outer), INT)

    def _bare(self, outer: Expressions, depth: int) -> str:
        rng = self.rng
        shape = rng.random()
        if shape < 0.35:
            self.features.append("exists")
            inner = self._inner(outer, depth, correlated=rng.random() < 0.9)
            return (
                f"{rng.choice(('', 'NOT '))}EXISTS (SELECT {rng.choice(('1', '*'))} {inner.text}{self._grouped(inner)})"
            )
        if shape < 0.8:
            return self._quantified(outer, depth)
        self.features.append("scalar subquery")
        column = outer.column("int", exact=True)
        left = column.sql if column else "1"
        return f"{left} {rng.choice(('=', '<', '>=', '<>'))} {self._scalar(outer)}"

    def _grouped(self, inner: Inner) -> str:
        if self.rng.random() < 0.8 or not inner.columns:
            return ""
        return " HAVING count(*) > 1"

    def _quantified(self, outer: Expressions, depth: int) -> str:
        rng = self.rng
        inner = self._inner(outer, depth, correlated=rng.random() < 0.4)
        pairs = [(a, b) for a in outer.columns for b in inner.columns if comparable(a, b)]
        if not pairs:
            raise Rejected("nothing to compare with a subquery")
        one, other = rng.choice(pairs)
        word = rng.choice(("IN", "IN", "NOT IN", "NOT IN", "ANY", "ALL"))
        self.features.append(f"{word.lower()} subquery")
        if word in ("ANY", "ALL"):
            operator = rng.choice(("=", "<>", "<", ">", "<=", ">="))
            return f"{one.sql} {operator} {word} (SELECT {other.sql} {inner.text})"
        if rng.random() < 0.15:
            second = rng.choice(pairs)
            return f"({one.sql}, {second[0].sql}) {word} (SELECT {other.sql}, {second[1].sql} {inner.text})"
        return f"{one.sql} {word} (SELECT {other.sql} {inner.text})"

    def _scalar(self, outer: Expressions) -> str:
        """One integer for an outer row."""
        rng = self.rng
        inner = self._inner(outer, 1, correlated=rng.random() < 0.75)
        column = Expressions(rng, inner.columns).column("int", exact=True, free=True)
        value = column.sql if column else "1"
        aggregate = rng.choice(
            (
                "count(*)",
                f"count({value})",
                f"max({value})",
                f"min({value})",
                f"coalesce(max({value}), -1)",
                f"count(DISTINCT {value})",
                f"count(*) + coalesce(min({value}), 0)",
            )
        )
        having = rng.choice(("", "", "", "", " HAVING count(*) > 1"))
        self.features.append("scalar subquery")
        return f"(SELECT {aggregate} {inner.text}{having})"

    def _inner(self, outer: Expressions, depth: int, *, correlated: bool) -> Inner:
        rng = self.rng
        if not self.relations:
            raise Rejected("no relation that is small enough")
        relation, alias = rng.choice(self.relations), self.fresh("s")
        columns = references(alias, relation)
        text = f"FROM {relation.sql} AS {alias}"
        conditions = []
        if rng.random() < 0.15 and relation.rows < 40:
            second, other = rng.choice(self.relations), self.fresh("s")
            more = references(other, second)
            pairs = [(a, b) for a in columns for b in more if comparable(a, b)]
            if pairs:
                one, two = rng.choice(pairs)
                text += f" {rng.choice(('JOIN', 'LEFT JOIN'))} {second.sql} AS {other} ON {one.sql} = {two.sql}"
                columns = columns + more
        if correlated:
            conditions += self._correlation(outer, columns)
        if rng.random() < 0.3:
            conditions.append(Expressions(rng, columns).predicate(1).sql)
        if depth > 0 and rng.random() < 0.15 and relation.rows < 40:
            both = Expressions(rng, [*columns, *outer.columns])
            conditions.append(self._bare(both, depth - 1))
        rng.shuffle(conditions)
        return Inner(text + (f" WHERE {' AND '.join(conditions)}" if conditions else ""), columns)

    def _correlation(self, outer: Expressions, columns: list[Expr]) -> list[str]:
        rng = self.rng
        pairs = [(a, b) for a in outer.columns for b in columns if comparable(a, b)]
        if not pairs:
            raise Rejected("nothing to correlate on")
        found = []
        for _ in range(rng.choice((1, 1, 1, 2))):
            one, other = rng.choice(pairs)
            equal = f"{other.sql} = {one.sql}" if rng.random() < 0.5 else f"{one.sql} = {other.sql}"
            choices = [equal, equal, equal, f"{one.sql} IS NOT DISTINCT FROM {other.sql}"]
            if one.kind in (*NUMERIC, "str", "date", "ts"):
                choices.append(f"{other.sql} {rng.choice(('<', '>', '<=', '<>'))} {one.sql}")
            choices.append(f"({equal} OR {other.sql} IS NULL)")
            found.append(rng.choice(choices))
        return found


def references(alias: str, relation: Relation) -> list[Expr]:
    return [
        Expr(f"{alias}.{quote(column.name)}", column.pool, fuzzy=column.fuzzy)
        for column in relation.columns
        if usable(column)
    ]


def usable(column: Column) -> bool:
    return bool(column.name) and not column.rendered and not column.fuzzy


def comparable(first: Expr, second: Expr) -> bool:
    """Whether two columns may be compared: of one type, or both whole numbers."""
    if first.fuzzy or second.fuzzy or first.kind != second.kind:
        return False
    return first.kind == "int" or first.pool.type == second.pool.type

"""Subqueries in places of their own over a query whose columns are known: in ON, as keys of groups, with aggregates of
the query around, as limits, ARRAY(..), and correlated recursive CTEs; and orders behind DISTINCT.

Columns that rounding blurs, or whose equal values can differ, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from dbt_openivm.names import quote
from tests.property.datatypes import Pool
from tests.property.expressions import BOOL, INT
from tests.property.recursions import EXACT
from tests.property.schema import Column, Relation
from tests.property.sources import Rejected
from tests.property.windows import Wrapped

LISTED = Pool("", "other", ("NULL",))
SMALL = 60
"""A relation with more rows is too large to be read for each of the rows around."""

Pair = tuple[str, str]
"""A column of the query and one of the relation, as both are written."""


class Correlations:
    """Draws queries over ``(body)`` with the columns `columns`; `fresh` makes names."""

    def __init__(
        self, rng: Random, columns: Sequence[Column], relations: Sequence[Relation], fresh: Callable[[str], str]
    ) -> None:
        self.rng = rng
        self.fresh = fresh
        self.relations = [relation for relation in relations if relation.rows <= SMALL]
        self.alias = fresh("q")
        self.names = [fresh("c") for _ in columns]
        self.columns = {
            f"{self.alias}.{name}": replace(column, unique=False, rendered=False)
            for name, column in zip(self.names, columns, strict=True)
            if exact(column)
        }
        if not self.columns or not self.relations:
            raise Rejected("nothing to correlate with")

    def wrap(self, body: str) -> Wrapped:
        source = f"({body}) AS {self.alias}({', '.join(self.names)})"
        shapes = (self.on, self.on, self.key, self.outer_call, self.outer_call, self.first, self.array, self.recursive)
        return self.rng.choice(shapes)(source)

    # -- choosing ---------------------------------------------------------------------------------------------------

    def some(self, most: int = 3) -> list[str]:
        return self.rng.sample(list(self.columns), self.rng.randint(1, min(most, len(self.columns))))

    def relation(self) -> tuple[Relation, str, list[Pair]]:
        """A relation, its alias, and what of the query can be compared with it."""
        relation, alias = self.rng.choice(self.relations), self.fresh("r")
        pairs = [
            (mine, f"{alias}.{quote(other.name)}")
            for mine, column in self.columns.items()
            for other in relation.columns
            if exact(other) and other.name and other.pool.type == column.pool.type
        ]
        if not pairs:
            raise Rejected("nothing to compare with")
        return relation, alias, pairs

    def compared(self, pairs: Sequence[Pair]) -> str:
        one, other = self.rng.choice(pairs)
        return f"{other} {self.rng.choice(('=', '=', '=', '<=', '>', '<>', 'IS NOT DISTINCT FROM'))} {one}"

    # -- subqueries -------------------------------------------------------------------------------------------------

    def condition(self, more: Sequence[Pair] = ()) -> str:
        """A condition with a subquery over the columns of the query, and those of `more` as the query's."""
        relation, alias, pairs = self.relation()
        one, other = self.rng.choice(pairs)
        conditions = [self.compared(pairs)] if self.rng.random() < 0.7 else []
        if more and self.rng.random() < 0.6:
            _, inner = self.rng.choice(more)
            same = [column for column in relation.columns if exact(column) and column.name]
            conditions += [f"{inner} IS NOT NULL" if not same else f"{inner} IS NULL OR {self.compared(pairs)}"]
        where = f" WHERE {' AND '.join(f'({part})' for part in conditions)}" if conditions else ""
        rows = f"FROM {relation.sql} AS {alias}{where}"
        return self.rng.choice(
            (
                f"EXISTS (SELECT 1 {rows})",
                f"NOT EXISTS (SELECT 1 {rows})",
                f"{one} IN (SELECT {other} {rows})",
                f"{one} NOT IN (SELECT {other} {rows})",
                f"{one} = (SELECT max({other}) {rows})",
                f"(SELECT count(*) {rows}) > 1",
            )
        )

    def on(self, source: str) -> Wrapped:
        rng = self.rng
        relation, alias, pairs = self.relation()
        parts = [self.compared(pairs)] if rng.random() < 0.8 else []
        parts += [self.condition(pairs) for _ in range(rng.choice((1, 1, 2)))]
        side = rng.choice(("LEFT", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "INNER"))
        shown = self.some()
        columns = [self.columns[name] for name in shown]
        if side not in ("SEMI", "ANTI"):
            chosen = rng.choice([column for column in relation.columns if exact(column) and column.name])
            shown.append(f"{alias}.{quote(chosen.name)}")
            columns.append(replace(chosen, unique=False, rendered=False))
        joined = f"{source} {side} JOIN {relation.sql} AS {alias} ON {' AND '.join(f'({part})' for part in parts)}"
        return Wrapped(f"SELECT {self.listed(shown)} FROM {joined}", tuple(columns), "subquery in on")

    def key(self, source: str) -> Wrapped:
        rng = self.rng
        value, pool = self.scalar() if rng.random() < 0.6 else (f"({self.condition()})", BOOL)
        by, grouped = rng.choice(list(self.columns)), value
        if rng.random() < 0.3:
            grouped = f"({value})"
        sets = rng.choice((grouped, f"{grouped}, {by}", f"ROLLUP ({grouped}, {by})", f"CUBE ({by}, {grouped})"))
        items = [f"{value} AS {self.fresh('k')}", f"count({by}) AS {self.fresh('n')}"]
        columns = [Column("", pool), Column("", INT)]
        if rng.random() < 0.3:
            items.append(f"grouping({value}) AS {self.fresh('g')}")
            columns.append(Column("", INT))
        having = rng.choice(("", "", f" HAVING {value} IS NOT NULL", f" HAVING count(*) > 1 OR {value} IS NULL"))
        return Wrapped(
            f"SELECT {', '.join(items)} FROM {source} GROUP BY {sets}{having}", tuple(columns), "subquery key"
        )

    def scalar(self) -> tuple[str, Pool]:
        relation, alias, pairs = self.relation()
        rows = f"FROM {relation.sql} AS {alias} WHERE {self.compared(pairs)}"
        return self.rng.choice(((f"(SELECT count(*) {rows})", INT), (f"(SELECT nullif(count(*), 1) {rows})", INT)))

    def outer_call(self, source: str) -> Wrapped:
        """An aggregate of the query's own columns only, inside a subquery."""
        rng = self.rng
        relation, alias, pairs = self.relation()
        one, other = rng.choice(pairs)
        by = rng.choice(list(self.columns))
        call = rng.choice((f"max({one})", f"min({one})"))
        number = rng.choice((f"count({one})", "count(DISTINCT " + one + ")"))
        rows = f"FROM {relation.sql} AS {alias}"
        value = rng.choice(
            (
                f"(SELECT count(*) {rows} WHERE {other} {rng.choice(('=', '<=', '>'))} {call})",
                f"(SELECT count({other}) + {number} {rows})",
                f"EXISTS (SELECT 1 {rows} WHERE {other} = {call})",
                f"{call} IN (SELECT {other} {rows} WHERE {other} < {call} OR {number} > 2)",
            )
        )
        pool = BOOL if value.startswith(("EXISTS", call)) else INT
        if rng.random() < 0.3:
            having = f" HAVING {value}" if pool is BOOL else f" HAVING {value} > 1"
            sql = f"SELECT {by} AS {self.fresh('k')} FROM {source} GROUP BY {by}{having}"
            return Wrapped(sql, (self.columns[by],), "aggregate of the query around")
        if rng.random() < 0.25:
            return Wrapped(f"SELECT {value} AS v FROM {source}", (Column("", pool),), "aggregate of the query around")
        sql = f"SELECT {by} AS {self.fresh('k')}, {value} AS v FROM {source} GROUP BY {by}"
        return Wrapped(sql, (self.columns[by], Column("", pool)), "aggregate of the query around")

    def first(self, source: str) -> Wrapped:
        """Whatever is tied is equal: the order is by all that is shown."""
        rng = self.rng
        shown = self.some()
        columns = tuple(self.columns[name] for name in shown)
        order = ", ".join(f"{name}{rng.choice(('', ' DESC', ' NULLS FIRST'))}" for name in shown)
        if rng.random() < 0.4:
            sql = f"SELECT DISTINCT {self.listed(shown)} FROM {source} ORDER BY {order} LIMIT {rng.randint(1, 4)}"
            return Wrapped(f"SELECT * FROM ({sql}) AS {self.fresh('q')}", columns, "distinct by name and limit")
        number = f"(SELECT count(*) {rng.choice(('// 3', '% 7', ''))} FROM {rng.choice(self.relations).sql})"
        ending = rng.choice((f"LIMIT {number}", f"OFFSET {number}", f"LIMIT 3 + {number} OFFSET {number}"))
        sql = f"SELECT {self.listed(shown)} FROM {source} ORDER BY {order} {ending}"
        return Wrapped(f"SELECT * FROM ({sql}) AS {self.fresh('q')}", columns, "limit by a subquery")

    def array(self, source: str) -> Wrapped:
        rng = self.rng
        relation, alias, pairs = self.relation()
        _, other = rng.choice(pairs)
        where = f" WHERE {self.compared(pairs)}" if rng.random() < 0.8 else ""
        order = f" ORDER BY {rng.choice((other, '1'))}{rng.choice(('', ' DESC'))}"
        ending = rng.choice(("", "", f"{order} LIMIT 2"))
        distinct = rng.choice(("", "", "DISTINCT "))
        query = f"SELECT {distinct}{other} FROM {relation.sql} AS {alias}{where}{ending or order}"
        shown = self.some()
        sql = f"SELECT {self.listed(shown)}, ARRAY({query}) AS {self.fresh('a')} FROM {source}"
        return Wrapped(sql, (*(self.columns[name] for name in shown), Column("", LISTED)), "array of a query")

    def recursive(self, source: str) -> Wrapped:
        """A step that follows from a column to another one of its type; UNION ends it."""
        rng = self.rng
        relation, alias, pairs = self.relation()
        start, match = rng.choice(pairs)
        kind = self.columns[start].pool.type
        targets = [f"{alias}.{quote(c.name)}" for c in relation.columns if exact(c) and c.name and c.pool.type == kind]
        cte = self.fresh("rec")
        also = f" AND ({self.compared(pairs)})" if rng.random() < 0.5 else ""
        step = f"SELECT {rng.choice(targets)} FROM {cte}, {relation.sql} AS {alias} WHERE {cte}.v = {match}{also}"
        base = rng.choice((f"SELECT {start}", f"SELECT {start}", f"SELECT {match} FROM {relation.sql} AS {alias}"))
        with_ = f"WITH RECURSIVE {cte}(v) AS ({base} UNION {step})"
        shown = self.some()
        value = rng.choice((f"({with_} SELECT count(*) FROM {cte})", f"{start} IN ({with_} SELECT max(v) FROM {cte})"))
        sql = f"SELECT {self.listed(shown)}, {value} AS {self.fresh('v')} FROM {source}"
        pool = INT if value.startswith("(") else BOOL
        return Wrapped(sql, (*(self.columns[name] for name in shown), Column("", pool)), "correlated recursion")

    def listed(self, shown: Sequence[str]) -> str:
        return ", ".join(f"{value} AS {self.fresh('o')}" for value in shown)


def exact(column: Column) -> bool:
    return not column.fuzzy and EXACT.fullmatch(column.pool.type) is not None

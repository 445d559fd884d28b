"""Recursive CTEs over a query whose columns are known, and filters on the clock.

A step takes its values from a table, so that there are finitely many, and UNION comes to an end; UNION ALL stops by
depth. The clock is compared with a day of the year at noon some years ago: no row crosses it while a case runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from dbt_openivm.names import quote
from tests.property.schema import Column, Relation
from tests.property.sources import Rejected
from tests.property.windows import Wrapped, usable

#: Types whose equal values are the same.
EXACT = re.compile(r"U?(TINY|SMALL|BIG)?INT(EGER)?|VARCHAR|DATE|TIMESTAMP|BOOLEAN|DECIMAL\(\d+,\d+\)")
TIMES = ("DATE", "TIMESTAMP")
BOUNDS = (
    "current_date - 1500",
    "today() + 3000",
    "now()::TIMESTAMP - INTERVAL 5 YEAR",
    "localtimestamp - INTERVAL 300 MONTH",
    "date_trunc('year', now())::TIMESTAMP - INTERVAL 2 YEAR",
)


class Recursions:
    """Draws queries over ``(body)`` with the columns `columns`; `fresh` makes names."""

    def __init__(
        self, rng: Random, columns: Sequence[Column], relations: Sequence[Relation], fresh: Callable[[str], str]
    ) -> None:
        self.rng = rng
        self.fresh = fresh
        self.relations = relations
        self.names = [fresh("r") for _ in columns]
        self.all = dict(zip(self.names, columns, strict=True))

    def wrap(self, body: str) -> Wrapped:
        return self.clock(body) if self.rng.random() < 0.4 else self.recursive(body)

    def recursive(self, body: str) -> Wrapped:
        rng = self.rng
        kept = {name: column for name, column in self.all.items() if self.exact(column)}
        table = rng.choice(self.relations)
        pairs = [
            (name, other)
            for name, column in kept.items()
            for other in table.columns
            if self.exact(other) and other.pool.type == column.pool.type
        ]
        if not pairs:
            raise Rejected("nothing to join a step on")
        cte, step, links = self.fresh("rec"), self.fresh("step"), self.fresh("link")
        match, follow = rng.choice(pairs), rng.choice(pairs)
        names = list(kept)
        items = [f"{links}.{quote(follow[1].name)}" if name == follow[0] else f"{step}.{name}" for name in names]
        conditions = [f"{step}.{match[0]} = {links}.{quote(match[1].name)}"]
        bag = rng.random() < 0.2
        if bag:
            conditions.append(f"{step}.depth < 2")
        if rng.random() < 0.3:
            conditions.append(self.blocked(f"{links}.{quote(match[1].name)}", match[1]))
        if rng.random() < 0.3:
            conditions.append(f"{step}.{rng.choice(names)} IS NOT NULL")
        depth = (", depth", ", 0", f", {step}.depth + 1") if bag else ("", "", "")
        start = f"SELECT {', '.join(names)}{depth[1]} FROM ({body}) AS {self.fresh('q')}({', '.join(self.names)})"
        following = (
            f"SELECT {', '.join(items)}{depth[2]} FROM {cte} AS {step}, {table.sql} AS {links} "
            f"WHERE {' AND '.join(conditions)}"
        )
        query = (
            f"WITH RECURSIVE {cte}({', '.join(names)}{depth[0]}) AS ({start} UNION {'ALL ' if bag else ''}{following}) "
            f"SELECT {', '.join(names)} FROM {cte}"
        )
        return Wrapped(
            f"SELECT * FROM ({query}) AS {self.fresh('q')}",
            tuple(Column(name, column.pool) for name, column in kept.items()),
            "recursive cte" + (" with union all" if bag else ""),
        )

    def blocked(self, value: str, column: Column) -> str:
        other = self.rng.choice(self.relations)
        same = [found for found in other.columns if found.pool.type == column.pool.type and self.exact(found)]
        if not same:
            return "true"
        alias = self.fresh("x")
        word = self.rng.choice(("EXISTS", "NOT EXISTS"))
        return f"{word} (SELECT 1 FROM {other.sql} AS {alias} WHERE {alias}.{quote(same[0].name)} = {value})"

    def clock(self, body: str) -> Wrapped:
        times = [name for name, column in self.all.items() if column.pool.type in TIMES and not column.fuzzy]
        if not times:
            raise Rejected("no column to compare with the clock")
        rng = self.rng
        compared = f"{rng.choice(times)} {rng.choice(('<', '<=', '>', '>=', '='))} {rng.choice(BOUNDS)}"
        condition = rng.choice((compared, compared, f"NOT ({compared})", f"{compared} OR {rng.choice(times)} IS NULL"))
        if rng.random() < 0.3:
            condition = f"CASE WHEN {compared} THEN {rng.choice(times)} < {rng.choice(BOUNDS)} ELSE {condition} END"
        head = f"FROM ({body}) AS {self.fresh('q')}({', '.join(self.names)})"
        return Wrapped(
            f"SELECT {', '.join(self.names)} {head} WHERE {condition}",
            tuple(self.all.values()),
            "clock",
        )

    @staticmethod
    def exact(column: Column) -> bool:
        return usable(column) and EXACT.fullmatch(column.pool.type) is not None

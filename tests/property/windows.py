"""Windows, QUALIFY, DISTINCT ON and LIMIT over a query whose columns are known.

Wherever the order decides it is total: by all columns. What then is tied is equal: the answer is determined as a bag.
Columns that rounding blurs are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.property.expressions import FLOAT, INT, STR
from tests.property.schema import Column
from tests.property.sources import Rejected

RANKS = ("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(2)", "ntile(3)")
SMOOTH = ("percent_rank()", "cume_dist()")
EXCLUDE = ("", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")
BOUNDS = (
    "UNBOUNDED PRECEDING",
    "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
)


@dataclass(frozen=True)
class Wrapped:
    """A query over another one."""

    sql: str
    columns: tuple[Column, ...]
    feature: str


def usable(column: Column) -> bool:
    """Whether a column's values can be told apart and put in order, whatever was rounded."""
    pool = column.pool
    if column.fuzzy:
        return False
    return pool.kind != "float" or (pool.summable == "exact" and not pool.bare)


class Windows:
    """Draws queries over ``(body)`` with the columns `columns`; `fresh` makes names."""

    def __init__(self, rng: Random, columns: Sequence[Column], fresh: Callable[[str], str]) -> None:
        self.rng = rng
        self.fresh = fresh
        self.names = [fresh("w") for _ in columns]
        self.all = dict(zip(self.names, columns, strict=True))
        self.columns = {name: column for name, column in self.all.items() if usable(column)}
        if not self.columns:
            raise Rejected("nothing to order by")

    def wrap(self, body: str) -> Wrapped:
        source = f"FROM ({body}) AS {self.fresh('q')}({', '.join(self.names)})"
        shape = self.rng.choice(
            (self.windows, self.windows, self.windows, self.qualify, self.distinct_on, self.first, self.over_groups)
        )
        return shape(source)

    # -- shapes -----------------------------------------------------------------------------------------------------

    def windows(self, source: str) -> Wrapped:
        rng = self.rng
        shown = self.some(0)
        calls = [self.call() for _ in range(rng.choice((1, 1, 2, 3)))]
        items, columns = [*shown], [self.columns[name] for name in shown]
        for sql, column in calls:
            bare = rng.random() < 0.2
            items.append(sql if bare else f"{sql} AS {self.fresh('o')}")
            columns.append(replace(column, unique=False, rendered=bare))
        if rng.random() < 0.15:
            items.append(f"coalesce(CAST({calls[0][0]} AS VARCHAR), '') || '!'")
            columns.append(Column("", STR, fuzzy=True, rendered=True))
        named = ""
        if rng.random() < 0.25:
            window = self.fresh("win")
            named = f" WINDOW {window} AS ({self.partition()})"
            items.append(f"rank() OVER ({window} ORDER BY {self.order()})")
            columns.append(Column("", INT, rendered=True))
        return Wrapped(f"SELECT {', '.join(items)} {source}{named}", tuple(columns), "window")

    def qualify(self, source: str) -> Wrapped:
        rng = self.rng
        order, partition = self.order(), self.partition()
        over = f"OVER ({partition} ORDER BY {order})"
        condition = rng.choice(
            (
                f"row_number() {over} <= {rng.randint(1, 3)}",
                f"rank() {over} = 1",
                f"count(*) OVER ({partition}) > 1",
                f"NOT (ntile(2) {over} = 1)",
                f"row_number() {over} = 1 OR count(*) OVER () < 4",
            )
        )
        return self.shown(f"SELECT <shown> {source} QUALIFY {condition}", "qualify")

    def distinct_on(self, source: str) -> Wrapped:
        keys = self.rng.sample(list(self.columns), min(len(self.columns), self.rng.choice((1, 1, 2))))
        return self.shown(
            f"SELECT DISTINCT ON ({', '.join(keys)}) <shown> {source} ORDER BY {self.order()}", "distinct on"
        )

    def first(self, source: str) -> Wrapped:
        rng = self.rng
        limit = rng.choice(
            (f"LIMIT {rng.randint(0, 5)}", f"LIMIT {rng.randint(1, 5)} OFFSET {rng.randint(0, 3)}", "LIMIT 40%",
             "OFFSET 2", "LIMIT (1 + 2)")
        )  # fmt: skip
        if rng.random() < 0.2:
            names = list(self.columns)
            sql = f"SELECT DISTINCT {', '.join(names)} {source} ORDER BY ALL {limit}"
            return Wrapped(sql, tuple(self.columns.values()), "limit")
        return self.shown(f"SELECT <shown> {source} ORDER BY {self.order()} {limit}", "limit")

    def over_groups(self, source: str) -> Wrapped:
        """Windows over an aggregate."""
        rng = self.rng
        key = rng.choice(list(self.columns))
        calls = [
            f"rank() OVER (ORDER BY count(*) DESC, {key})",
            "sum(count(*)) OVER ()",
            f"lag(count(*)) OVER (ORDER BY {key})",
            f"count(*) - max(count(*)) OVER (PARTITION BY count({rng.choice(list(self.columns))}))",
        ]
        chosen = rng.sample(calls, rng.randint(1, 3))
        tail = rng.choice(("", "", f" QUALIFY row_number() OVER (ORDER BY count(*), {key}) <= 3"))
        having = rng.choice(("", "", " HAVING count(*) < 5"))
        sql = f"SELECT {', '.join([key, *chosen])} {source} GROUP BY {key}{having}{tail}"
        return Wrapped(
            sql, (self.columns[key], *(Column("", INT, rendered=True) for _ in chosen)), "window over groups"
        )

    def shown(self, sql: str, feature: str) -> Wrapped:
        names = self.some(1)
        columns = tuple(self.columns[name] for name in names)
        return Wrapped(sql.replace("<shown>", ", ".join(names), 1), columns, feature)

    # -- parts ------------------------------------------------------------------------------------------------------

    def some(self, least: int) -> list[str]:
        names = list(self.columns)
        return names if self.rng.random() < 0.6 else self.rng.sample(names, self.rng.randint(least, len(names)))

    def order(self, names: Sequence[str] | None = None) -> str:
        """All columns, in any order and direction."""
        names = list(names if names is not None else self.columns)
        self.rng.shuffle(names)
        directions = ("", "", " DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST", " DESC NULLS FIRST", " NULLS LAST")
        return ", ".join(name + self.rng.choice(directions) for name in names)

    def partition(self) -> str:
        rng = self.rng
        keys = rng.sample(list(self.columns), min(len(self.columns), rng.choice((0, 1, 1, 1, 2))))
        keys = [f"{key} IS NULL" if rng.random() < 0.1 else key for key in keys]
        if rng.random() < 0.05:
            keys.append("1")
        return f"PARTITION BY {', '.join(keys)}" if keys else ""

    def of_kind(self, *kinds: str) -> list[str]:
        return [n for n, c in self.columns.items() if c.pool.kind in kinds and not c.pool.bare]

    def call(self) -> tuple[str, Column]:
        return self.rng.choice((self.rank, self.value, self.aggregate, self.aggregate))()

    def rank(self) -> tuple[str, Column]:
        function = self.rng.choice(RANKS)
        column = Column("", FLOAT, fuzzy=True) if function in SMOOTH else Column("", INT)
        return f"{function} OVER ({self.partition()} ORDER BY {self.order()})", column

    def value(self) -> tuple[str, Column]:
        rng = self.rng
        name = rng.choice(list(self.columns))
        ignore = rng.choice(("", "", " IGNORE NULLS", " RESPECT NULLS"))
        function = rng.choice(
            (f"lag({name}{ignore})", f"lead({name}, 2{ignore})", f"first_value({name}{ignore})",
             f"last_value({name}{ignore})", f"nth_value({name}, 2{ignore})", f"lag({name}, 1, {name}{ignore})")
        )  # fmt: skip
        frame = "" if function.startswith(("lag", "lead")) else self.frame(total=True)
        return f"{function} OVER ({self.partition()} ORDER BY {self.order()}{frame})", self.columns[name]

    def aggregate(self) -> tuple[str, Column]:
        rng = self.rng
        name = rng.choice(list(self.columns))
        numbers = self.of_kind("int")
        column = Column("", INT)
        distinct = rng.choice(("", "", "", "DISTINCT "))
        calls = [("count(*)", column), (f"count({distinct}{name})", column)]
        if self.columns[name].pool.kind in ("int", "str", "date", "dec", "ts", "bool"):
            calls += [(f"min({name})", self.columns[name]), (f"max({name})", self.columns[name])]
        if numbers:
            calls += [(f"sum({distinct}{rng.choice(numbers)} % 1000)", column)] * 2
        sql, result = rng.choice(calls)
        if rng.random() < 0.2:
            sql += f" FILTER (WHERE {rng.choice(list(self.columns))} IS NOT NULL)"
        return f"{sql} OVER ({self.framed()})", result

    def framed(self) -> str:
        rng = self.rng
        partition = self.partition()
        choice = rng.random()
        if choice < 0.3:
            return partition
        numbers = self.of_kind("int")
        if choice < 0.5 and numbers:
            low, high = rng.sample((0, 1, 2, 3), 2)
            frame = f"RANGE BETWEEN {low} PRECEDING AND {high} FOLLOWING{rng.choice(EXCLUDE)}"
            direction = rng.choice(("", " DESC", " NULLS FIRST"))
            return f"{partition} ORDER BY ({rng.choice(numbers)} % 100)::BIGINT{direction} {frame}"
        if choice < 0.75:
            some = rng.sample(list(self.columns), rng.randint(1, len(self.columns)))
            return f"{partition} ORDER BY {self.order(some)}{self.frame(total=False)}"
        return f"{partition} ORDER BY {self.order()}{self.frame(total=True)}"

    def frame(self, total: bool) -> str:
        """A frame; over rows only where the order is total."""
        rng = self.rng
        if rng.random() < 0.3:
            return ""
        if total and rng.random() < 0.6:
            return f" ROWS {rng.choice(BOUNDS)}{rng.choice(EXCLUDE)}"
        if rng.random() < 0.5:
            return f" GROUPS {rng.choice(BOUNDS)}{rng.choice(EXCLUDE)}"
        return f" RANGE {rng.choice(BOUNDS[:4])}{rng.choice(EXCLUDE)}"

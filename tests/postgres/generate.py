"""Random tables, views and changes in PostgreSQL's SQL.

A view may turn out not to be valid, or to fail on some data (an overflow, a division by zero): PostgreSQL itself is the
judge of that, see `fuzz`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

TYPES = {
    "int": ("integer", "bigint", "smallint"),
    "num": ("numeric(8,2)", "numeric(6,0)", "numeric"),
    "float": ("double precision", "real"),
    "text": ("text", "varchar(3)", "char(2)"),
    "bool": ("boolean",),
    "date": ("date",),
    "time": ("timestamp", "interval"),
}
VALUES = {
    "integer": ("0", "1", "2", "-1", "7", "100000"),
    "bigint": ("0", "1", "-3", "7", "4000000000"),
    "smallint": ("0", "1", "2", "-5"),
    "numeric(8,2)": ("0", "1.50", "-2.25", "999999.99", "'NaN'"),
    "numeric(6,0)": ("0", "1", "-2", "12345"),
    "numeric": ("0", "1.0", "1.00", "2.5", "-3.125", "1e20", "'NaN'", "'Infinity'"),
    "double precision": ("0", "'-0'", "1.5", "-2.25", "1e300", "-1e300", "'NaN'", "'Infinity'", "'-Infinity'", "0.1"),
    "real": ("0", "1.5", "-2.25", "0.1", "'NaN'"),
    "text": ("''", "'a'", "'A'", "'b'", "'é'", "'a '", "'10'"),
    "varchar(3)": ("''", "'a'", "'A'", "'abc'"),
    "char(2)": ("'a'", "'b'", "'ab'"),
    "boolean": ("true", "false"),
    "date": ("'2020-01-01'", "'2020-02-29'", "'1999-12-31'"),
    "timestamp": ("'2020-01-01 10:00'", "'2020-01-01 10:00:00.5'", "'infinity'"),
    "interval": ("'1 month'", "'30 days'", "'1 day'", "'24 hours'"),
}
LOOSE = {"numeric", "double precision", "real", "interval", "char(2)"}
"""Types with values that are equal and look different: which of them a group shows is up to PostgreSQL."""


@dataclass(frozen=True)
class Column:
    name: str
    kind: str
    loose: bool


@dataclass
class Case:
    """Attributes:
    tables: type of each column, by table.
    loose: whether the query may show either of several equal values.
    """

    tables: dict[str, dict[str, str]]
    query: str = ""
    loose: bool = False
    facts: dict[str, object] = field(default_factory=dict)


@dataclass
class Generator:
    chance: random.Random
    case: Case = field(default_factory=lambda: Case({}))
    aliases: int = 0

    # --- tables ------------------------------------------------------------------------------------------------------

    def make(self) -> Case:
        for index in range(self.chance.randint(1, 3)):
            kinds = ["int", self.chance.choice(list(TYPES)), *self.some(list(TYPES), 0, 2)]
            self.case.tables[f"t{index}"] = {
                f"c{number}": self.chance.choice(TYPES[kind]) for number, kind in enumerate(kinds)
            }
        query, _ = self.query(self.chance.choice([1, 2, 2, 3]))
        self.case.query = query
        read = {table: columns for table, columns in self.case.tables.items() if f" {table} " in f"{query} "}
        self.case.tables = read
        self.case.facts = {"force_view_delta_cascade": self.chance.random() < 0.5}
        return self.case

    def some(self, values: list, least: int, most: int) -> list:
        return [self.chance.choice(values) for _ in range(self.chance.randint(least, most))]

    def value(self, type_: str) -> str:
        return "NULL" if self.chance.random() < 0.15 else self.chance.choice(VALUES[type_])

    def change(self) -> str:
        table = self.chance.choice(list(self.case.tables))
        columns = self.case.tables[table]
        fate = self.chance.random()
        if fate < 0.5:
            rows = [
                f"({', '.join(self.value(type_) for type_ in columns.values())})"
                for _ in range(self.chance.randint(1, 5))
            ]
            return f"INSERT INTO {table} VALUES {', '.join(rows)}"
        one, other = self.chance.choice(list(columns)), self.chance.choice(list(columns))
        where = f"{one}::text IS NOT DISTINCT FROM ({self.value(columns[one])}::{columns[one]})::text"
        if fate < 0.75:
            return f"UPDATE {table} SET {other} = {self.value(columns[other])} WHERE {where}"
        if fate < 0.97:
            return f"DELETE FROM {table} WHERE {where}"
        return f"TRUNCATE {table}"

    # --- queries -----------------------------------------------------------------------------------------------------

    def alias(self, hint: str) -> str:
        self.aliases += 1
        return f"{hint}{self.aliases}"

    def query(self, depth: int) -> tuple[str, list[Column]]:
        forms = [self.bag, self.bag, self.grouped, self.grouped, self.one_row, self.distinct, self.set_operation]
        return self.chance.choice([*forms, self.windowed, self.first_rows])(depth)

    def source(self, depth: int) -> tuple[str, list[Column]]:
        """What stands in FROM and WHERE."""
        text, columns = self.item(depth)
        for _ in range(self.chance.choice([0, 0, 0, 1, 1, 2])):
            other, more = self.item(depth - 1)
            kind = self.chance.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            on = self.pair(columns, more) or "1 = 1"
            if kind in ("JOIN", "LEFT JOIN") and self.chance.random() < 0.3:
                on += f" AND {self.predicate(columns + more, 1)}"
            text += f" {kind} {other} ON {on}"
            columns = columns + more
        if self.chance.random() < 0.5:
            text += f" WHERE {self.condition(columns, depth)}"
        return text, columns

    def pair(self, left: list[Column], right: list[Column]) -> str | None:
        pairs = [(a, b) for a in left for b in right if a.kind == b.kind != "time"]
        if not pairs:
            return None
        one, other = self.chance.choice(pairs)
        return f"{one.name} = {other.name}"

    def item(self, depth: int) -> tuple[str, list[Column]]:
        if depth > 1 and self.chance.random() < 0.5:
            query, columns = self.query(depth - 1)
            alias = self.alias("q")
            return f"({query}) AS {alias}", [Column(f"{alias}.{c.name}", c.kind, c.loose) for c in columns]
        table, alias = self.chance.choice(list(self.case.tables)), self.alias("a")
        columns = self.case.tables[table].items()
        return f"{table} AS {alias}", [Column(f"{alias}.{c}", kind_of(t), t in LOOSE) for c, t in columns]

    def bag(self, depth: int) -> tuple[str, list[Column]]:
        source, columns = self.source(depth)
        return self.selected([self.expression(columns) for _ in range(self.chance.randint(1, 4))], source)

    def selected(self, values: list[Column], tail: str, distinct: str = "") -> tuple[str, list[Column]]:
        named = [Column(f"v{index}", value.kind, value.loose) for index, value in enumerate(values)]
        items = ", ".join(f"{value.name} AS {column.name}" for value, column in zip(values, named, strict=True))
        return f"SELECT {distinct}{items} FROM {tail}", named

    def distinct(self, depth: int) -> tuple[str, list[Column]]:
        source, columns = self.source(depth)
        values = [self.blurred(self.expression(columns)) for _ in range(self.chance.randint(1, 3))]
        return self.selected(values, source, "DISTINCT ")

    def grouped(self, depth: int) -> tuple[str, list[Column]]:
        source, columns = self.source(depth)
        keys = [self.blurred(self.expression(columns)) for _ in range(self.chance.randint(1, 2))]
        calls = [self.call(columns) for _ in range(self.chance.randint(1, 3))]
        tail = f"{source} GROUP BY {', '.join(str(index + 1) for index in range(len(keys)))}"
        if self.chance.random() < 0.3:
            tail += f" HAVING {self.chance.choice(['count(*) > 1', self.call(columns).name + ' IS NOT NULL'])}"
        return self.selected([*keys, *calls], tail)

    def one_row(self, depth: int) -> tuple[str, list[Column]]:
        source, columns = self.source(depth)
        return self.selected([self.call(columns) for _ in range(self.chance.randint(1, 3))], source)

    def set_operation(self, depth: int) -> tuple[str, list[Column]]:
        (one, a), (other, b) = self.source(depth), self.source(depth)
        word = self.chance.choice(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
        sides = []
        for source, columns in ((one, a), (other, b)):
            found = [c for c in columns if c.kind == "int"] or [Column("1", "int", False)]
            texts = [c for c in columns if c.kind == "text"] or [Column("'x'", "text", False)]
            values = [self.chance.choice(found), self.chance.choice(texts)]
            self.case.loose |= word != "UNION ALL" and any(value.loose for value in values)
            sides.append(self.selected(values, source))
        loose = any(column.loose for _, named in sides for column in named)
        return f"{sides[0][0]} {word} {sides[1][0]}", [Column(c.name, c.kind, loose) for c in sides[0][1]]

    def windowed(self, depth: int) -> tuple[str, list[Column]]:
        source, columns = self.source(depth)
        key, value = self.chance.choice(columns), self.chance.choice(columns)
        order = ", ".join(column.name for column in columns)
        numbers = [c.name for c in columns if c.kind == "int"] or ["1"]
        calls = ["rank() OVER (PARTITION BY {k} ORDER BY {v})", "count(*) OVER (PARTITION BY {k})"]
        calls += ["sum({n}) OVER (PARTITION BY {k})", "dense_rank() OVER (ORDER BY {v})"]
        self.case.loose |= key.loose or value.loose
        call = self.chance.choice(calls).format(k=key.name, v=value.name, n=self.chance.choice(numbers), o=order)
        return self.selected([key, value, Column(call, "wide", False)], source)

    def first_rows(self, depth: int) -> tuple[str, list[Column]]:
        query, columns = self.bag(depth)
        self.case.loose |= any(column.loose for column in columns)
        order = ", ".join(
            f"{index + 1}{self.chance.choice(['', ' DESC', ' NULLS FIRST'])}" for index in range(len(columns))
        )
        return f"{query} ORDER BY {order} LIMIT {self.chance.randint(1, 4)}", columns

    # --- expressions -------------------------------------------------------------------------------------------------

    def blurred(self, value: Column) -> Column:
        self.case.loose |= value.loose
        return value

    def expression(self, columns: list[Column], depth: int = 2) -> Column:
        column = self.chance.choice(columns)
        if depth == 0 or self.chance.random() < 0.5:
            return column
        other = self.chance.choice([c for c in columns if c.kind == column.kind])
        one, two = column.name, other.name
        loose = column.loose or other.loose
        forms = {
            "int": [f"{one} + 1", f"{one} / 2", f"{one} % 3", f"{one} * 2", f"{one} - {two}", f"-{one}", f"abs({one})"],
            "num": [f"{one} + {two}", f"{one} * 2", f"round({one}, 1)", f"{one} - 1.5", f"{one} * {two}"],
            "float": [f"{one} * 2", f"{one} + 1", f"-{one}"],
            "text": [f"{one} || {two}", f"upper({one})", f"left({one}, 1)", f"lower({one})"],
            "bool": [f"NOT {one}", f"{one} AND {two}", f"{one} IS NULL"],
            "date": [f"{one} + 1"],
        }.get(column.kind, [one])
        text = self.chance.choice(forms)
        roll = self.chance.random()
        if roll < 0.15:
            text = f"CASE WHEN {self.predicate(columns, depth - 1)} THEN {one} ELSE {two} END"
        elif roll < 0.3:
            text = f"coalesce({one}, {two})"
        return Column(f"({text})", column.kind, loose)

    def predicate(self, columns: list[Column], depth: int) -> str:
        value = self.expression(columns, depth)
        tests = {
            "int": [f"{value.name} > 0", f"{value.name} IN (1, 2)", f"{value.name} BETWEEN 0 AND 5"],
            "num": [f"{value.name} > 1.25", f"{value.name} <> 0"],
            "float": [f"{value.name} > 0", f"{value.name} < 1e10"],
            "text": [f"{value.name} > 'a'", f"{value.name} LIKE 'a%'", f"{value.name} = 'a'"],
            "bool": [value.name],
            "date": [f"{value.name} > DATE '2020-01-01'"],
        }.get(value.kind, [])
        text = self.chance.choice([*tests, f"{value.name} IS NULL", f"{value.name} IS NOT NULL"])
        if depth > 1 and self.chance.random() < 0.3:
            return f"({text} {self.chance.choice(['AND', 'OR'])} {self.predicate(columns, depth - 1)})"
        return f"NOT {text}" if self.chance.random() < 0.1 else text

    def condition(self, columns: list[Column], depth: int) -> str:
        if depth > 1 and self.chance.random() < 0.35:
            inner, more = self.item(1)
            word = self.chance.choice(["EXISTS", "NOT EXISTS", "IN", "NOT IN", "scalar"])
            ints, others = ([c.name for c in side if c.kind == "int"] for side in (columns, more))
            if word.endswith("EXISTS"):
                on = self.pair(columns, more) or "1 = 1"
                return f"{word} (SELECT 1 FROM {inner} WHERE {on})"
            if ints and others:
                one, other = self.chance.choice(ints), self.chance.choice(others)
                if word == "scalar":
                    return f"{one} <= (SELECT max({other}) FROM {inner})"
                return f"{one} {word} (SELECT {other} FROM {inner})"
        return self.predicate(columns, 2)

    def call(self, columns: list[Column]) -> Column:
        value = self.expression(columns, 1)
        calls = [("count(*)", "wide"), (f"count({value.name})", "wide"), (f"count(DISTINCT {value.name})", "wide")]
        if value.kind in ("int", "num", "float", "wide"):
            sums = [(f"sum({value.name})", "wide"), (f"avg({value.name})", "wide"), (f"sum({value.name})", "wide")]
            calls += sums * 2
            calls += (
                [(f"stddev({value.name})", "wide"), (f"var_pop({value.name})", "wide")] if value.kind == "int" else []
            )
        if value.kind not in ("bool", "wide"):
            self_ = self.chance.choice(["min", "max"])
            calls += [(f"{self_}({value.name})", value.kind)] * 2
        if value.kind == "bool":
            calls += [(f"bool_and({value.name})", "bool"), (f"bool_or({value.name})", "bool")]
        text, kind = self.chance.choice(calls)
        loose = value.loose or kind == "wide"
        self.case.loose |= value.loose and text.startswith(("min", "max"))
        if self.chance.random() < 0.15:
            text += f" FILTER (WHERE {self.predicate(columns, 1)})"
        return Column(text, kind, loose)


def kind_of(type_: str) -> str:
    return next(kind for kind, types in TYPES.items() if type_ in types)

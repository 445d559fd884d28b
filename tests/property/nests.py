"""UNNEST, table functions, PIVOT, UNPIVOT, COLUMNS, rows as values and ASOF joins over a query whose columns are known.

Columns that rounding blurs are only passed on. What an ASOF join may choose from has no ties.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from tests.property.datatypes import Pool
from tests.property.expressions import BOOL, INT, STR
from tests.property.schema import Column, Relation
from tests.property.sources import Rejected
from tests.property.windows import Wrapped, usable

ROW = Pool("", "other", ("NULL",))
ORDERED = ("int", "dec", "str", "date", "ts")


class Nests:
    """Draws queries over ``(body)`` with the columns `columns`; `fresh` makes names."""

    def __init__(
        self, rng: Random, columns: Sequence[Column], relations: Sequence[Relation], fresh: Callable[[str], str]
    ) -> None:
        self.rng = rng
        self.fresh = fresh
        self.relations = relations
        self.names = [fresh("n") for _ in columns]
        self.columns = {
            name: replace(column, unique=False, rendered=False)
            for name, column in zip(self.names, columns, strict=True)
            if usable(column)
        }
        if not self.columns:
            raise Rejected("nothing to take apart")

    def wrap(self, body: str) -> Wrapped:
        alias = self.fresh("q")
        source = f"({body}) AS {alias}({', '.join(self.names)})"
        shapes = (
            self.unnest,
            self.unnest,
            self.lateral,
            self.lateral,
            self.left_lateral,
            self.by_element,
            self.of_groups,
            self.pivot,
            self.unpivot,
            self.patterns,
            self.fields,
            self.lambdas,
            self.asof,
            self.asof,
        )
        if self.rng.random() < 0.06:
            return self.row(source, alias)
        return self.rng.choice(shapes)(source)

    # -- choosing ---------------------------------------------------------------------------------------------------

    def pick(self, *kinds: str) -> str:
        found = [name for name, column in self.columns.items() if not kinds or column.pool.kind in kinds]
        if not found:
            raise Rejected("no column of this kind")
        return self.rng.choice(found)

    def some(self, most: int = 3) -> list[str]:
        return self.rng.sample(list(self.columns), self.rng.randint(1, min(most, len(self.columns))))

    def list_of(self) -> tuple[str, Pool]:
        """A list, and the pool of its elements."""
        rng = self.rng
        lists = [name for name, column in self.columns.items() if column.pool.kind in ("list", "slist")]
        if lists and rng.random() < 0.7:
            name = rng.choice(lists)
            return name, INT if self.columns[name].pool.kind == "list" else STR
        name = self.pick()
        if rng.random() < 0.5:
            return f"range(length(CAST({name} AS VARCHAR)) % 4)", INT
        other = self.rng.choice([each for each in self.columns if self.same(each, name)])
        return rng.choice((f"[{name}, {other}]", f"[{other}, NULL, {name}]")), self.columns[name].pool

    def same(self, first: str, second: str) -> bool:
        return self.columns[first].pool.type == self.columns[second].pool.type

    # -- lists ------------------------------------------------------------------------------------------------------

    def unnest(self, source: str) -> Wrapped:
        shown, (value, pool) = self.some(), self.list_of()
        items, columns = [*shown, f"unnest({value}) AS {self.fresh('e')}"], [Column("", pool)]
        if self.rng.random() < 0.3:
            other, _ = self.list_of()
            items.append(f"unnest({other}) IS NULL AS {self.fresh('e')}")
            columns.append(Column("", BOOL))
        distinct = "DISTINCT " if self.rng.random() < 0.15 else ""
        sql = f"SELECT {distinct}{', '.join(items)} FROM {source}"
        return Wrapped(sql, (*(self.columns[name] for name in shown), *columns), "unnest")

    def lateral(self, source: str) -> Wrapped:
        rng = self.rng
        shown, (value, pool) = self.some(), self.list_of()
        alias, element = self.fresh("u"), self.fresh("e")
        columns = [*(self.columns[name] for name in shown), Column("", pool)]
        joined = rng.choice((", ", " CROSS JOIN ", ", LATERAL "))
        sql = f"SELECT {', '.join(shown)}, {element} FROM {source}{joined}unnest({value}) AS {alias}({element})"
        if rng.random() < 0.4:
            sql += f" WHERE {element} IS NOT NULL"
        return Wrapped(sql, tuple(columns), "lateral unnest")

    def left_lateral(self, source: str) -> Wrapped:
        rng = self.rng
        shown, (value, pool) = self.some(), self.list_of()
        alias, element = self.fresh("u"), self.fresh("e")
        columns = [*(self.columns[name] for name in shown), Column("", pool)]
        if rng.random() < 0.4:
            place = self.fresh("o")
            items = f"{', '.join(shown)}, {element}, {place}"
            join = f"LEFT JOIN unnest({value}) WITH ORDINALITY AS {alias}({element}, {place}) ON true"
            return Wrapped(f"SELECT {items} FROM {source} {join}", (*columns, Column("", INT)), "ordinality")
        condition = rng.choice(("true", f"{element} IS NOT NULL", f"{element} = {rng.choice(pool.values)}"))
        join = f"LEFT JOIN unnest({value}) AS {alias}({element}) ON {condition}"
        return Wrapped(f"SELECT {', '.join(shown)}, {element} FROM {source} {join}", tuple(columns), "left unnest")

    def by_element(self, source: str) -> Wrapped:
        value, pool = self.list_of()
        element = self.fresh("e")
        sql = f"SELECT unnest({value}) AS {element}, count(*), count({self.pick()}) FROM {source} GROUP BY {element}"
        return Wrapped(sql, (Column("", pool), *self.counts(2)), "grouped by elements")

    def of_groups(self, source: str) -> Wrapped:
        key, value = self.pick(), self.pick(*ORDERED)
        sql = f"SELECT {key}, unnest(list({value} ORDER BY {value})) AS {self.fresh('e')} FROM {source} GROUP BY {key}"
        return Wrapped(sql, (self.columns[key], self.columns[value]), "unnest of groups")

    def lambdas(self, source: str) -> Wrapped:
        rng = self.rng
        key, value = self.pick(), self.pick(*ORDERED)
        listed = f"list({value} ORDER BY {value})"
        made = rng.choice(
            (
                f"len(list_transform({listed}, lambda x: {{'x': x, 'y': {key}}}))",
                f"len([x FOR x IN {listed} IF x IS NOT NULL])",
                f"len(list_filter({listed}, lambda {value}: {value} IS NOT NULL))",
            )
        )
        sql = f"SELECT {key}, {made} AS {self.fresh('e')} FROM {source} GROUP BY {key}"
        return Wrapped(sql, (self.columns[key], *self.counts(1)), "lambda of groups")

    def counts(self, number: int) -> list[Column]:
        return [Column("", INT)] * number

    # -- columns ----------------------------------------------------------------------------------------------------

    def pivot(self, source: str) -> Wrapped:
        rng = self.rng
        by, value, key = self.pick("int", "str", "bool", "date"), self.pick(), self.pick()
        pool = self.columns[by].pool
        values = rng.sample(list(pool.values), min(len(pool.values), rng.randint(1, 3)))
        inner = f"(SELECT {key} AS k, {by} AS p, {value} AS v FROM {source})"
        calls, made = rng.choice(
            (
                ("count(*)", [INT]),
                ("count(v) AS c, max(v) AS m", [INT, self.columns[value].pool]),
                ("count(DISTINCT v) AS d", [INT]),
            )
        )
        if self.columns[value].pool.kind not in ORDERED and "max" in calls:
            raise Rejected("no order")
        listed = ", ".join(values)
        sql = rng.choice(
            (
                f"SELECT * FROM {inner} PIVOT ({calls} FOR p IN ({listed}) GROUP BY k)",
                f"FROM (PIVOT {inner} ON p IN ({listed}) USING {calls} GROUP BY k)",
            )
        )
        columns = [self.columns[key], *(Column("", pool) for _ in values for pool in made)]
        return Wrapped(sql, tuple(columns), "pivot")

    def unpivot(self, source: str) -> Wrapped:
        rng = self.rng
        first, key = self.pick(), self.pick()
        second = rng.choice([name for name in self.columns if self.same(name, first)])
        inner = f"(SELECT {key} AS k, {first} AS a, {second} AS b FROM {source})"
        sql = rng.choice(
            (
                f"FROM (UNPIVOT {inner} ON a, b INTO NAME n VALUE v)",
                f"SELECT * FROM {inner} UNPIVOT (v FOR n IN (a, b AS 'z'))",
                f"SELECT * FROM {inner} UNPIVOT INCLUDE NULLS (v FOR n IN (a, b))",
                f"FROM (UNPIVOT {inner} ON COLUMNS(* EXCLUDE (k)) INTO NAME n VALUE v)",
            )
        )
        return Wrapped(sql, (self.columns[key], Column("", STR), self.columns[first]), "unpivot")

    def patterns(self, source: str) -> Wrapped:
        rng = self.rng
        shown = self.some(4)
        inner = f"(SELECT {', '.join(shown)} FROM {source})"
        whole = tuple(self.columns[name] for name in shown)
        choices: list[tuple[str, Sequence[Column]]] = [
            (f"SELECT COLUMNS('n.*') FROM {inner}", whole),
            (f"SELECT COLUMNS(lambda c: c LIKE 'n%') FROM {inner}", whole),
            (f"SELECT * LIKE 'n%' FROM {inner}", whole),
            (f"SELECT * REPLACE ({shown[0]} IS NULL AS {shown[0]}) FROM {inner}", (Column("", BOOL), *whole[1:])),
            (f"SELECT COLUMNS(*) IS NULL FROM {inner}", [Column("", BOOL)] * len(shown)),
            (f"SELECT count(COLUMNS(*)) FROM {inner}", self.counts(len(shown))),
            (f"SELECT count(*) FROM {inner} WHERE COLUMNS(*) IS NOT NULL", self.counts(1)),
            (f"FROM {inner}", whole),
            (f"FROM {inner} SELECT #{len(shown)}", whole[-1:]),
        ]
        sql, columns = rng.choice(choices)
        return Wrapped(sql, tuple(columns), "columns()")

    def row(self, source: str, alias: str) -> Wrapped:
        if len(self.columns) < len(self.names):
            raise Rejected("a row that rounding blurs")
        sql, columns = self.rng.choice(
            (
                (f"SELECT {alias} AS r FROM {source}", [Column("", ROW)]),
                (f"SELECT DISTINCT {alias} AS r FROM {source}", [Column("", ROW)]),
                (f"SELECT {alias} AS r, count(*) FROM {source} GROUP BY {alias}", [Column("", ROW), Column("", INT)]),
            )
        )
        return Wrapped(sql, tuple(columns), "whole row")

    def fields(self, source: str) -> Wrapped:
        shown = self.some()
        packed = ", ".join(f"'f{index}': {name}" for index, name in enumerate(shown))
        inner = f"(SELECT {{{packed}}} AS s FROM {source})"
        sql = self.rng.choice((f"SELECT s.* FROM {inner}", f"SELECT unnest(s) FROM {inner}"))
        return Wrapped(sql, tuple(self.columns[name] for name in shown), "struct.*")

    # -- ASOF -------------------------------------------------------------------------------------------------------

    def asof(self, source: str) -> Wrapped:
        """The right side is distinct in all that it has: whatever is nearest is one row.

        Not drawn: RIGHT and FULL, in which DuckDB loses rows or never ends (tests/cases/test_elements.py has them).
        """
        rng = self.rng
        relation = rng.choice(self.relations)
        columns = {column.name: column for column in relation.columns if usable(column)}
        pairs = [
            (mine, name)
            for mine, column in self.columns.items()
            for name, other in columns.items()
            if column.pool.kind == other.pool.kind
            and column.pool.kind in ORDERED
            and not (column.pool.kind in ("dec", "int") and column.pool.type != other.pool.type)
        ]
        if not pairs:
            raise Rejected("nothing to compare")
        (mine, other), key = rng.choice(pairs), rng.choice([None, *pairs])
        quoted = '"' + other.replace('"', '""') + '"'
        chosen = [f"{quoted} AS at"] + ([] if key is None else ['"' + key[1].replace('"', '""') + '" AS k'])
        right = f"(SELECT DISTINCT {', '.join(chosen)} FROM {relation.sql})"
        condition = f"{mine} {rng.choice(('>=', '>', '<=', '<'))} r.at"
        if key is not None:
            condition = f"{key[0]} = r.k AND {condition}"
        shown = self.some()
        side = rng.choice(("", "LEFT "))
        sql = f"SELECT {', '.join(shown)}, r.at FROM {source} ASOF {side}JOIN {right} AS r ON {condition}"
        return Wrapped(sql, (*(self.columns[name] for name in shown), columns[other]), f"asof {side}join".lower())

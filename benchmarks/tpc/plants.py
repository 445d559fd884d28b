"""Rows that let a SELECT find something: a row of each of its tables, made to meet its conditions and to join.

It is done as well as the text of a query allows; what a condition over several tables or a subquery wants is left to
chance.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import expressions as exp

from benchmarks.tpc.suites import Suite

Place = tuple[str, str]
"""The name of a table in a SELECT, and a column of it."""


@dataclass(frozen=True)
class Block:
    """One SELECT.

    Attributes:
        tables: its tables by the names that it gives them.
        conditions: what WHERE and ON ask for, all of which must be true.
    """

    tables: Mapping[str, str]
    conditions: tuple[exp.Expr, ...]


@dataclass
class Plant:
    """The row of one table: a copy of an existing one, with other values in some columns.

    Attributes:
        source: the row that is copied, or taken as it is where nothing has to differ.
        fixes: other values, as SQL.
    """

    table: str
    source: dict[str, Any]
    fixes: dict[str, Any]


def blocks(query: str, tables: Collection[str]) -> list[Block]:
    """Every SELECT of a query that reads tables under conditions, but those of NOT EXISTS and NOT IN."""
    found = []
    for select in sqlglot.parse_one(query, dialect="duckdb").find_all(exp.Select):
        joins = select.args.get("joins", [])
        parts = [part.this for part in (select.args.get("from_"), *joins) if part]
        named = {part.alias_or_name: part.name for part in parts if isinstance(part, exp.Table)}
        places = [select.args.get("where"), *(join.args.get("on") for join in joins)]
        conditions = tuple(part for place in places if place is not None for part in _conjuncts(place))
        if named and conditions and set(named.values()) <= set(tables) and not select.find_ancestor(exp.Not):
            found.append(Block(named, conditions))
    return found


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    bare = condition.this if isinstance(condition, exp.Where) else condition
    bare = bare.unnest()
    if isinstance(bare, exp.And):
        yield from _conjuncts(bare.left)
        yield from _conjuncts(bare.right)
    else:
        yield bare


class Planter:
    """Plants rows for one SELECT.

    Args:
        table_of: the table of each column.
        favourites: row numbers by table, taken where they fit, so that what several SELECTs of a query find belongs
            together. The rows taken here are added.
    """

    def __init__(
        self,
        con: Any,
        suite: Suite,
        block: Block,
        table_of: Mapping[str, str],
        favourites: dict[str, int],
        rng: random.Random,
    ) -> None:
        self.con, self.suite, self.block, self.table_of, self.rng = con, suite, block, table_of, rng
        self.favourites = favourites
        self.alone: dict[str, list[exp.Expr]] = {alias: [] for alias in block.tables}
        self.classes: dict[Place, set[Place]] = {}
        self.given: dict[Place, Any] = {}
        self._read(block.conditions)

    def plants(self) -> list[Plant]:
        """The rows to insert; none where a table is empty."""
        found: dict[str, Plant] = {}
        for alias in sorted(self.block.tables, key=lambda name: self.block.tables[name] not in self.suite.keys):
            plant = self._choose(alias, found)
            if plant is None:
                return []
            found[alias] = plant
            self.favourites[plant.table] = plant.source["rowid"]
        for _ in found:
            self._join(found)
        return [plant for plant in found.values() if plant.fixes]

    # --- conditions ---------------------------------------------------------------------------------------------------

    def _read(self, conditions: Iterable[exp.Expr]) -> None:
        """Sort conditions into those over one table and equalities of columns; of another OR take one branch."""
        for condition in conditions:
            if condition.find(exp.Query):
                continue
            places = [self._place(column) for column in condition.find_all(exp.Column)]
            aliases = {place[0] for place in places if place}
            known = bool(aliases) and None not in places
            if isinstance(condition, exp.Or) and not (known and len(aliases) == 1):
                self._read(_conjuncts(self.rng.choice(list(condition.flatten()))))
            elif not known:
                self._correlate(condition)
            elif len(aliases) == 1:
                self.alone[aliases.pop()].append(condition)
            elif isinstance(condition, exp.EQ) and isinstance(condition.left, exp.Column) and len(places) == 2:
                merged = set().union(*(self.classes.get(place, {place}) for place in places if place))
                self.classes.update(dict.fromkeys(merged, merged))

    def _correlate(self, condition: exp.Expr) -> None:
        """An equality with a column of a SELECT around this one: of the row that was taken there."""
        sides = list(condition.find_all(exp.Column))
        if not isinstance(condition, exp.EQ) or {condition.left, condition.right} != set(sides):
            return
        for here, around in (sides, sides[::-1]):
            place, table = self._place(here), self.table_of.get(around.name, "")
            if place and not self._place(around) and table in self.favourites:
                query = f"SELECT {around.name} FROM {table} WHERE rowid = {self.favourites[table]}"
                for (value,) in self.con.execute(query).fetchall():
                    self.given[place] = value
                    self.classes.setdefault(place, {place})

    def _place(self, column: exp.Column) -> Place | None:
        """Where a column comes from; None outside this SELECT."""
        if column.table:
            return (column.table, column.name) if column.table in self.block.tables else None
        table = self.table_of.get(column.name)
        aliases = [alias for alias, name in self.block.tables.items() if name == table]
        return (aliases[0], column.name) if aliases else None

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _choose(self, alias: str, found: Mapping[str, Plant]) -> Plant | None:
        """A row that meets the conditions over this table alone, or any row and what to change of it."""
        table = self.block.tables[alias]
        conditions = [condition.sql("duckdb") for condition in self.alone[alias]]
        if table in self.suite.guards:  # its rows are never changed, so they have to fit
            conditions += [
                f"{alias}.{column} = {_literal(found[other].source[name])}"
                for (owner, column), group in self.classes.items()
                for other, name in group
                if owner == alias and other in found
            ]
        row = None
        if table in self.favourites:
            row = self._row(f"{table} AS {alias}", [*conditions, f"{alias}.rowid = {self.favourites[table]}"])
        row = row or self._row(f"{table} AS {alias}", conditions)
        if row is not None:
            return Plant(table, row, {})
        row = self._row(f"{table} AS {alias}", [])
        return None if row is None else Plant(table, row, self._wanted(alias))

    def _row(self, source: str, conditions: list[str]) -> dict[str, Any] | None:
        where = " AND ".join(f"({condition})" for condition in conditions) or "true"
        order = f"hash(rowid + {self.rng.randrange(1_000_000)})"
        cursor = self.con.execute(f"SELECT rowid, * FROM {source} WHERE {where} ORDER BY {order} LIMIT 1")
        names, row = [column[0] for column in cursor.description], cursor.fetchone()
        return None if row is None else dict(zip(names, row, strict=True))

    def _wanted(self, alias: str) -> dict[str, Any]:
        """A literal for each column that the conditions compare with some."""
        fixes = {}
        leaves = [leaf for condition in self.alone[alias] for leaf in self._leaves(condition)]
        for condition in leaves:
            names = {column.name for column in condition.find_all(exp.Column)} - self.suite.kept
            literals = [literal.name.strip("%").replace("%", " ") for literal in condition.find_all(exp.Literal)]
            if len(names) == 1 and literals:
                fixes[names.pop()] = self.rng.choice(literals)
        return {} if self.block.tables[alias] in self.suite.guards else fixes

    def _leaves(self, condition: exp.Expr) -> Iterator[exp.Expr]:
        """Comparisons that make a condition true if all of them are; of an OR those of one branch."""
        condition = condition.unnest()
        if isinstance(condition, exp.Or):
            yield from self._leaves(self.rng.choice(list(condition.flatten())))
        elif isinstance(condition, exp.And):
            for part in condition.flatten():
                yield from self._leaves(part)
        else:
            yield condition

    def _join(self, found: Mapping[str, Plant]) -> None:
        """Give joined columns one value: that of the row whose key it is. A changed row gets a key of its own."""
        for group in {id(group): group for group in self.classes.values()}.values():
            places = sorted(place for place in group if place[0] in found)
            owners = [place for place in places if self.suite.keys.get(found[place[0]].table) == place[1]]
            given = [self.given[place] for place in places if place in self.given]
            value = given[0] if given else self._value(found, (owners or places)[0])
            for alias, column in places:
                if self._value(found, (alias, column)) != value and found[alias].table not in self.suite.guards:
                    found[alias].fixes[column] = value
        for plant in found.values():
            key = self.suite.keys.get(plant.table)
            if plant.fixes and key and key not in plant.fixes:
                [(plant.fixes[key],)] = self.con.execute(f"SELECT max({key}) + 1 FROM {plant.table}").fetchall()

    @staticmethod
    def _value(found: Mapping[str, Plant], place: Place) -> Any:
        plant = found[place[0]]
        return plant.fixes.get(place[1], plant.source[place[1]])


def _literal(value: Any) -> str:
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


def insertion(plant: Plant, types: Mapping[str, str], times: int) -> str:
    """The statement that plants a row, several times over."""
    fixes = ", ".join(
        f"TRY_CAST({_literal(value)} AS {types[column]}) AS {column}" for column, value in sorted(plant.fixes.items())
    )
    return (
        f"INSERT INTO {plant.table} SELECT * EXCLUDE (time) REPLACE ({fixes}) "
        f"FROM {plant.table}, range({times}) AS times(time) WHERE {plant.table}.rowid = {plant.source['rowid']}"
    )

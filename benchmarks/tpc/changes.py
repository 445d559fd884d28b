"""A round of changes: inserts, updates and deletes on every table, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from benchmarks.tpc.plants import Planter, blocks, insertion
from benchmarks.tpc.suites import Suite
from benchmarks.tpc.values import wanted

NULL_CHANCE = 0.03
AMOUNTS = ("DECIMAL", "DOUBLE")
SCALED = 0.5
"""How often an amount is multiplied, which changes the order of totals, instead of replaced."""
SMALL = 30
"""A table of fewer rows loses one row at a time, and not in every round."""


class Changes:
    """Changes the tables of a suite, round after round.

    Args:
        con: the database, with the tables loaded.
        share: a table's rows over the rows that a round inserts, updates and deletes of it, each.
        most: an upper bound of these.
    """

    def __init__(
        self, con: Any, suite: Suite, queries: Iterable[str], seed: int, share: int = 1_000, most: int = 300
    ) -> None:
        self.con, self.suite, self.seed, self.share, self.most = con, suite, seed, share, most
        found = con.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal"
        ).fetchall()
        self.types = {column: kind for _, column, kind in found}
        self.columns: dict[str, list[str]] = {}
        for table, column, _ in found:
            self.columns.setdefault(table, []).append(column)
        self.tables = sorted(self.columns)
        self.table_of = {column: table for table, column, _ in found}
        texts = list(queries)
        self.wanted = wanted(texts, self.table_of)
        self.blocks = [blocks(text, self.tables) for text in texts]
        self.planted: list[tuple[str, int]] = []
        for table in self.tables:
            con.execute(f"CREATE TEMP TABLE gone_{table} AS FROM {table} LIMIT 0")

    def round(self, number: int) -> int:
        """Make the changes of a round; the number of statements."""
        self.rng = random.Random(f"{self.seed} {number}")
        self.number, self.statements = number, 0
        shared = {table for whole in self.suite.wholes for table, _ in whole}
        for whole in self.suite.wholes:
            self._bring_back(table for table, _ in whole)
            self._copy_wholes(whole)
            self._delete_wholes(whole)
        for table in self.tables:
            if table not in shared:
                self._bring_back([table])
                self._copy(table)
            self._delete(table, table in shared)
            self._update(table)
        self._plant()
        return self.statements

    # --- inserts ------------------------------------------------------------------------------------------------------

    def _bring_back(self, tables: Iterable[str]) -> None:
        """What the last round deleted comes back, mostly."""
        for table in tables:
            self._run(f"INSERT INTO {table} SELECT * FROM gone_{table} WHERE hash(rowid + {self._any()}) % 4 <> 0")
            self._run(f"DELETE FROM gone_{table}")

    def _copy_wholes(self, whole: tuple[tuple[str, str], ...]) -> None:
        """Copies of orders, with all that belongs to them, under new keys."""
        (head, key), *_ = whole
        chosen = self._chosen(f"SELECT DISTINCT {key} FROM {head}", key, self._amount(head) // 3 + 1)
        [(low, high)] = self._run(f"SELECT min({key}), max({key}) FROM {head}")
        for table, column in whole:
            source = f"SELECT * REPLACE ({column} + {high - low + 1} AS {column}) FROM {table}"
            self._run(f"INSERT INTO {table} {source} WHERE {column} IN ({_listed(chosen)})")

    def _copy(self, table: str) -> None:
        """Copies of rows, each with a new key if the table has one; one of them twice."""
        key = self.suite.keys.get(table)
        guard = f"WHERE {self.suite.guards[table]}" if table in self.suite.guards else ""
        chosen = self._chosen(f"SELECT rowid AS r FROM {table} {guard}", "r", self._amount(table))
        replaced = ""
        if key:
            replaced = f"REPLACE ((SELECT max({key}) FROM {table}) + row_number() OVER (ORDER BY rowid) AS {key})"
        self._run(f"INSERT INTO {table} SELECT * {replaced} FROM {table} WHERE rowid IN ({_listed(chosen)})")
        if self.number % 4 == 1 and table not in self.suite.guards:
            self._run(f"INSERT INTO {table} SELECT * FROM {table} WHERE rowid = {chosen[0]}")

    # --- deletes ------------------------------------------------------------------------------------------------------

    def _delete_wholes(self, whole: tuple[tuple[str, str], ...]) -> None:
        (head, key), *_ = whole
        chosen = self._chosen(f"SELECT DISTINCT {key} FROM {head}", key, self._amount(head) // 3 + 1)
        for table, column in whole:
            self._remove(table, f"{column} IN ({_listed(chosen)})")

    def _delete(self, table: str, again: bool) -> None:
        """Rows on their own; few where wholes went already."""
        [(rows,)] = self._run(f"SELECT count(*) FROM {table}")
        if rows > SMALL or (self.number % 2 == 0 and (rows > 2 or self.number % 4 == 2)):
            amount = self._amount(table) // (5 if again else 1) + 1
            chosen = self._chosen(f"SELECT rowid AS r FROM {table}", "r", amount)
            self._remove(table, f"rowid IN ({_listed(chosen)})")

    def _remove(self, table: str, condition: str) -> None:
        self._run(f"INSERT INTO gone_{table} SELECT * FROM {table} WHERE {condition}")
        self._run(f"DELETE FROM {table} WHERE {condition}")

    # --- updates ------------------------------------------------------------------------------------------------------

    def _update(self, table: str) -> None:
        """Some rows look as one of the queries wants them, others get values at random."""
        names = [name for name in self.wanted.used.get(table, self.columns[table]) if name not in self.suite.kept]
        amount = self._amount(table) // 4 + 1
        for _ in range(2):
            self._set(table, self.rng.sample(names, min(2, len(names))), amount)
        for profile in self._some(self.wanted.profiles.get(table, []), 2):
            fit = {name: values for name, texts in profile.items() if (values := self._cast(name, texts))}
            amounts = [name for name in names if self.types[name].startswith(AMOUNTS) and name not in fit]
            kept = [name for name in fit if name not in self.suite.kept]
            self._set(table, kept + self._some(amounts, 1), amount, fit)

    def _set(self, table: str, names: list[str], amount: int, pools: dict[str, list[str]] | None = None) -> None:
        """Set columns of random rows, to values of their pools or else of their own choice."""
        if names:
            values = ", ".join(f"{name} = {self._value(name, (pools or {}).get(name))}" for name in names)
            chosen = self._chosen(f"SELECT rowid AS r FROM {table}", "r", amount)
            self._run(f"UPDATE {table} SET {values} WHERE rowid IN ({_listed(chosen)})")

    def _value(self, name: str, pool: list[str] | None = None) -> str:
        """An expression that picks one of the pool, by row, and NULL now and then."""
        kind, index = self.types[name], f"hash(rowid + {self._any()})"
        if pool is None and kind.startswith(AMOUNTS) and self.rng.random() < SCALED:
            picked = f"TRY_CAST({name} * {self.rng.choice((-1, 0, 2, 50))} AS {kind})"
        else:
            pool = pool or self._pool(name)
            if not pool:
                return "NULL"
            picked = f"(([{', '.join(map(_quoted, pool))}]::{kind}[])[1 + ({index} % {len(pool)})::BIGINT])"
        return f"CASE WHEN hash(rowid + {self._any()}) % 1000 >= {int(NULL_CHANCE * 1000)} THEN {picked} END"

    def _pool(self, name: str) -> list[str]:
        """Values that occur in a column or in one that queries join it with, and values that queries ask for."""
        pool = self._cast(name, self._some(self.wanted.literals.get(name, []), 10))
        for column in self._some(self.wanted.joined.get(name, [name]), 3):
            [table] = [table for table, columns in self.columns.items() if column in columns]
            distinct = f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"
            pool += self._cast(name, [str(value) for value in self._chosen(distinct, column, 10)])
        return pool

    def _cast(self, name: str, texts: list[str]) -> list[str]:
        """Those of the texts that are values of a column's type."""
        cast = ", ".join(f"TRY_CAST({_quoted(text)} AS {self.types[name]})::VARCHAR" for text in texts)
        return [value for value in self._run(f"SELECT {cast}")[0] if value is not None] if texts else []

    # --- both ---------------------------------------------------------------------------------------------------------

    def _plant(self) -> None:
        """Rows that let queries find something; half of those of the last round go."""
        for table, row in self._some(self.planted, len(self.planted) // 2):
            self._run(f"DELETE FROM {table} WHERE rowid = {row}")
        self.planted = []
        for of_query in self.blocks if self.number == 1 else self._some(self.blocks, len(self.blocks) // 3 + 1):
            favourites: dict[str, int] = {}
            for block in of_query:
                for plant in Planter(self.con, self.suite, block, self.table_of, favourites, self.rng).plants():
                    self._run(insertion(plant, self.types, self.rng.randint(1, 2)))
                    [(row,)] = self._run(f"SELECT max(rowid) FROM {plant.table}")
                    favourites[plant.table] = row
                    self.planted.append((plant.table, row))

    # --- choices ------------------------------------------------------------------------------------------------------

    def _amount(self, table: str) -> int:
        [(rows,)] = self._run(f"SELECT count(*) FROM {table}")
        return max(1 if rows <= SMALL else 5, min(self.most, int(rows) // self.share))

    def _chosen(self, query: str, column: str, amount: int) -> list[Any]:
        """Some values of a column of a query, by chance but repeatable."""
        order = f"hash({column}::VARCHAR || '{self._any()}')"
        return [value for (value,) in self._run(f"SELECT {column} FROM ({query}) ORDER BY {order}, 1 LIMIT {amount}")]

    def _some(self, values: list[Any], amount: int) -> list[Any]:
        return self.rng.sample(values, min(amount, len(values)))

    def _any(self) -> int:
        return self.rng.randrange(1_000_000)

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        self.statements += 1
        rows: list[tuple[Any, ...]] = self.con.execute(statement).fetchall()
        return rows


def _listed(values: list[Any]) -> str:
    return ", ".join("NULL" if value is None else str(value) for value in values) or "NULL"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

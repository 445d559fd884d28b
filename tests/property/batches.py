"""Random changes to the base tables."""

from __future__ import annotations

from random import Random

from dbt_openivm.names import quote
from tests.property.case import Statement
from tests.property.datatypes import WIDE_INTEGERS
from tests.property.expressions import Expr, Expressions
from tests.property.schema import Column, Table


class Batches:
    """Draws the statements that run between two refreshes."""

    def __init__(self, rng: Random, tables: list[Table], *, replaces: bool) -> None:
        self.rng = rng
        self.tables = tables
        self.replaces = replaces

    def draw(self) -> tuple[Statement, ...]:
        rng = self.rng
        choice = rng.random()
        if choice < 0.06:
            return ()
        if choice < 0.08:
            return tuple(self._empty(table) for table in self.tables)
        statements = [one for _ in range(rng.choice((1, 1, 2, 3, 4))) for one in self._change(rng.choice(self.tables))]
        if choice < 0.14:
            return ("BEGIN", *statements, "ROLLBACK")
        if choice < 0.35 and self._one_database():
            return ("BEGIN", *statements, "COMMIT")
        return tuple(statements)

    def _one_database(self) -> bool:
        """A transaction can write to one attached database only."""
        return all(table.triggers for table in self.tables)

    def _change(self, table: Table) -> list[Statement]:
        rng = self.rng
        makers = (
            *(self._insert,) * 6,
            *(self._update,) * 3,
            *(self._delete,) * 3,
            self._again,
            self._churn,
            self._wipe,
            self._merge,
            self._replace,
        )
        return rng.choice(makers)(table)

    # -- predicates and values --------------------------------------------------------------------------------------

    def _where(self, table: Table) -> str:
        """A predicate that most often holds for a few rows only, so that tables do not run dry."""
        rng = self.rng
        if rng.random() < 0.25:
            exprs = [Expr(quote(column.name), column.pool) for column in table.columns]
            return Expressions(rng, exprs).predicate(1).sql
        chosen = rng.sample(table.columns, min(len(table.columns), rng.choice((1, 1, 2))))
        return " AND ".join(f"{quote(column.name)} = {rng.choice(column.pool.values)}" for column in chosen)

    def _settable(self, table: Table) -> list[Column]:
        return [column for column in table.columns if not column.unique]

    def _assignment(self, table: Table, column: Column) -> str:
        name = quote(column.name)
        if column.pool.kind == "int" and column.pool.type in WIDE_INTEGERS and self.rng.random() < 0.3:
            return f"{name} = {name} + 1"
        return f"{name} = {table.value(self.rng, column)}"

    # -- changes ----------------------------------------------------------------------------------------------------

    def _insert(self, table: Table) -> list[Statement]:
        return [table.insert(self.rng, self.rng.choice((1, 1, 2, 3, 8, 12)))]

    def _update(self, table: Table) -> list[Statement]:
        columns = self._settable(table)
        chosen = self.rng.sample(columns, min(len(columns), self.rng.choice((1, 1, 2, 3))))
        sets = ", ".join(self._assignment(table, column) for column in chosen)
        where = f" WHERE {self._where(table)}" if self.rng.random() < 0.93 else ""
        return [f"UPDATE {table.sql} SET {sets}{where}"]

    def _delete(self, table: Table) -> list[Statement]:
        return [f"DELETE FROM {table.sql} WHERE {self._where(table)}"]

    def _again(self, table: Table) -> list[Statement]:
        """More of the same rows: bags, not sets."""
        if any(column.unique for column in table.columns):
            return self._insert(table)
        return [f"INSERT INTO {table.sql} SELECT * FROM {table.sql} WHERE {self._where(table)} LIMIT 4"]

    def _churn(self, table: Table) -> list[Statement]:
        """One row inserted, updated and deleted again, perhaps put back."""
        column = self.rng.choice(table.columns)
        insert = table.insert(self.rng, 1)
        value = insert.rows[0][table.columns.index(column)]
        matches = f"{quote(column.name)} IS NOT DISTINCT FROM {value}"
        target = self.rng.choice(self._settable(table))
        update = f"UPDATE {table.sql} SET {self._assignment(table, target)} WHERE {matches}"
        delete = f"DELETE FROM {table.sql} WHERE {matches}"
        return [insert, update, delete, *([insert] if self.rng.random() < 0.3 else [])]

    def _empty(self, table: Table) -> Statement:
        return self.rng.choice((f"DELETE FROM {table.sql}", f"TRUNCATE {table.sql}"))

    def _wipe(self, table: Table) -> list[Statement]:
        again = [table.insert(self.rng, self.rng.randint(1, 15))] if self.rng.random() < 0.8 else []
        return [self._empty(table), *again]

    def _merge(self, table: Table) -> list[Statement]:
        """MERGE INTO; refused on a table with a trigger, which is no failure."""
        key = self.rng.choice(table.columns)
        target = self.rng.choice(self._settable(table))
        row = ", ".join(
            f"{value} AS {quote(column.name)}" for column, value in zip(table.columns, table.row(self.rng), strict=True)
        )
        names = ", ".join(quote(column.name) for column in table.columns)
        values = ", ".join(f"s.{quote(column.name)}" for column in table.columns)
        merge = (
            f"MERGE INTO {table.sql} AS d USING (SELECT {row}) AS s ON d.{quote(key.name)} = s.{quote(key.name)} "
            f"WHEN MATCHED THEN UPDATE SET {quote(target.name)} = s.{quote(target.name)} "
            f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})"
        )
        return [merge]

    def _replace(self, table: Table) -> list[Statement]:
        """The table swapped for another of the same shape: triggers and row ids are gone."""
        if not self.replaces:
            return self._update(table)
        return [f"CREATE OR REPLACE TABLE {table.sql} AS SELECT * FROM {table.sql} WHERE {self._where(table)}"]

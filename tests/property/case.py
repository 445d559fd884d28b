"""A fuzz case as plain data: what to set up, which views to keep, what to do to the tables and when to refresh."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dbt_openivm.choices import AUTO
from dbt_openivm.names import quote


@dataclass(frozen=True)
class CreateTable:
    """A table; kept as data so that the shrinker can take columns away."""

    relation: str
    columns: tuple[tuple[str, str], ...]

    @property
    def sql(self) -> str:
        columns = ", ".join(f"{quote(name)} {type_}" for name, type_ in self.columns)
        return f"CREATE TABLE {self.relation} ({columns})"


@dataclass(frozen=True)
class Insert:
    """Rows of literals; kept as data so that the shrinker can take rows and columns away."""

    relation: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def sql(self) -> str:
        rows = ", ".join(f"({', '.join(row)})" for row in self.rows)
        return f"INSERT INTO {self.relation} ({', '.join(map(quote, self.columns))}) VALUES {rows}"


Statement = str | CreateTable | Insert


def text(statement: Statement) -> str:
    return statement if isinstance(statement, str) else statement.sql


@dataclass(frozen=True)
class ViewDef:
    """A view of the case.

    Args:
        name: unquoted.
        sql: its query.
        kind: "ivm" is handed to the engine, "plain" is a SQL view that others read.
        supported: made of constructs that must not be FULL_REFRESH.
        features: names of the constructs, for statistics.
        apply_strategy: how its groups take their delta.
    """

    name: str
    sql: str
    kind: Literal["ivm", "plain"] = "ivm"
    supported: bool = True
    features: tuple[str, ...] = ()
    apply_strategy: str = AUTO


@dataclass(frozen=True)
class Step:
    """Statements (each may fail: that is the user's business), then refreshes in this order."""

    statements: tuple[Statement, ...]
    refresh: tuple[str, ...]
    restart: bool = False


@dataclass(frozen=True)
class Case:
    """Everything a run needs; `risky` allows the queries themselves to fail on the data."""

    seed: int
    setup: tuple[Statement, ...]
    views: tuple[ViewDef, ...]
    steps: tuple[Step, ...]
    capture: str = "diff"
    captures: dict[str, str] = field(default_factory=dict)
    risky: bool = False

    def view(self, name: str) -> ViewDef:
        return next(view for view in self.views if view.name == name)

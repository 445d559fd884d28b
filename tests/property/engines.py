"""What the fuzzer asks of an engine, the real one, and stand-ins that prove the checks.

`Recompute` is right by construction; the others each break one promise, and the tests of the fuzzer show that the check
for that promise notices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from dbt_openivm.choices import AUTO
from dbt_openivm.names import quote


class Engine(Protocol):
    """The part of `IvmEngine` that the fuzzer uses."""

    def create_view(self, name: str, sql: str, apply_strategy: str = AUTO) -> Any: ...

    def refresh(self, name: str) -> Any: ...

    def drop_view(self, name: str) -> Any: ...


EngineFactory = Callable[[Any, str, Mapping[str, str]], Engine]


class RealEngine:
    """`IvmEngine`, with names handed over quoted: those of a case may hold dots."""

    def __init__(self, connection: Any, capture: str, captures: Mapping[str, str]) -> None:
        from dbt_openivm import IvmEngine

        self.engine = IvmEngine(connection, capture=capture, captures=captures)

    def create_view(self, name: str, sql: str, apply_strategy: str = AUTO) -> Any:
        return self.engine.create_view(quote(name), sql, apply_strategy)

    def refresh(self, name: str) -> Any:
        return self.engine.refresh(quote(name))

    def drop_view(self, name: str) -> Any:
        return self.engine.drop_view(quote(name))


@dataclass
class FakeInfo:
    name: str
    refresh_type: str = "RECOMPUTE"
    reason: str | None = None
    sources: tuple[str, ...] = ()


@dataclass
class FakeResult:
    refresh_type: str
    strategy: str
    reason: str | None = None
    delta_rows: int = 0
    changed_rows: int = 0


class Recompute:
    """Recomputes on every refresh and publishes the bag difference."""

    refresh_type = "RECOMPUTE"
    reason: str | None = None

    def __init__(self, connection: Any, capture: str, captures: Mapping[str, str]) -> None:
        self.connection = connection
        run = connection.execute
        run("CREATE SCHEMA IF NOT EXISTS openivm")
        run("CREATE SCHEMA IF NOT EXISTS openivm_main")
        run("CREATE TABLE IF NOT EXISTS openivm.definitions (name VARCHAR, sql VARCHAR)")
        run("CREATE TABLE IF NOT EXISTS openivm.openivm_views (view_key VARCHAR, version BIGINT)")

    def create_view(self, name: str, sql: str, apply_strategy: str = AUTO) -> FakeInfo:
        run = self.connection.execute
        run(f"CREATE TABLE {self._data(name)} AS {sql}")
        run(f"CREATE VIEW {quote(name)} AS FROM {self._data(name)}")
        run(
            f"CREATE TABLE {self._log(name)} AS SELECT *, 1::BIGINT AS openivm_multiplicity, "
            f"now()::TIMESTAMP AS openivm_timestamp, 0::BIGINT AS openivm_batch FROM {self._data(name)} LIMIT 0"
        )
        run("INSERT INTO openivm.definitions VALUES (?, ?)", [name, sql])
        run("INSERT INTO openivm.openivm_views VALUES (?, 0)", [f"memory.main.{name}".lower()])
        return FakeInfo(name, self.refresh_type, self.reason)

    def refresh(self, name: str) -> FakeResult:
        self.connection.execute("BEGIN")
        try:
            changed = self._refresh(name)
        except Exception:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")
        return FakeResult(self.refresh_type, "full" if changed else "none", changed_rows=changed)

    def drop_view(self, name: str) -> None:
        self.connection.execute(f"DROP VIEW {quote(name)}")
        self.connection.execute(f"DROP TABLE {self._data(name)}")
        self.connection.execute(f"DROP TABLE {self._log(name)}")

    def _refresh(self, name: str) -> int:
        run = self.connection.execute
        data, log, key = self._data(name), self._log(name), f"memory.main.{name}".lower()
        [[sql]] = run("SELECT sql FROM openivm.definitions WHERE name = ?", [name]).fetchall()
        [[batch]] = run("SELECT max(version) + 1 FROM openivm.openivm_views").fetchall()
        run(f"CREATE OR REPLACE TEMP TABLE new_rows AS {sql}")
        self._publish(data, log, batch)
        [[changed]] = run(f"SELECT count(*) FROM {log} WHERE openivm_batch = ?", [batch]).fetchall()
        if changed:
            self._apply(data)
            run("UPDATE openivm.openivm_views SET version = ? WHERE view_key = ?", [batch, key])
        return int(changed)

    def _publish(self, data: str, log: str, batch: int) -> None:
        run = self.connection.execute
        run(f"INSERT INTO {log} SELECT *, 1, now(), {batch} FROM (FROM new_rows EXCEPT ALL FROM {data})")
        run(f"INSERT INTO {log} SELECT *, -1, now(), {batch} FROM (FROM {data} EXCEPT ALL FROM new_rows)")

    def _apply(self, data: str) -> None:
        self.connection.execute(f"DELETE FROM {data}")
        self.connection.execute(f"INSERT INTO {data} FROM new_rows")

    def _data(self, name: str) -> str:
        return f"openivm_main.{quote('openivm_data_' + name)}"

    def _log(self, name: str) -> str:
        return f"openivm_main.{quote('openivm_delta_openivm_visible_' + name)}"


class ForgetsDeletes(Recompute):
    """Breaks exactness: rows that went stay."""

    def _apply(self, data: str) -> None:
        self.connection.execute(f"INSERT INTO {data} (FROM new_rows EXCEPT ALL FROM {data})")


class DropsDuplicates(Recompute):
    """Breaks exactness for bags only."""

    def _apply(self, data: str) -> None:
        self.connection.execute(f"DELETE FROM {data}")
        self.connection.execute(f"INSERT INTO {data} SELECT DISTINCT * FROM new_rows")


class PublishesNothingNet(Recompute):
    """Breaks the net delta: every old row out, every new row in."""

    def _publish(self, data: str, log: str, batch: int) -> None:
        run = self.connection.execute
        if not run(
            f"(FROM {data} EXCEPT ALL FROM new_rows) UNION ALL (FROM new_rows EXCEPT ALL FROM {data})"
        ).fetchall():
            return
        run(f"INSERT INTO {log} SELECT *, 1, now(), {batch} FROM new_rows")
        run(f"INSERT INTO {log} SELECT *, -1, now(), {batch} FROM {data}")


class LosesDelta(Recompute):
    """Breaks the delta: what went is not published."""

    def _publish(self, data: str, log: str, batch: int) -> None:
        run = self.connection.execute
        run(f"INSERT INTO {log} SELECT *, 1, now(), {batch} FROM (FROM new_rows EXCEPT ALL FROM {data})")
        run(f"INSERT INTO {log} SELECT *, -1, now(), {batch} FROM (FROM {data} EXCEPT ALL FROM new_rows) OFFSET 1")


class NeverRests(Recompute):
    """Breaks the no-op: says it refreshed although nothing changed."""

    def refresh(self, name: str) -> FakeResult:
        result = super().refresh(name)
        result.strategy = "full"
        return result


class WritesWhenIdle(Recompute):
    """Breaks the no-op: moves a cursor although nothing changed."""

    def _refresh(self, name: str) -> int:
        changed = super()._refresh(name)
        self.connection.execute("UPDATE openivm.openivm_views SET version = version + 1")
        return changed


class WidensTypes(Recompute):
    """Breaks the types: every number becomes text."""

    def create_view(self, name: str, sql: str, apply_strategy: str = AUTO) -> FakeInfo:
        return super().create_view(name, f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({sql})")


class GivesUp(Recompute):
    """Breaks the promise of incremental maintenance."""

    refresh_type = "FULL_REFRESH"


class Crashes(Recompute):
    """Breaks on every second row."""

    def _apply(self, data: str) -> None:
        raise RuntimeError("boom")


class TouchesOthers(Recompute):
    """Breaks the rest between refreshes: rows come late."""

    def refresh(self, name: str) -> FakeResult:
        result = super().refresh(name)
        if result.strategy == "none":
            self.connection.execute(f"INSERT INTO {self._data(name)} FROM {self._data(name)} LIMIT 1")
        return result


class HidesErrors(Recompute):
    """Keeps the old rows where the query fails."""

    def refresh(self, name: str) -> FakeResult:
        try:
            return super().refresh(name)
        except Exception:
            return FakeResult(self.refresh_type, "none")

"""Runs a case against an engine and checks every refresh."""

from __future__ import annotations

import contextlib
import re
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import duckdb

from dbt_openivm.engine.ways import FAILED
from dbt_openivm.names import quote
from tests.property.case import Case, Step, ViewDef, text
from tests.property.checks import (
    OLD,
    TRUTH,
    Failure,
    check_columns,
    check_delta,
    check_rest,
    check_rows,
    fingerprint,
    view_version,
)
from tests.property.engines import EngineFactory, RealEngine


class InvalidCase(Exception):
    """The case itself does not run (a shrinking step went too far)."""


@dataclass
class Report:
    """What a run saw; `failure` is None where every promise held."""

    failure: Failure | None = None
    refreshes: Counter[str] = field(default_factory=Counter)
    strategies: Counter[str] = field(default_factory=Counter)
    views: Counter[str] = field(default_factory=Counter)
    full: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    features: Counter[str] = field(default_factory=Counter)

    def add(self, other: Report) -> None:
        for mine, theirs in (
            (self.refreshes, other.refreshes),
            (self.strategies, other.strategies),
            (self.views, other.views),
            (self.full, other.full),
            (self.features, other.features),
        ):
            mine.update(theirs)
        self.errors += other.errors


def run_case(case: Case, factory: EngineFactory = RealEngine, *, all_logged: bool = False) -> Report:
    """Run `case`.

    Args:
        case: the case.
        factory: makes the engine under test.
        all_logged: the engine keeps a change log for every view, not only for those with a consumer.

    Raises:
        InvalidCase: the set-up of the case does not run.
    """
    with duckdb.connect(config={"threads": 1}) as connection:
        runner = Runner(case, connection, factory, all_logged)
        try:
            runner.run()
        except Failure as failure:
            failure.step = runner.step
            runner.report.failure = failure
        return runner.report


class Runner:
    """One run of one case."""

    def __init__(self, case: Case, connection: Any, factory: EngineFactory, all_logged: bool) -> None:
        self.case = case
        self.connection = connection
        self.factory = factory
        self.all_logged = all_logged
        self.report = Report()
        self.types: dict[str, str] = {}
        self.seen: dict[str, tuple[Any, ...]] = {}
        self.consumed: set[str] = set()
        self.deferred: list[Failure] = []
        self.step = -1

    def run(self) -> None:
        self._set_up()
        self.engine = self._engine()
        for view in self.case.views:
            self._create(view)
        for number, step in enumerate(self.case.steps):
            self.step = number
            self._run_step(step)
        self._drop_all()
        if self.deferred:
            raise self.deferred[0]

    def _set_up(self) -> None:
        try:
            for statement in self.case.setup:
                self.connection.execute(text(statement))
        except duckdb.Error as error:
            raise InvalidCase(str(error)) from error

    def _engine(self) -> Any:
        return self.factory(self.connection, self.case.capture, self.case.captures)

    # -- creating ---------------------------------------------------------------------------------------------------

    def _create(self, view: ViewDef) -> None:
        if view.kind == "plain":
            self._create_plain(view)
            return
        error = self._truth(view)
        if error and not self.case.risky:
            raise InvalidCase(error)
        try:
            info = self.engine.create_view(view.name, view.sql, view.apply_strategy)
        except Exception as raised:
            if error:
                self.report.errors += 1
                self._usable(view)
                return
            raise _engine_failure("create", view, raised) from raised
        self._note(view, info)
        if error:
            self._lenient(view, error)
            return
        check_columns(self.connection, view.name)
        check_rows(self.connection, view.name)
        self.seen[view.name] = fingerprint(self.connection, view.name)
        check_rest(self.engine, self.connection, view.name)

    def _create_plain(self, view: ViewDef) -> None:
        try:
            self.connection.execute(f"CREATE VIEW {quote(view.name)} AS {view.sql}")
        except duckdb.Error as error:
            if self.case.risky:
                return
            raise InvalidCase(str(error)) from error

    def _note(self, view: ViewDef, info: Any) -> None:
        self.types[view.name] = info.refresh_type
        self.report.views[info.refresh_type] += 1
        self.report.features.update(view.features)
        self.consumed.update(source.lower() for source in info.sources)
        if info.refresh_type == "FULL_REFRESH":
            self.report.full[f"{'SUPPORTED ' if view.supported else ''}{_normal(info.reason or 'no reason')}"] += 1
            if not info.reason:
                raise Failure("no reason", view.name, "FULL_REFRESH without a reason")
            if view.supported:
                # told at the end: the rows have to be right all the same
                detail = f"of a supported query: {info.reason}"
                self.deferred.append(Failure("full refresh", view.name, detail, _normal(info.reason)))

    # -- steps ------------------------------------------------------------------------------------------------------

    def _run_step(self, step: Step) -> None:
        for statement in step.statements:
            self._try(text(statement))
        self._try("ROLLBACK")  # a transaction that failed in the middle, or whose end the shrinker took away
        if step.restart:
            self.engine = self._engine()
        for name in step.refresh:
            if name in self.types:
                self._refresh(self.case.view(name))

    def _try(self, sql: str) -> None:
        with contextlib.suppress(duckdb.Error):
            self.connection.execute(sql)

    def _truth(self, view: ViewDef) -> str | None:
        """Recompute the view into TRUTH; the error where the query fails on the data."""
        try:
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {TRUTH} AS {view.sql}")
        except duckdb.Error as error:
            return str(error)
        return None

    def _refresh(self, view: ViewDef) -> None:
        self._untouched(view)
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {OLD} AS FROM {quote(view.name)}")
        since = view_version(self.connection, view.name)
        error = self._truth(view)
        try:
            result = self.engine.refresh(view.name)
        except Exception as raised:
            if error is None:
                raise _engine_failure("refresh", view, raised) from raised
            self.report.errors += 1
            self._untouched(view)
            self._usable(view)
            return
        self.report.refreshes[result.refresh_type] += 1
        self.report.strategies[result.strategy] += 1
        if result.reason and FAILED in result.reason and not self.case.risky:
            raise Failure("incremental failed", view.name, result.reason)
        if error is not None:
            self._lenient(view, error)
            return
        check_columns(self.connection, view.name)
        check_rows(self.connection, view.name)
        if self.all_logged or f"memory.main.{view.name}".lower() in self.consumed:
            check_delta(self.connection, view.name, since, view_version(self.connection, view.name))
        self.seen[view.name] = fingerprint(self.connection, view.name)
        check_rest(self.engine, self.connection, view.name)
        self._untouched(view)

    def _lenient(self, view: ViewDef, error: str) -> None:
        """The query fails and the refresh did not: with joins the plan decides which rows an expression sees."""
        joined = any(feature.startswith("join") for feature in view.features)
        # a sum may overflow on its way and come back, depending on the order of the rows
        if not joined and "SUM" not in error and "HUGEINT" not in error:
            raise Failure("error hidden", view.name, f"refreshed, while the query fails: {error}")
        self.seen[view.name] = fingerprint(self.connection, view.name)

    def _untouched(self, view: ViewDef) -> None:
        """Nobody but its own refresh changes a view."""
        if fingerprint(self.connection, view.name) != self.seen[view.name]:
            raise Failure("touched", view.name, "the rows changed although the view was not refreshed")

    def _usable(self, view: ViewDef) -> None:
        """After an error the connection has no open transaction."""
        try:
            self.connection.execute("BEGIN")
            self.connection.execute("ROLLBACK")
        except duckdb.Error as error:
            raise Failure("left a transaction", view.name, str(error)) from error

    def _drop_all(self) -> None:
        """Dropped views leave nothing behind that hinders the user's tables."""
        for name in reversed(self.types):
            view = self.case.view(name)
            try:
                self.engine.drop_view(name)
            except Exception as raised:
                raise _engine_failure("drop", view, raised) from raised
        for statement in self.case.setup:
            if not isinstance(statement, str) and text(statement).startswith("CREATE TABLE"):
                try:
                    self.connection.execute(f"DELETE FROM {statement.relation}")
                except duckdb.Error as error:
                    raise Failure("drop", "*", f"a table cannot be written any more: {error}") from error


def _engine_failure(what: str, view: ViewDef, raised: Exception) -> Failure:
    detail = "".join(traceback.format_exception(raised)[-6:])
    return Failure(f"{what} error", view.name, detail, f"{type(raised).__name__} {_normal(str(raised))}")


def _normal(message: str) -> str:
    """A message without what differs from case to case: names and numbers."""
    line = message.strip().split("\n")[0]
    line = re.sub(r"(column|macro|table) .*?(,| with)", r"\1 .\2", line).split(" at line")[0]
    line = re.sub(r'"(?:[^"]|"")*"|\'(?:[^\']|\'\')*\'', "'.'", line)
    return re.sub(r"\d+", "N", line)[:160]

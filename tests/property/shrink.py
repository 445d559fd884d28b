"""Makes a failing case small: as long as a smaller one fails in the same way, take it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from dbt_openivm.choices import AUTO
from tests.property.case import Case, CreateTable, Insert, Statement, Step, ViewDef
from tests.property.checks import Failure
from tests.property.engines import EngineFactory, RealEngine
from tests.property.reduce_sql import smaller_queries
from tests.property.runner import InvalidCase, run_case

T = TypeVar("T")


class Shrinker:
    """Shrinks within a number of seconds."""

    def __init__(
        self, failure: Failure, factory: EngineFactory = RealEngine, *, seconds: float = 60, all_logged: bool = False
    ) -> None:
        self.failure = failure
        self.factory = factory
        self.all_logged = all_logged
        self.deadline = time.monotonic() + seconds

    def shrink(self, case: Case) -> tuple[Case, Failure]:
        """The smallest case found that fails in the same way, and how it fails."""
        smaller: Case | None = case
        while smaller is not None:
            case = smaller
            smaller = self._round(case)
        return case, self.failure

    def _round(self, case: Case) -> Case | None:
        """Every kind of reduction until it gives no more; None where nothing became smaller."""
        start = case
        for reduction in REDUCTIONS:
            while (smaller := self._first(reduction(case, self.failure))) is not None:
                case = smaller
        return None if case is start else case

    def _first(self, candidates: Iterator[Case]) -> Case | None:
        for candidate in candidates:
            if time.monotonic() > self.deadline:
                return None
            if (failure := self._fails(candidate)) is not None:
                self.failure = failure
                return candidate
        return None

    def _fails(self, case: Case) -> Failure | None:
        try:
            failure = run_case(case, self.factory, all_logged=self.all_logged).failure
        except InvalidCase:
            return None
        if failure is None or (failure.check, failure.signature) != (self.failure.check, self.failure.signature):
            return None
        return failure


def _fewer_steps(case: Case, failure: Failure) -> Iterator[Case]:
    if case.steps:
        yield replace(case, steps=())
    if failure.step + 1 < len(case.steps):
        yield replace(case, steps=case.steps[: failure.step + 1])
    for i in range(len(case.steps)):
        yield replace(case, steps=_without(case.steps, i))


def _fewer_views(case: Case, failure: Failure) -> Iterator[Case]:
    alone = tuple(view for view in case.views if view.name == failure.view)
    if 0 < len(alone) < len(case.views):
        steps = tuple(replace(step, refresh=tuple(n for n in step.refresh if n == failure.view)) for step in case.steps)
        yield replace(case, views=alone, steps=steps)
    for i, view in enumerate(case.views):
        steps = tuple(replace(step, refresh=tuple(n for n in step.refresh if n != view.name)) for step in case.steps)
        yield replace(case, views=_without(case.views, i), steps=steps)


def _fewer_statements(case: Case, _: Failure) -> Iterator[Case]:
    for i in range(len(case.setup)):
        yield replace(case, setup=_without(case.setup, i))
    for i, step in enumerate(case.steps):
        for j in range(len(step.statements)):
            yield _with_step(case, i, replace(step, statements=_without(step.statements, j)))
        for j in range(len(step.refresh)):
            yield _with_step(case, i, replace(step, refresh=_without(step.refresh, j)))


def _fewer_rows(case: Case, _: Failure) -> Iterator[Case]:
    for i, statement in enumerate(case.setup):
        for smaller in _halves(statement):
            yield replace(case, setup=_exchanged(case.setup, i, smaller))
    for i, step in enumerate(case.steps):
        for j, statement in enumerate(step.statements):
            for smaller in _halves(statement):
                yield _with_step(case, i, replace(step, statements=_exchanged(step.statements, j, smaller)))


def _halves(statement: Statement) -> Iterator[Statement]:
    """Fewer rows: half of them, then one less."""
    if not isinstance(statement, Insert) or len(statement.rows) < 2:
        return
    half = len(statement.rows) // 2
    yield replace(statement, rows=statement.rows[:half])
    yield replace(statement, rows=statement.rows[half:])
    if len(statement.rows) <= 8:
        for i in range(len(statement.rows)):
            yield replace(statement, rows=_without(statement.rows, i))


def _smaller_views(case: Case, _: Failure) -> Iterator[Case]:
    for i, view in enumerate(case.views):
        for sql in smaller_queries(view.sql):
            smaller: ViewDef = replace(view, sql=sql)
            yield replace(case, views=_exchanged(case.views, i, smaller))


def _fewer_columns(case: Case, _: Failure) -> Iterator[Case]:
    """One column less, in its table and in every INSERT into it."""
    for table in case.setup:
        if isinstance(table, CreateTable) and len(table.columns) > 1:
            for name, _ in table.columns:
                yield _drop_column(case, table.relation, name)


def _drop_column(case: Case, relation: str, name: str) -> Case:
    def fewer(statement: Statement) -> Statement:
        if isinstance(statement, str) or statement.relation != relation:
            return statement
        if isinstance(statement, CreateTable):
            return replace(statement, columns=tuple(column for column in statement.columns if column[0] != name))
        position = statement.columns.index(name)
        rows = tuple(_without(row, position) for row in statement.rows)
        return replace(statement, columns=_without(statement.columns, position), rows=rows)

    steps = tuple(replace(step, statements=tuple(map(fewer, step.statements))) for step in case.steps)
    return replace(case, setup=tuple(map(fewer, case.setup)), steps=steps)


def _plainer(case: Case, _: Failure) -> Iterator[Case]:
    if case.capture != "diff" or case.captures:
        yield replace(case, capture="diff", captures={})
    for i, view in enumerate(case.views):
        if view.apply_strategy != AUTO:
            yield replace(case, views=_exchanged(case.views, i, replace(view, apply_strategy=AUTO)))
    for i, step in enumerate(case.steps):
        if step.restart:
            yield _with_step(case, i, replace(step, restart=False))


def _with_step(case: Case, i: int, step: Step) -> Case:
    return replace(case, steps=_exchanged(case.steps, i, step))


def _without(items: tuple[T, ...], i: int) -> tuple[T, ...]:
    return items[:i] + items[i + 1 :]


def _exchanged(items: tuple[T, ...], i: int, item: T) -> tuple[T, ...]:
    return (*items[:i], item, *items[i + 1 :])


#: The ones that take most away first.
REDUCTIONS = (
    _fewer_steps,
    _fewer_views,
    _fewer_statements,
    _fewer_rows,
    _smaller_views,
    _fewer_columns,
    _plainer,
)

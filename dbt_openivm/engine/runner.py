"""Run a program: render each step, execute it, keep the counts that later steps and the result need."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from dbt_openivm.compiler.plan import Step
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.session import Row, Session


class StateChangedError(Exception):
    """A step touched another number of rows than the state's own history says: somebody changed the state by hand."""


@dataclass
class Runner:
    """Attributes:
    changed: visible rows changed so far.
    timings: (label, milliseconds) of every statement.
    """

    session: Session
    render: Renderer
    changed: int = 0
    timings: list[tuple[str, float]] = field(default_factory=list)

    def run(self, steps: Iterable[Step]) -> None:
        """Run the steps of one node.

        Raises:
            StateChangedError: see `Step.expect`.
        """
        counts: dict[str, int] = {}
        for step in steps:
            if step.after is not None and not counts.get(step.after):
                continue
            rows = self.execute(step)
            if step.returns:
                counts.update(zip(step.returns, map(int, rows[0]), strict=True))
                continue
            counts[step.label] = int(rows[0][0]) if rows and isinstance(rows[0][0], int) else 0
            self.check(step, counts)
            self.changed += counts[step.label] if step.counts else 0

    def execute(self, step: Step) -> list[Row]:
        started = time.perf_counter()
        rows = self.session.execute(self.render(step.macro, step.arguments))
        self.timings.append((step.label, (time.perf_counter() - started) * 1000))
        return rows

    def check(self, step: Step, counts: dict[str, int]) -> None:
        if step.expect is None:
            return
        expected = counts[step.expect] if isinstance(step.expect, str) else step.expect
        if counts[step.label] != expected:
            raise StateChangedError(f"{step.label}: {counts[step.label]} rows instead of {expected}")

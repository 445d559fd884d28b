"""The clock as a source: the instant that a refresh pins, and the rows that crossed a boundary since the last one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone

from dbt_openivm.compiler.algebra import Scan, Temporal
from dbt_openivm.compiler.clock import CLOCK
from dbt_openivm.compiler.crossings import crossing_steps
from dbt_openivm.compiler.facts import NODE
from dbt_openivm.compiler.plan import PlanNode, Step
from dbt_openivm.compiler.publish import drop
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.compiler.rules.temporal import clock_state, crossing_key, crossing_table
from dbt_openivm.engine.catalog import Cursor
from dbt_openivm.engine.runner import Runner
from dbt_openivm.engine.session import Session

Clock = Callable[[], datetime]
"""What time it is, instead of DuckDB's own answer: for tests."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def instant(session: Session, clock: Clock | None) -> int:
    """The instant of a refresh, in microseconds since 1970: that of its transaction, as now() has it."""
    if clock is not None:
        return _microseconds(clock())
    [(found,)] = session.execute("SELECT epoch_us(now())")
    return int(found)


def moment(clock: Clock | None) -> str:
    """SQL of what time it is, as change logs have it."""
    return "now()::TIMESTAMP" if clock is None else f"make_timestamptz({_microseconds(clock())})::TIMESTAMP"


def _microseconds(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)


def clock_cursor(view_key: str, now: int) -> Cursor:
    """What a view has consumed of the clock."""
    return Cursor(view_key, CLOCK, CLOCK, now, 0, ())


class Crossings:
    """Finds the rows that crossed since the last refresh, before the programs that read them.

    Args:
        runner: executes the statements, and times them.
        then, now: the two instants.
    """

    def __init__(self, runner: Runner, then: int, now: int) -> None:
        self.runner = runner
        self.clock = clock_state(then, now)
        self.states: dict[str, SourceState] = {}
        self._steps: list[Step] = []

    @property
    def rows(self) -> int:
        return sum(state.inserts + state.deletes for state in self.states.values())

    def find_early(self, nodes: Iterable[PlanNode], states: Mapping[str, SourceState]) -> bool:
        """Find what depends on no internal view; returns whether that is all there is."""
        complete = True
        for node in nodes:
            for operator in node.moving.values():
                if any(isinstance(op, Scan) and op.relation.kind == NODE for op in operator.walk()):
                    complete = False
                else:
                    self.find(operator, states)
        return complete

    def find_late(self, node: PlanNode, states: Mapping[str, SourceState]) -> None:
        """Find what is not found yet of a node, whose internal views are up to date."""
        for operator in node.moving.values():
            self.find(operator, states)

    def find(self, operator: Temporal, states: Mapping[str, SourceState]) -> None:
        key, table = crossing_key(operator.number), crossing_table(operator.number)
        if key in self.states or self.clock.shape == "empty":
            return
        self.runner.run(crossing_steps(operator, {**states, CLOCK: self.clock}))
        self._steps.append(drop(table))
        self.states[key] = self.shape(table)

    def shape(self, table: str) -> SourceState:
        [(inserts, deletes, unit)] = self.runner.session.execute(
            "SELECT count(*) FILTER (WHERE openivm_multiplicity > 0), "
            "count(*) FILTER (WHERE openivm_multiplicity < 0), "
            f"coalesce(bool_and(abs(openivm_multiplicity) = 1), true) FROM {table}"
        )
        return SourceState("", table, inserts=int(inserts), deletes=int(deletes), unit=bool(unit))

    def clean_up(self) -> None:
        self.runner.run(self._steps)
        self._steps = []

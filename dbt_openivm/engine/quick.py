"""The quick refresh: for views that this very engine refreshed before, and whose sources nobody else follows.

It serves views all of whose sources are captured by triggers and consumed by no other view, and whose query goes
through no plain view and no macro. Tables with triggers cannot lose or change columns without losing the triggers, and
every change of the catalog goes through the coordinator of this process: so what the last refresh knew still holds, and
few things need a look: logs, triggers, the number of columns of the tables and of rows of the state. As the one
consumer, the view takes the rows that triggers logged without having them numbered, and removes them in the same
transaction. Whatever looks different is left to a proper refresh.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbt_openivm.compiler.facts import SQL_VIEW
from dbt_openivm.compiler.plan import PlanNode, Step, Target
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.engine.apply import Application, Outcome, Sources, check_count
from dbt_openivm.engine.bases import base_of
from dbt_openivm.engine.capture.trigger import TriggerCapture
from dbt_openivm.engine.catalog import Catalog, ViewRow, passed
from dbt_openivm.engine.coordinate import Coordinator
from dbt_openivm.engine.prepare import REFRESH, Prepared, relation_name
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.types import RefreshResult
from dbt_openivm.names import RelationName


class NotQuickError(Exception):
    """Something looks different: a proper refresh must find out what."""


@dataclass(frozen=True)
class Seen:
    """What the last refresh of a view knew, and when in the coordinator's count of events that was.

    `programs` holds programs by node and states of the sources: without batch numbers they repeat.
    """

    prepared: Prepared
    epoch: int
    turn: int
    programs: dict[Hashable, Sequence[Step]] = field(default_factory=dict)


class QuickRefresh:
    """Remembers the views that it can serve."""

    def __init__(self, session: Session, catalog: Catalog, render: Renderer) -> None:
        self.session = session
        self.catalog = catalog
        self.render = render
        self._seen: dict[str, Seen] = {}

    def remember(self, prepared: Prepared, coordinator: Coordinator, touched: Mapping[str, ViewRow]) -> None:
        """Take note of a view after its refresh was committed."""
        family = {key: touched.get(key, row) for key, row in prepared.family.items()}
        if not is_simple(prepared):
            self._seen.pop(prepared.key, None)
            return
        sources = {key: replace(row) for key, row in prepared.sources.items()}
        cursors = {key: replace(cursor, cursor=sources[key].version) for key, cursor in prepared.cursors.items()}
        known = replace(prepared, family=family, cursors=cursors)
        known.made = prepared.made  # a copy would make the plan again
        self._seen[prepared.key] = Seen(known, coordinator.epoch, coordinator.turns[prepared.key])

    def refresh(self, view: RelationName, coordinator: Coordinator) -> RefreshResult | None:
        """Refresh a view in the caller's open transaction; None if it is not remembered.

        Raises:
            NotQuickError: roll back, and refresh properly.
            StateChangedError: likewise.
        """
        seen = self._seen.get(view.key)
        if seen is None or (seen.epoch, seen.turn) != (coordinator.epoch, coordinator.turns[view.key]):
            return None
        if any(coordinator.lowest_pin(key) is not None for key in seen.prepared.sources):
            # a view that is being built may have seen the logged rows, and left them for later
            return None
        prepared = replace(seen.prepared, started=time.perf_counter())
        prepared.made = seen.prepared.made
        application = QuickApplication(self.session, self.catalog, self.render, prepared)
        application.programs = seen.programs
        result = application.run()
        if result.strategy != "none":
            coordinator.turns[view.key] += 1
            self.remember(prepared, coordinator, application.touched)
            self._seen[view.key].programs.update(seen.programs)
        return result

    def forget(self, key: str) -> None:
        self._seen.pop(key, None)

    def knows(self, key: str) -> bool:
        return key in self._seen


class QuickApplication(Application):
    """A refresh that reads the rows which triggers logged, and removes them."""

    programs: dict[Hashable, Sequence[Step]]

    def read_parents(self) -> dict[str, ViewRow]:
        return {}

    def refresh(self) -> Outcome:
        return self.follow()

    def states(self, _cursors: Mapping[str, int], family: Iterable[ViewRow] = ()) -> Sources:
        capture = TriggerCapture(self.session, self.runner.render)
        self.check_columns()
        states: Sources = {}
        for key, row in self.prepared.sources.items():
            base = base_of(row, relation_name(row.from_sql))
            shape = capture.unnumbered(base)
            if not capture.is_whole(base) or (shape.added and shape.removed and capture.is_blurred(base)):
                raise NotQuickError(key)
            states[key] = SourceState(
                self.prepared.currents[key], base.objects["delta"].sql, row.version, row.version, shape.added,
                shape.removed, unnumbered=True,
            )  # fmt: skip
        for row_ in family:
            [(found,)] = self.session.execute(f"SELECT count(*) FROM {row_.data.sql}")
            check_count(found, row_.row_count)
        self.session.execute(f"SELECT 1 FROM {self.prepared.spec.name.sql} LIMIT 0")
        return states

    def check_columns(self) -> None:
        """Triggers keep columns from going and changing, but not from coming: a star would show a new one."""
        relations = self.prepared.facts.relations
        counts = {
            f"{database}.{schema}.{name}".lower(): count
            for database, schema, name, count in self.session.execute(
                "SELECT database_name, schema_name, table_name, column_count FROM duckdb_tables()"
            )
        }
        if any(counts.get(key) != len(relations[key].columns) for key in self.prepared.sources):
            raise NotQuickError("columns")

    def program(self, node: PlanNode, states: Sources, target: Target) -> Sequence[Step]:
        if target.publish or len(self.plan.nodes) > 1:
            # these programs name batches, which are new every time
            return super().program(node, states, target)
        shapes = tuple((key, state.shape, state.version) for key, state in sorted(states.items()))
        if (node.number, shapes) not in self.programs:
            self.programs[node.number, shapes] = super().program(node, states, target)
        return self.programs[node.number, shapes]

    def clean_log(self, row: ViewRow, target: Target) -> None:
        if target.publish and row.owner is None:
            # unlike everything else that is remembered, the cursors of consumers move without a word
            self.prepared.passed = passed(self.catalog.cursors(), row.key)
        super().clean_log(row, target)

    def advance(self, states: Sources) -> None:
        """As the one consumer, at the version of every source: no numbers, no cursors to move."""
        for key in self.prepared.sources:
            if states[key].shape != "empty":
                consumed = f"openivm_batch IS NULL OR openivm_batch <= {states[key].version}"
                self.session.execute(f"DELETE FROM {states[key].log} WHERE {consumed}")


def is_simple(prepared: Prepared) -> bool:
    """Whether every source is captured by triggers for this view alone, and nothing but the query defines the view."""
    outline, facts = prepared.outline, prepared.facts
    return (
        prepared.action == REFRESH
        and prepared.user_view_ours
        and not outline.volatile
        and not facts.macros
        and not any(setting.startswith("TimeZone") for setting in facts.settings)
        and prepared.sources.keys() == outline.sources.keys()
        and not any(relation.kind == SQL_VIEW for relation in facts.relations.values())
        and all(row.capture == TriggerCapture.kind for row in prepared.sources.values())
        and prepared.alone_on_sources
    )

"""The quick refresh: for views that this very engine refreshed before, and whose sources nobody else follows.

It serves views all of whose sources are captured by triggers and consumed by no other view, and whose query goes
through no plain view and no macro. Every change of the catalog `openivm` goes through the coordinator of this process:
so what the last refresh knew still holds, and two statements look at the rest. One asks for the triggers, and for what
DuckDB makes of query and view: a table swapped for another has no triggers; a column that came, a name that now means
something else, and a view that somebody replaced show in the plan to which DuckDB binds them. The other counts what is
in the logs, and the rows of the state. As the one consumer, the view takes the rows that triggers logged without having
them numbered, and removes them in the same transaction. Whatever looks different is left to a proper refresh.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dbt_openivm.compiler.facts import SQL_VIEW
from dbt_openivm.compiler.lower.references import renamed_functions
from dbt_openivm.compiler.plan import PlanNode, Step, Target
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.engine.apply import Application, Outcome, Sources, is_followed
from dbt_openivm.engine.bases import base_of
from dbt_openivm.engine.capture.base import Base
from dbt_openivm.engine.capture.trigger import (
    TriggerCapture,
    added_and_removed,
    unnumbered_columns,
    wanted_triggers,
)
from dbt_openivm.engine.catalog import Catalog, ViewRow, companion_passed, passed
from dbt_openivm.engine.clock import Clock
from dbt_openivm.engine.coordinate import Coordinator
from dbt_openivm.engine.counts import check_count
from dbt_openivm.engine.prepare import REFRESH, Prepared, relation_name
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.types import RefreshResult, ViewSpec
from dbt_openivm.names import RelationName, literal


class NotQuickError(Exception):
    """Something looks different: a proper refresh must find out what."""


@dataclass(frozen=True)
class Seen:
    """What the last refresh of a view knew, and when in the coordinator's count of events that was.

    Attributes:
        binding: a hash of what DuckDB makes of the query and of the view.
        programs: programs by node, states of the sources and apply strategy: without batch numbers they repeat.
        busy: sources whose logs held rows at the last look.
    """

    prepared: Prepared
    epoch: int
    turn: int
    binding: int
    programs: dict[Hashable, Sequence[Step]] = field(default_factory=dict)
    busy: set[str] = field(default_factory=set)


class QuickRefresh:
    """Remembers the views that it can serve."""

    def __init__(self, session: Session, catalog: Catalog, render: Renderer, clock: Clock | None = None) -> None:
        self.session = session
        self.catalog = catalog
        self.render = render
        self.clock = clock
        self._seen: dict[str, Seen] = {}

    def remember(self, prepared: Prepared, coordinator: Coordinator, touched: Mapping[str, ViewRow]) -> None:
        """Take note of a view at the end of its refresh's transaction, which is still open."""
        binding = self.binding(prepared.spec) if is_simple(prepared) else None
        if binding is None:
            self.forget(prepared.key)
        else:
            self.note(prepared, coordinator, touched, binding)

    def binding(self, spec: ViewSpec) -> int | None:
        """A hash of what DuckDB makes of the query and of the view; None where it cannot tell."""
        if not self.can_tell:
            return None
        [(known, binding)] = self.session.execute(
            f"SELECT starts_with(plan, '{{\"error\":false'), hash(plan) FROM (SELECT {binding_of(spec)} AS plan)"
        )
        return int(binding) if known else None

    @cached_property
    def can_tell(self) -> bool:
        """Whether DuckDB has the function that `binding_of` calls."""
        loaded = "SELECT loaded FROM duckdb_extensions() WHERE extension_name = 'json'"
        return self.session.execute(loaded) == [(True,)]

    def note(self, prepared: Prepared, coordinator: Coordinator, touched: Mapping[str, ViewRow], binding: int) -> None:
        family = {key: touched.get(key, row) for key, row in prepared.family.items()}
        sources = {key: replace(row) for key, row in prepared.sources.items()}
        cursors = {key: replace(cursor, cursor=sources[key].version) for key, cursor in prepared.cursors.items()}
        known = replace(prepared, family=family, cursors=cursors)
        known.made = prepared.made  # a copy would make the plan again
        self._seen[prepared.key] = Seen(known, coordinator.epoch, coordinator.turns[prepared.key], binding)

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
        application = QuickApplication(self.session, self.catalog, self.render, prepared, self.clock)
        application.programs, application.busy = seen.programs, seen.busy
        application.binding = seen.binding
        application.unwatched = not coordinator.pins
        result = application.run()
        if result.strategy != "none":
            coordinator.turns[view.key] += 1
            self.note(prepared, coordinator, application.touched, seen.binding)
            self._seen[view.key] = replace(self._seen[view.key], programs=seen.programs, busy=seen.busy)
        return result

    def forget(self, key: str) -> None:
        self._seen.pop(key, None)

    def knows(self, key: str) -> bool:
        return key in self._seen


class QuickApplication(Application):
    """A refresh that reads the rows which triggers logged, and removes them."""

    programs: dict[Hashable, Sequence[Step]]
    busy: set[str]
    binding: int
    unwatched: bool

    def read_parents(self) -> dict[str, ViewRow]:
        return {}

    def refresh(self) -> Outcome:
        return self.follow()

    def states(self, _cursors: Mapping[str, int], family: Iterable[ViewRow] = ()) -> Sources:
        bases = {key: base_of(row, relation_name(row.from_sql)) for key, row in self.prepared.sources.items()}
        self.check_catalog(bases.values())
        logged = self.logged(bases, family)
        capture = TriggerCapture(self.session, self.runner.render)
        states: Sources = {}
        for key, base in bases.items():
            added, removed = logged[key]
            if added and removed and capture.is_blurred(base):
                raise NotQuickError(key)
            states[key] = SourceState(
                self.prepared.currents[key], base.objects["delta"].sql, base.version, base.version, added, removed,
                unnumbered=True,
            )  # fmt: skip
        return states

    def check_catalog(self, bases: Iterable[Base]) -> None:
        """Whether all triggers are there, and query and view still mean what they meant."""
        rows = self.session.execute(
            f"SELECT database_name, schema_name, table_name, trigger_name, hash({binding_of(self.prepared.spec)}) "
            "FROM duckdb_triggers()"
        )
        triggers = {tuple(str(part).lower() for part in row[:4]) for row in rows}
        if any(not wanted_triggers(base) <= triggers for base in bases) or rows[0][4] != self.binding:
            raise NotQuickError("catalog")

    def logged(self, bases: Mapping[str, Base], family: Iterable[ViewRow]) -> dict[str, tuple[int, int]]:
        """Rows that triggers logged, (added, removed) by source.

        An empty log shows in the table's metadata; of the others, those that were not empty the last time either are
        asked at once.
        """
        queries = [
            f"SELECT {literal(key)}, {unnumbered_columns(base)}"
            if key in self.busy
            else f"SELECT {literal(key)}, count(*), 0 FROM {base.objects['delta'].sql}"
            for key, base in bases.items()
        ]
        queries += [f"SELECT NULL, count(*), {row.row_count} FROM {row.data.sql}" for row in family]
        logged = {}
        late = []
        for key, count, other in self.session.execute(" UNION ALL ".join(queries)):
            if key is None:
                check_count(count, other)
            elif key in self.busy or not count:
                logged[key] = added_and_removed(count, other)
            else:
                late.append(key)
        for key in late:
            [row] = self.session.execute(f"SELECT {unnumbered_columns(bases[key])}")
            logged[key] = added_and_removed(*row)
        self.busy.clear()
        self.busy.update(key for key, counts in logged.items() if any(counts))
        return logged

    def program(self, node: PlanNode, states: Sources, target: Target) -> Sequence[Step]:
        if is_followed(target) or len(self.plan.nodes) > 1:
            # these programs name batches, which are new every time
            return super().program(node, states, target)
        shapes = tuple((key, state.shape, state.version) for key, state in sorted(states.items()))
        key = (node.number, shapes, target.apply_strategy)
        if key not in self.programs:
            self.programs[key] = super().program(node, states, target)
        return self.programs[key]

    def touch(self, row: ViewRow, target: Target, count: int) -> None:
        """The version is for consumers: one that registers later starts from what it finds.

        But one that is registering right now, in a transaction that does not see this refresh, must find out from the
        version that it missed something. Then a refresh is under way, with its pins.
        """
        if is_followed(target) or count != row.row_count or not self.unwatched:
            super().touch(row, target, count)

    def clean_logs(self, row: ViewRow, target: Target) -> None:
        if is_followed(target) and row.owner is None:
            # unlike everything else that is remembered, the cursors of consumers move without a word
            cursors = self.catalog.cursors()
            self.prepared.passed = passed(cursors, row.key)
            self.prepared.companion_passed = companion_passed(cursors, row.key)
        super().clean_logs(row, target)

    def advance(self, states: Sources) -> None:
        """As the one consumer, at the version of every source: no numbers, no cursors to move."""
        for key in self.prepared.sources:
            if states[key].shape != "empty":
                # all that this transaction sees: rows without a number, and numbered ones that the view has consumed
                self.session.execute(f"DELETE FROM {states[key].log}")


def binding_of(spec: ViewSpec) -> str:
    """SQL of a text: the plan to which DuckDB binds the query and the view, with all names resolved, as JSON."""
    return f"json_serialize_plan({literal(f'{spec.sql}{chr(10)};FROM {spec.name.sql}')})"


def is_simple(prepared: Prepared) -> bool:
    """Whether every source is captured by triggers for this view alone, and nothing but the query defines the view."""
    outline, facts = prepared.outline, prepared.facts
    return (
        prepared.action == REFRESH
        and prepared.user_view_ours
        and not outline.volatile
        and not outline.clock  # its rows change without a row in any log
        and not facts.macros
        and not renamed_functions(prepared.spec.sql)  # a macro of such a name does not show in the query's binding
        and not any(setting.startswith("TimeZone") for setting in facts.settings)
        and prepared.sources.keys() == outline.sources.keys()
        and not any(relation.kind == SQL_VIEW for relation in facts.relations.values())
        and all(row.capture == TriggerCapture.kind for row in prepared.sources.values())
        and prepared.alone_on_sources
    )

"""A refresh inside one transaction: shapes of the deltas, program, publishing, cursors, history."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dbt_openivm.choices import DELETE_INSERT
from dbt_openivm.compiler import companion, publish
from dbt_openivm.compiler.clock import CLOCK
from dbt_openivm.compiler.facts import BASE, VISIBLE, Column
from dbt_openivm.compiler.plan import FULL_REFRESH, Companion, PlanNode, RefreshPlan, Step, Target
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.compiler.rules.temporal import clock_state
from dbt_openivm.compiler.split import node_key
from dbt_openivm.engine import cost
from dbt_openivm.engine.catalog import Catalog, Cursor, ViewRow
from dbt_openivm.engine.clock import Clock, Crossings, clock_cursor, instant, moment
from dbt_openivm.engine.companions import Companions
from dbt_openivm.engine.counts import check_count, count_query, shape_query
from dbt_openivm.engine.planning import digest, types_to_json
from dbt_openivm.engine.prepare import BUILD, DAMAGED, REBUILD, REFRESH, Prepared
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.runner import Runner, StateChangedError
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.shapes import view_is_whole
from dbt_openivm.engine.types import RefreshResult
from dbt_openivm.engine.ways import ASKED, Way
from dbt_openivm.errors import InternalError
from dbt_openivm.names import (
    RelationName,
    data_table,
    delta_table,
    internal_schema,
    literal,
    node_view,
    quote,
    visible_view,
)

Sources = dict[str, SourceState]


@dataclass(frozen=True)
class Outcome:
    """What a refresh did to the view, before it is told as a `RefreshResult`."""

    strategy: str
    reason: str | None
    delta_rows: int = 0
    changed_rows: int | None = None


class Application:
    """One refresh of one view, inside the caller's open transaction."""

    def __init__(
        self,
        session: Session,
        catalog: Catalog,
        render: Renderer,
        prepared: Prepared,
        clock: Clock | None = None,
        way: Way = ASKED,
    ) -> None:
        self.session = session
        self.clock = clock
        self.catalog = catalog
        self.prepared = prepared
        self.outline = prepared.outline
        self.way = way
        self.runner = Runner(session, render)
        self.companions = Companions(session, catalog, render)
        self.companion: RelationName | None = None
        self.touched: dict[str, ViewRow] = {}
        self.crossings: Crossings | None = None
        self.parents = self.read_parents()

    @property
    def plan(self) -> RefreshPlan:
        return self.prepared.plan

    def run(self) -> RefreshResult:
        self.companion = self.find_companion()
        if self.way.rebuild:
            outcome = self.build(self.way.reason, lost=True)
        else:
            outcome = self.refresh() if self.prepared.action == REFRESH else self.build(self.prepared.reason)
        if not self.prepared.user_view_ours:
            self.create_user_view()
        self.keep_choice()
        return self.tell(outcome)

    def keep_choice(self) -> None:
        """Note choices that are not those of the last refresh; the state is the same under all."""
        root, chosen, feed = self.prepared.root, self.prepared.spec.apply_strategy, self.prepared.change_feed
        if self.prepared.action != REFRESH or root is None:
            return
        if root.apply_strategy != chosen:
            self.catalog.set_apply_strategy(root.key, chosen)
            self.touched[root.key] = replace(self.touched.get(root.key, root), apply_strategy=chosen)
        if root.change_feed != feed:
            self.catalog.set_change_feed(root.key, feed)
            self.touched[root.key] = replace(self.touched.get(root.key, root), change_feed=feed)

    # --- reading -----------------------------------------------------------------------------------------------------

    def read_parents(self) -> dict[str, ViewRow]:
        """The ivm_views that this one reads, as this transaction sees them."""
        keys = [key for key in self.outline.sources if key not in self.prepared.sources]
        if not keys:
            return {}
        return {row.key: row for row in self.catalog.views(f"view_key IN ({', '.join(map(literal, keys))})")}

    @cached_property
    def now(self) -> int:
        """The instant that this refresh reads the clock at."""
        return instant(self.session, self.clock)

    def versions(self) -> dict[str, int]:
        return {**self.prepared.versions, **{key: row.version for key, row in self.parents.items()}}

    def states(self, cursors: Mapping[str, int], family: Iterable[ViewRow] = ()) -> Sources:
        """Each source with the shape of its delta, in one statement.

        Raises:
            StateChangedError: a state of `family` has not the number of rows that its last refresh left.
        """
        versions, logs = self.versions(), self.logs()
        queries = [shape_query(key, logs[key][1], cursors[key], version) for key, version in versions.items()]
        queries += [count_query(row) for row in family]
        states: Sources = {}
        for key, inserts, deletes, unit, later in (
            self.session.execute("\nUNION ALL\n".join(queries)) if queries else []
        ):
            if key is None:
                check_count(inserts, deletes)
                continue
            current, log = logs[key]
            states[key] = SourceState(
                current, log, cursors[key], versions[key], int(inserts), int(deletes), bool(later), bool(unit)
            )
        return states

    def logs(self) -> dict[str, tuple[str, str]]:
        """(current relation, change log) of each source, as SQL."""
        bases = {
            key: (self.prepared.currents[key], row.objects["delta"].sql) for key, row in self.prepared.sources.items()
        }
        return {**bases, **{key: (row.visible.sql, row.log.sql) for key, row in self.parents.items()}}

    def find_companion(self) -> RelationName | None:
        """The table that this refresh writes companion rows to; None if nobody wants them, or all is built anew."""
        root, wanted = self.prepared.root, self.prepared.keeps_companion
        if root is None or not (wanted or root.companion):
            return None
        if wanted and self.prepared.companion_whole:
            return root.companion
        if wanted and self.prepared.action != REFRESH:
            return None
        if not wanted:
            self.companions.drop(root)
        elif self.prepared.companion_passed is not None:
            # somebody dropped or altered the table, or forgot where it is: registering makes it
            self.catalog.leave_consumers_behind(root.key)
        found = self.companions.create(root) if wanted else None
        # a quick refresh will take this for what it finds
        self.prepared.family = {**self.prepared.family, root.key: replace(root, companion=found)}
        self.prepared.companion_whole = wanted
        return found

    # --- refresh -----------------------------------------------------------------------------------------------------

    def refresh(self) -> Outcome:
        try:
            return self.follow()
        except StateChangedError:
            return self.build("its state was changed from outside", lost=True)

    def follow(self) -> Outcome:
        """Bring the view from its cursors to the versions pinned for this refresh."""
        cursors = {key: cursor.cursor for key, cursor in self.prepared.cursors.items()}
        states = self.states(cursors, self.prepared.family.values())
        rows = sum(state.inserts + state.deletes for state in states.values())
        if self.outline.clock:
            if CLOCK not in cursors:
                raise StateChangedError("the instant of its last refresh is not known")
            return self.follow_clock(states, cursors[CLOCK], rows)
        if not rows and not self.outline.volatile:
            return Outcome("none", None)
        strategy, reason = self.choose(states)
        changed = self.maintain(states, full=strategy == "full")
        self.advance(states)
        return Outcome(strategy, reason, rows, changed)

    def follow_clock(self, states: Sources, then: int, rows: int) -> Outcome:
        """The same for a view that reads the clock: what crossed its boundaries since the last refresh changed too.

        Where nothing did, nothing is written, and the next refresh looks at a longer time.
        """
        self.crossings = crossings = Crossings(self.runner, then, self.now)
        complete = crossings.find_early(self.plan.nodes, states)
        if complete and not rows + crossings.rows:
            crossings.clean_up()
            return Outcome("none", None)
        strategy, reason = self.choose(states, crossings.rows)
        states[CLOCK] = crossings.clock
        changed = self.maintain(states, full=strategy == "full")
        crossings.clean_up()
        if not rows and not self.touched:
            return Outcome("none", None)
        self.advance(states)
        return Outcome(strategy, reason, rows + crossings.rows, changed)

    def choose(self, states: Sources, crossed: int = 0) -> tuple[str, str | None]:
        """("incremental" or "full", why it is not an incremental refresh as any other)."""
        if self.way.full:
            return "full", self.way.reason
        strategy, reason = cost.choose(self.session, self.outline, self.prepared.spec.refresh_mode, states, crossed)
        return strategy, "; ".join(filter(None, (reason, self.way.reason))) or None

    def advance(self, _states: Sources) -> None:
        """Note that the view has consumed its sources up to the versions of this refresh."""
        clock = {CLOCK: self.now} if self.outline.clock else {}
        self.catalog.move_cursors(self.prepared.key, {**self.versions(), **clock})

    def maintain(self, states: Sources, full: bool) -> int | None:
        """Refresh every node in order; returns how many rows of the view itself changed, None if that is not known."""
        for node in self.plan.nodes:
            row = self.row_of(node)
            target = self.target(node, row, states)
            self.runner.changed = 0
            if self.crossings is not None and not full:
                self.crossings.find_late(node, states)
                states.update(self.crossings.states)
            steps = companion.full(node.program, states, target) if full else self.program(node, states, target)
            if steps:
                self.clean_logs(row, target)
                self.runner.run(steps)
                self.set_time(target)
                self.touch(row, target, self.catalog.count_rows(row))
            if node.number is not None:
                states[node_key(node.number)] = self.node_state(
                    row, target if steps else replace(target, version=row.version)
                )
        return None if full and not is_followed(target) else self.runner.changed

    def touch(self, row: ViewRow, target: Target, count: int) -> None:
        """Note that a node has changed, and how many rows its state has now."""
        log_start = row.log_start if target.publish else target.version
        self.touched[row.key] = self.catalog.touch_view(row, target.version, log_start, count)

    def program(self, node: PlanNode, states: Sources, target: Target) -> Sequence[Step]:
        """The incremental program of one node."""
        return companion.incremental(node.program, states, target)

    def target(self, node: PlanNode, row: ViewRow, states: Sources) -> Target:
        # A consumer that registers while this refresh runs finds out from `log_start` that it cannot follow.
        consumed = node.number is not None or self.prepared.passed is not None
        return Target(
            row.data.sql, row.visible.sql, row.log.sql, row.version + 1, consumed, row.columns,
            companion=None if node.number is not None else self.companion_rows(),
            apply_strategy=self.apply_strategy(node, row, states), batches=self.way.batches,
        )  # fmt: skip

    def apply_strategy(self, node: PlanNode, row: ViewRow, states: Sources) -> str:
        if self.way.sparing:
            return DELETE_INSERT
        return cost.apply_strategy(
            self.prepared.spec.apply_strategy, [states[key] for key in node.sources], row.row_count
        )

    def companion_rows(self) -> Companion | None:
        spec = self.prepared.spec
        if self.companion is None:
            return None
        net = spec.skip_empty_deltas or self.prepared.change_feed is not None
        return Companion(self.companion.sql, spec.name.name, net=net)

    def clean_logs(self, row: ViewRow, target: Target) -> None:
        """Remove what every consumer has passed; only this view's own refresh ever deletes from its logs."""
        if target.publish:
            passed = row.version if row.owner is not None else self.prepared.passed
            self.session.execute(f"DELETE FROM {row.log.sql} WHERE openivm_batch <= {passed}")
        if target.companion:
            consumed, feed = self.prepared.companion_passed, self.prepared.change_feed
            self.companions.clean(row, target.companion.table, consumed, feed, moment(self.clock))

    def set_time(self, target: Target) -> None:
        """Companion rows have the time of this engine's clock."""
        if self.clock is not None and target.companion is not None:
            self.companions.set_time(target.companion.table, target.version, moment(self.clock))

    def node_state(self, row: ViewRow, target: Target) -> SourceState:
        """An internal node as its reader sees it: its published delta is the batch just written."""
        [(_, inserts, deletes, unit, _later)] = self.session.execute(
            shape_query("", row.log.sql, row.version, target.version)
        )
        return SourceState(
            row.visible.sql, row.log.sql, row.version, target.version, int(inserts), int(deletes), False, bool(unit)
        )

    # --- build -------------------------------------------------------------------------------------------------------

    def build(self, reason: str | None, lost: bool = False) -> Outcome:
        """Build every node from its sources; publish the difference where consumers can follow it.

        Args:
            lost: whether the old rows are not what consumers have seen, so that they must rebuild too.
        """
        states = self.states(self.versions())
        if self.plan.clock:
            states[CLOCK] = clock_state(self.now, self.now)
        lost = lost or reason == DAMAGED
        for node in self.plan.nodes:
            row = self.build_node(node, states, lost)
            if node.number is not None:
                states[node_key(node.number)] = SourceState(row.visible.sql, row.log.sql, row.version, row.version)
        self.drop_leftovers()
        self.catalog.put_cursors(self.prepared.key, self.new_cursors())
        self.create_user_view()
        strategy = BUILD if self.prepared.action == BUILD else REBUILD
        if strategy == BUILD and self.plan.refresh_type == FULL_REFRESH:
            reason = self.plan.reason
        return Outcome(strategy, reason)

    def build_node(self, node: PlanNode, states: Sources, lost: bool) -> ViewRow:
        old = self.prepared.family.get(self.row_key(node))
        follows = old is not None and not lost and self.can_follow(old, node) and self.intact(old)
        row = self.new_row(node, old, keep_generation=follows)
        publishes = follows and node.number is None and self.prepared.passed is not None
        target = Target(
            row.data.sql, row.visible.sql, row.log.sql, row.version, publishes, self.plan.output,
            companion=self.companion_rows() if follows and node.number is None else None,
        )  # fmt: skip
        if is_followed(target):
            self.runner.run(companion.full(node.program, states, target, reshape=True))
            self.set_time(target)
        else:
            self.runner.run(publish.build(node.program, states, target))
        if not publishes:
            self.runner.run([Step("ivm_create_log", {"log": row.log.sql, "source": row.visible.sql}, "create the log")])
            row = replace(row, log_start=row.version)
        [(count,)] = self.session.execute(f"SELECT count(*) FROM {row.data.sql}")
        state = tuple(Column(r[0], r[1]) for r in self.session.execute(f"DESCRIBE {row.data.sql}"))
        row = replace(row, columns=self.columns_of(node, row), state=state, row_count=int(count))
        self.catalog.put_view(row)
        if node.number is None and self.prepared.keeps_companion and not target.companion:
            self.catalog.leave_consumers_behind(row.key)
            self.companions.create(row)
        return row

    def can_follow(self, old: ViewRow, node: PlanNode) -> bool:
        """Whether a consumer can take the difference of old and new rows: same columns."""
        return node.number is None and old.columns == self.plan.output

    def intact(self, old: ViewRow) -> bool:
        """Whether the old boundary still shows what consumers have seen, as far as can be told."""
        if not view_is_whole(old, self.catalog.columns_of(old.objects)):
            return False
        [(count,)] = self.session.execute(f"SELECT count(*) FROM {old.data.sql}")
        return bool(count == old.row_count)

    def new_row(self, node: PlanNode, old: ViewRow | None, keep_generation: bool) -> ViewRow:
        spec, made = self.prepared.spec, self.prepared.made
        is_root = node.number is None
        sources = [*self.plan.sources, *([CLOCK] if self.plan.clock else [])]
        data, visible, log = self.objects(node.number, old)
        return ViewRow(
            key=self.row_key(node),
            name=replace(spec.name, name=self.name_of(node.number)),
            owner=None if is_root else self.prepared.key,
            definition=spec.sql,
            fingerprint=self.plan.fingerprint,
            refresh_type=node.program.refresh_type,
            reason=self.plan.reason,
            data=data,
            visible=visible,
            log=log,
            columns=(),
            state=(),
            version=1 if old is None else old.version + 1,
            log_start=old.log_start if old else 0,
            generation=0 if old is None else old.generation + (0 if keep_generation else 1),
            row_count=0,
            digest=digest(spec.sql, self.prepared.facts) if is_root else None,
            types=types_to_json(made.types) if is_root else "[]",
            sources=json.dumps(sorted(sources)) if is_root else "[]",
            volatile=self.plan.volatile,
            project=spec.project,
            companion=None if old is None else old.companion,
            change_feed=self.prepared.change_feed if is_root else None,
            apply_strategy=spec.apply_strategy,
        )

    def name_of(self, number: int | None) -> str:
        name = self.prepared.spec.name.name
        return name if number is None else node_view(name, number)

    def objects(self, number: int | None, old: ViewRow | None) -> tuple[RelationName, RelationName, RelationName]:
        """State, boundary and change log of a node."""
        if old is not None:
            return old.data, old.visible, old.log
        name, schema = self.name_of(number), internal_schema(self.prepared.spec.name.schema)
        data, visible, log = (
            RelationName(self.catalog.database, schema, text)
            for text in (data_table(name), visible_view(name), delta_table(visible_view(name)))
        )
        return data, visible, log

    def columns_of(self, node: PlanNode, row: ViewRow) -> tuple[Column, ...]:
        """The visible columns as they came out.

        Raises:
            InternalError: they are not those of the user's query.
        """
        columns = tuple(Column(r[0], r[1]) for r in self.session.execute(f"DESCRIBE {row.visible.sql}"))
        if node.number is None and columns != self.plan.output:
            raise InternalError(f"The view {row.name} got the columns {columns} instead of {self.plan.output}.")
        return columns

    def drop_leftovers(self) -> None:
        """Nodes that the old plan had and the new one has not."""
        wanted = {self.row_key(node) for node in self.plan.nodes}
        gone = [row for key, row in self.prepared.family.items() if key not in wanted]
        drop_views(self.session, self.catalog, gone)

    def new_cursors(self) -> list[Cursor]:
        versions = self.versions()
        result = []
        for key, columns in self.plan.sources.items():
            parent = self.parents.get(key)
            generation = parent.generation if parent else self.prepared.sources[key].generation
            kind = VISIBLE if parent else BASE
            result.append(Cursor(self.prepared.key, key, kind, versions[key], generation, columns))
        return [*result, clock_cursor(self.prepared.key, self.now)] if self.plan.clock else result

    def create_user_view(self) -> None:
        columns = [quote(column.name) for column in self.outline.output]
        arguments = {"view": self.prepared.spec.name.sql, "source": self.visible_sql(), "columns": columns}
        self.runner.run([Step("ivm_create_view", arguments, "create the view")])

    # --- telling -----------------------------------------------------------------------------------------------------

    def row_key(self, node: PlanNode) -> str:
        return replace(self.prepared.spec.name, name=self.name_of(node.number)).key

    def row_of(self, node: PlanNode) -> ViewRow:
        return self.prepared.family[self.row_key(node)]

    def tell(self, outcome: Outcome) -> RefreshResult:
        spec = self.prepared.spec
        rows = None
        if outcome.strategy in ("build", "rebuild", "full"):
            [(rows,)] = self.session.execute(f"SELECT count(*) FROM {self.visible_sql()}")
        result = RefreshResult(
            str(spec.name), self.outline.refresh_type, outcome.strategy, outcome.reason, outcome.delta_rows,
            outcome.changed_rows, rows, (time.perf_counter() - self.prepared.started) * 1000,
        )  # fmt: skip
        if outcome.strategy != "none":
            self.catalog.record(self.prepared.key, result, spec.invocation, self.runner.timings)
        return replace(result, reason=result.reason and spec.locate(result.reason))

    def visible_sql(self) -> str:
        return self.objects(None, self.prepared.root)[1].sql


def is_followed(target: Target) -> bool:
    """Whether anybody reads how the view changed."""
    return target.publish or target.companion is not None


def drop_views(session: Session, catalog: Catalog, rows: Sequence[ViewRow]) -> None:
    """Drop the internal objects of views and forget them."""
    for row in rows:
        session.execute(f"DROP VIEW IF EXISTS {row.visible.sql}")
        session.execute(f"DROP TABLE IF EXISTS {row.data.sql}")
        session.execute(f"DROP TABLE IF EXISTS {row.log.sql}")
        if row.companion is not None:
            session.execute(f"DROP TABLE IF EXISTS {row.companion.sql}")
    if rows:
        catalog.delete_views([row.key for row in rows])

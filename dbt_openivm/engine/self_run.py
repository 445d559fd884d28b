"""The statements of a view that its caller runs: set-up and refresh, each marked with what it needs and changes.

Changes of a source lie in its log, whose rows are all of them the delta: whoever runs the statements puts them there,
and the refresh takes them out again. So no statement depends on a state that only a catalog would know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dbt_openivm.compiler import publish
from dbt_openivm.compiler.dialects.language import Language
from dbt_openivm.compiler.full import FullProgram
from dbt_openivm.compiler.grouped import GroupedProgram
from dbt_openivm.compiler.keyed import KeyedProgram
from dbt_openivm.compiler.plan import CODES, NodeProgram, PlanNode, RefreshPlan, Step, Target
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.compiler.split import node_key
from dbt_openivm.engine import effects
from dbt_openivm.engine.cost import recompute_reason
from dbt_openivm.engine.given_facts import (
    EMPTY,
    INSERT_ONLY,
    MIXED,
    SCHEMA_VERSION,
    GivenFacts,
    GivenTable,
    Name,
    key_of,
)
from dbt_openivm.engine.render import Renderer
from dbt_openivm.names import PREFIX, data_table, delta_table, dotted, node_view, quote, split_name, visible_view

Statement = dict[str, Any]
Answer = dict[str, Any]

SETUP, CAPTURE, CHECK, REFRESH, CLEANUP = "setup", "capture", "check", "refresh", "cleanup"
ROWS = {EMPTY: (0, 0), INSERT_ONLY: (1, 0), MIXED: (1, 1)}
"""Rows that a delta of each shape holds, as the rules ask for them: of positive and of negative weight, or none."""


def sql_of(name: Name) -> str:
    return ".".join(map(quote, name))


@dataclass
class SelfRun:
    """Attributes:
    reads: the relations that a query of a step reads.
    tables: what the query reads, by the key in the plan.
    full: whether the refresh computes the whole query.
    language: of the statements.
    temporary: the temporary tables that the statements so far have made.
    """

    reads: Callable[[str], set[Name]]
    plan: RefreshPlan
    given: GivenFacts
    tables: Mapping[str, GivenTable]
    renderer: Renderer
    full: bool
    language: Language = field(default_factory=Language)
    temporary: set[str] = field(default_factory=set)

    # --- names -------------------------------------------------------------------------------------------------------

    @cached_property
    def logs(self) -> dict[str, str]:
        """The change log of each table, by the table's label."""
        return {table.label: dotted(self.log_of(table)) for table in self.tables.values()}

    def log_of(self, table: GivenTable) -> Name:
        """Beside the table, so that its readers share it; beside the view if the table is of another database, which a
        transaction that writes the view could not write."""
        here, there = (name[0].lower() if len(name) == 3 else None for name in (self.given.view, table.name))
        if there in (None, here):
            return (*table.name[:-1], delta_table(table.name[-1]))
        return self.beside(delta_table(dotted(table.name)))

    def beside(self, name: str) -> Name:
        return (*self.given.view[:-1], name)

    def name_of(self, node: PlanNode) -> str:
        return self.given.view[-1] if node.number is None else node_view(self.given.view[-1], node.number)

    def target(self, node: PlanNode) -> Target:
        name = self.name_of(node)
        is_root = node.number is None
        published = self.given.cascade if is_root else not self.full
        objects = (data_table(name), visible_view(name), delta_table(name))
        data, visible, log = (sql_of(self.beside(one)) for one in objects)
        return Target(data, visible, log, 1, published, self.plan.output if is_root else ())

    def mark(self, text: str) -> str:
        """A relation of a statement as the answer names it."""
        name = tuple(split_name(text))
        known = {key_of(table.name): table.label for table in self.tables.values()}
        if key_of(name) in known:
            return known[key_of(name)]
        return dotted(("temp", *name)) if name[-1] in self.temporary and len(name) == 1 else dotted(name)

    def names(self) -> list[str]:
        """The last part of every name that it gives to an object."""
        names = [self.log_of(table)[-1] for table in self.tables.values()]
        for node in self.plan.nodes:
            name = self.name_of(node)
            names += [data_table(name), visible_view(name), delta_table(name)]
        return names

    # --- statements --------------------------------------------------------------------------------------------------

    def setup(self) -> list[Statement]:
        """Create the logs of the sources, and state, boundary and log of each node; the view itself comes last."""
        steps = [create_log(sql_of(self.log_of(table)), sql_of(table.name)) for table in self.tables.values()]
        made = [*self.marked(SETUP, self.cleared()), *self.marked(SETUP, steps)]
        states = {key: SourceState(sql_of(table.name)) for key, table in self.tables.items()}
        for node in self.plan.nodes:
            target = self.target(node)
            steps = publish.build(node.program, states, target)
            steps += self.language.built(target.data, key_columns(node.program))
            if target.publish:
                steps.append(create_log(target.log, target.visible))
            if node.number is None:
                columns = publish.column_list(node.program.visible_columns())
                arguments = {"view": sql_of(self.given.view), "source": target.visible, "columns": columns}
                steps.append(Step("ivm_create_view", arguments, "create the view"))
            else:
                states[node_key(node.number)] = SourceState(target.visible)
            made += self.marked(SETUP, steps, node)
        return made + self.marked(CAPTURE, [step for table in self.tables.values() for step in self.captured(table)])

    def cleared(self) -> list[Step]:
        """Drop what an earlier setup has left, what reads first."""
        targets = [self.target(node) for node in self.plan.nodes]
        views = [*(target.visible for target in targets), sql_of(self.given.view)]
        tables = [name for target in targets for name in (target.data, *([target.log] if target.publish else []))]
        logs = [sql_of(self.log_of(table)) for table in self.tables.values()]
        return self.language.cleared([*tables, *logs], views)

    def captured(self, table: GivenTable) -> list[Step]:
        log = self.log_of(table)
        names = {event: quote(f"{PREFIX}{event.lower()}") for event in ("INSERT", "UPDATE", "DELETE", "TRUNCATE")}
        names["function"] = sql_of((*log[:-1], f"{PREFIX}log_{log[-1].removeprefix(delta_table(''))}"))
        return self.language.captured(sql_of(table.name), sql_of(log), names, publish.column_list(list(table.columns)))

    def refresh(self) -> list[Statement]:
        """Check what was promised of the deltas, bring each node up to its sources, and empty the logs."""
        tables = self.tables.values()
        checks = [] if self.full else [self.check(table) for table in tables if table.shape != MIXED]
        made = self.marked(CHECK, [*self.language.promised(), *checks])
        states = {key: self.source_state(table) for key, table in self.tables.items()}
        for node in self.plan.nodes:
            target = self.target(node)
            if self.full:
                steps = publish.full(node.program, states, target)
            else:
                steps = list(node.program.incremental(states, target))
            if target.publish:
                steps.insert(0, clear(target.log, "forget what was published last"))
            made += self.marked(REFRESH, steps, node)
            if node.number is not None:
                inserts, deletes = ROWS[MIXED if len(steps) > 1 else EMPTY]
                states[node_key(node.number)] = SourceState(target.visible, target.log, 0, 1, inserts, deletes)
        used = [table for table in tables if table.shape != EMPTY or self.full]
        steps = [clear(sql_of(self.log_of(table)), f"forget the changes of {table.label}") for table in used]
        return [*made, *self.marked(CLEANUP, steps)]

    def source_state(self, table: GivenTable) -> SourceState:
        inserts, deletes = ROWS[table.shape]
        log = sql_of(self.log_of(table))
        return SourceState(
            sql_of(table.name), log, inserts=inserts, deletes=deletes, unit=table.shape == INSERT_ONLY, whole=True
        )

    def check(self, table: GivenTable) -> Step:
        arguments = {"log": sql_of(self.log_of(table)), "allowed": 1 if table.shape == INSERT_ONLY else None}
        label = f"check that the delta of {table.label} is {table.shape}"
        return Step("ivm_check_log", arguments, label, expect=0, returns=(f"{table.label} is not {table.shape}",))

    def marked(self, phase: str, steps: Iterable[Step], node: PlanNode | None = None) -> list[Statement]:
        if phase == REFRESH:
            steps = [part for step in steps for part in self.language.refreshing(step)]
        return [self.statement(phase, step, node) for step in steps]

    def statement(self, phase: str, step: Step, node: PlanNode | None) -> Statement:
        effect, changed = effects.effect_of(step), effects.changed(step)
        needed = list(effects.needed(step, lambda query: self.read_by(query, node)))
        if effect.kind == effects.CREATE_TEMPORARY and changed is not None:
            self.temporary.add(changed)
        # counts live within a node: two nodes may have steps of one name
        prefix = f"node {node.number}: " if node is not None and node.number is not None else ""
        return {
            "phase": phase,
            "kind": effect.kind,
            "label": prefix + step.label,
            "sql": self.renderer(step.macro, self.language.arguments(step, self.verbatim(node))),
            "needs": sorted(set(map(self.mark, needed))),
            "changes": [] if changed is None else [self.mark(changed)],
            "after": None if step.after is None else prefix + step.after,
            "returns": [prefix + name for name in step.returns],
            "expect": prefix + step.expect if isinstance(step.expect, str) else step.expect,
            "counts": step.counts and node is not None and node.number is None,
        }

    def read_by(self, query: str, node: PlanNode | None) -> set[str]:
        """The relations that a SELECT reads; of the user's own text the plan knows them, whatever it is."""
        if query == self.verbatim(node):
            return {sql_of(table.name) for table in self.tables.values()}
        return {sql_of(name) for name in self.reads(query)}

    def verbatim(self, node: PlanNode | None) -> str | None:
        """The user's own text, where it is a query of the node's steps."""
        return node.program.state_query({}) if node is not None and isinstance(node.program, FullProgram) else None


def key_columns(program: NodeProgram) -> list[str]:
    """The columns of a state by which its rows are found; none where there are no such."""
    if isinstance(program, GroupedProgram | KeyedProgram):
        return publish.column_list(list(program.key_columns.values()))
    return []


def create_log(log: str, source: str) -> Step:
    return Step("ivm_create_log", {"log": log, "source": source}, f"create the log of {dotted(split_name(source))}")


def clear(log: str, label: str) -> Step:
    return Step("ivm_clear_log", {"log": log}, label)


def cheaper(tables: Iterable[GivenTable]) -> str | None:
    """Why a recompute is cheaper, by the statistics; None if it is not, or where a size is not known."""
    rows, changes = 0, 0
    for table in tables:
        if table.rows is None:
            return None
        rows, changes = rows + table.rows, changes + (table.changes or 0)
    return recompute_reason(changes, rows)


def answer(program: SelfRun, reason: str | None) -> Answer:
    refresh_type = program.plan.refresh_type
    return {
        "schema_version": SCHEMA_VERSION,
        "view": dotted(program.given.view),
        "refresh_type": {"code": CODES[refresh_type], "name": refresh_type},
        "strategy": "full" if program.full else "incremental",
        "reason": reason,
        "logs": program.logs,
        "setup": program.setup(),
        "statements": program.refresh(),
    }

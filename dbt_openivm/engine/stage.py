"""The names behind a plan, for `explain`: those in the catalog, or those that a first build would choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbt_openivm.compiler.explain import Stage
from dbt_openivm.compiler.facts import VISIBLE, Column, CompileFacts, Relation
from dbt_openivm.compiler.plan import Companion, RefreshPlan, Target
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.engine.bases import Bases, Need, base_of
from dbt_openivm.engine.catalog import SourceRow, ViewRow, companion_passed, passed
from dbt_openivm.engine.cost import apply_strategy
from dbt_openivm.engine.prepare import relation_name
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.names import RelationName, data_table, delta_table, internal_schema, node_view, visible_view

WORDS = {
    "diff": "diff: compares the source with a kept copy of these columns",
    "trigger": "trigger: whoever writes the table logs the change",
}


class Staging:
    """Finds the names of one view's objects.

    Args:
        views: the catalog's views by key, empty without a catalog.
        known: the captured sources by key.
    """

    def __init__(self, bases: Bases, views: Mapping[str, ViewRow], known: Mapping[str, SourceRow]) -> None:
        self.bases = bases
        self.views = views
        self.known = known

    def stage(self, spec: ViewSpec, plan: RefreshPlan, facts: CompileFacts) -> Stage:
        here = spec.name.database.lower()
        names = {key: shown_key(key, here) for key in plan.sources}
        captures, states = {}, {}
        for key, columns in plan.sources.items():
            relation = facts.relations[key]
            if relation.kind == VISIBLE:
                parent = self.views[key]
                captures[key] = "none: this ivm_view has a change log of its own"
                states[key] = imagined(parent.visible.sql, parent.log.sql)
            else:
                captures[key], states[key] = self.base(spec, relation, columns)
        return Stage(
            shown_key(spec.name.key, here), spec.origin, names, captures, states,
            lambda number: self.target(spec, number, plan.output), spec.locate,
        )  # fmt: skip

    def base(self, spec: ViewSpec, relation: Relation, columns: tuple[Column, ...]) -> tuple[str, SourceState]:
        """How a base is or would be captured, and its state."""
        row = self.known.get(relation.key)
        need = Need(
            relation.key, relation.sql, relation_name(relation.sql), columns, relation.columns,
            spec.captures.get(relation.key), spec.capture, None, None, 0,
        )  # fmt: skip
        if row is None:
            kind, base = self.bases.choose(need, columns)
            current = self.bases.capture(kind).current(base)
            return f"{WORDS[kind]}, from the first run on", imagined(current, base.objects["delta"].sql)
        words = WORDS[row.capture]
        if need.wanted not in (None, row.capture):
            words += f"; from the next run on {need.wanted}"
        current = self.bases.capture(row.capture).current(base_of(row, need.relation))
        return words, imagined(current, row.objects["delta"].sql)

    def target(self, spec: ViewSpec, number: int | None, output: tuple[Column, ...]) -> Target:
        view = spec.name
        name = view if number is None else replace(view, name=node_view(view.name, number))
        row = self.views.get(name.key)
        data, visible, log = row.objects if row else proposed(name)
        strategy = apply_strategy(spec.apply_strategy, [], row.row_count if row else 0)
        if number is not None:
            return Target(data.sql, visible.sql, log.sql, 2, publish=True, apply_strategy=strategy)
        cursors = self.bases.catalog.cursors() if self.views else []
        companion = None
        feed = row.change_feed if row and spec.change_feed is None else spec.change_feed
        if spec.force_view_delta_cascade or feed or companion_passed(cursors, view.key) is not None:
            table = row.companion if row else None
            table = table or RelationName(data.database, data.schema, delta_table(view.name))
            companion = Companion(table.sql, view.name, spec.skip_empty_deltas or bool(feed))
        consumed = passed(cursors, view.key) is not None
        return Target(data.sql, visible.sql, log.sql, 2, consumed, output, companion=companion, apply_strategy=strategy)


def proposed(view: RelationName) -> tuple[RelationName, RelationName, RelationName]:
    schema = internal_schema(view.schema)
    names = (data_table(view.name), visible_view(view.name), delta_table(visible_view(view.name)))
    data, visible, log = (RelationName(view.database, schema, name) for name in names)
    return data, visible, log


def imagined(current: str, log: str) -> SourceState:
    """A source whose delta holds inserted and deleted rows."""
    return SourceState(current, log, 1, 2, 1, 1)


def shown_key(key: str, database: str) -> str:
    """A relation's key without the database that everything is in."""
    return key.removeprefix(f"{database}.") if key.count(".") == 2 else key

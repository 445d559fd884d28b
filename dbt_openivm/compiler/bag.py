"""Maintain a bag of rows (SIMPLE_PROJECTION): the state is the visible rows themselves, duplicates and all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import OuterJoin, Project, SemiJoin, shared_operators
from dbt_openivm.compiler.constraints import unique_keys
from dbt_openivm.compiler.facts import Column
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.keys import row_keys, row_outputs
from dbt_openivm.compiler.plan import OUTER_JOIN, SEMI_ANTI_RECOMPUTE, SIMPLE_PROJECTION, Step, Target
from dbt_openivm.compiler.program import ViewProgram
from dbt_openivm.compiler.publish import column_list, drop, dropped, filled
from dbt_openivm.compiler.rules import Context, SourceState, delta, new
from dbt_openivm.names import MULTIPLICITY

DELTA = "openivm_delta"


@dataclass(frozen=True, eq=False)
class BagProgram(ViewProgram):
    """Attributes:
    node: without aggregate.
    names: the visible columns as the user sees them, in order.
    types: their types, empty where unknown. Rows are told apart by them: DuckDB calls values equal that a query can
        tell apart, such as 30 days and 1 month.
    """

    types: tuple[str, ...] = ()

    @property
    def refresh_type(self) -> str:
        kinds = {type(operator) for operator in self.node.core.walk()}
        if SemiJoin in kinds:
            return SEMI_ANTI_RECOMPUTE
        return OUTER_JOIN if OuterJoin in kinds else SIMPLE_PROJECTION

    def state_query(self, states: Mapping[str, SourceState]) -> str:
        context = Context(states, bag=True)
        return sql.text(sql.union_all([self.rows(fragment) for fragment in new(self.node.core, context)]))

    def rows(self, fragment: Fragment, weighted: bool = False) -> exp.Select:
        return fragment.select(self.items_over(fragment), weighted)

    def incremental(self, states: Mapping[str, SourceState], target: Target) -> list[Step]:
        context = Context(states, shared=shared_operators(self.node.core))
        fragments = delta(self.node.core, context)
        if not fragments:
            return []
        return [*filled(context), *self.changes(states, fragments, target), *dropped(context)]

    def changes(self, states: Mapping[str, SourceState], fragments: list[Fragment], target: Target) -> list[Step]:
        unweighted = all(fragment.weight is None for fragment in fragments)
        if unweighted and not target.publish:
            query = sql.text(sql.union_all([self.rows(fragment) for fragment in fragments]))
            return [
                Step(
                    "ivm_insert_rows",
                    {"target": target.data, "columns": column_list(self.names), "query": query},
                    "insert the new rows",
                    counts=True,
                )
            ]
        return self.consolidated(states, fragments, target)

    def consolidated(self, states: Mapping[str, SourceState], fragments: list[Fragment], target: Target) -> list[Step]:
        """Consolidate the delta per row, delete -n copies, insert +n copies."""
        query = sql.text(sql.union_all([self.rows(fragment, weighted=True) for fragment in fragments]))
        columns = column_list(self.names)
        shared = {"delta": DELTA, "columns": columns, "weight": f'"{MULTIPLICITY}"'}
        outputs, keys, _ = self.comparison(target)
        steps = [
            Step(
                "ivm_consolidate", {**shared, "query": query, "outputs": outputs, "keys": keys}, "consolidate the delta"
            ),
            Step("ivm_count_copies", shared, "count the changes", returns=("deletions", "insertions")),
            *self.apply(states, shared, target),
        ]
        if target.publish:
            steps.append(
                Step(
                    "ivm_publish_delta",
                    {**shared, "log": target.log, "version": target.version},
                    "publish the delta",
                    after="consolidate the delta",
                )
            )
        return [*steps, drop(DELTA)]

    def apply(self, states: Mapping[str, SourceState], shared: Mapping[str, object], target: Target) -> list[Step]:
        if self.hides_rowid and self.key is None:
            return self.recomputed(states, target)
        return self.changed_copies(shared, target)

    @cached_property
    def key(self) -> tuple[str, ...] | None:
        """Visible columns in which no two rows are equal, if any such are known."""
        items = Project(self.node.core, self.node.items)
        columns = dict(zip(items.columns, self.names, strict=True))
        return next((tuple(columns[name] for name in key) for key in unique_keys(items) if key), None)

    @property
    def hides_rowid(self) -> bool:
        """Whether a visible column has the name by which DuckDB calls its row numbers."""
        return any(name.lower() == "rowid" for name in self.names)

    def recomputed(self, states: Mapping[str, SourceState], target: Target) -> list[Step]:
        """Without row numbers, some of several copies of a row cannot be deleted."""
        return [
            Step("ivm_create_state", {"target": target.data, "query": self.state_query(states)}, "recompute the state")
        ]

    def changed_copies(self, shared: Mapping[str, object], target: Target) -> list[Step]:
        macro = "ivm_delete_copies" if self.key is None else "ivm_delete_keyed"
        _, _, same = self.comparison(target, self.key)
        return [
            Step(
                macro,
                {**shared, "target": target.data, "same": same},
                "delete vanished rows",
                after="deletions",
                counts=True,
                expect="deletions",
            ),
            Step(
                "ivm_insert_copies",
                {**shared, "target": target.data},
                "insert new rows",
                after="insertions",
                counts=True,
            ),
        ]

    def comparison(self, target: Target, key: tuple[str, ...] | None = None) -> tuple[list[str], list[str], list[str]]:
        """What a consolidated row shows, what rows are grouped by, when a row of the state is one of the delta.

        Args:
            key: the columns that say the last, if not all of them are needed.
        """
        types = self.types or ("",) * len(self.names)
        columns = target.columns or tuple(map(Column, self.names, types))
        told = [column for column in columns if key is None or column.name in key]
        pairs = zip(row_keys(told, "t."), row_keys(told, "d."), strict=True)
        return row_outputs(columns), row_keys(columns), [f"{held} IS NOT DISTINCT FROM {gone}" for held, gone in pairs]

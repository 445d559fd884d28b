"""Maintain a bag of rows (SIMPLE_PROJECTION): the state is the visible rows themselves, duplicates and all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import OuterJoin, SemiJoin, shared_operators
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
            *(self.recomputed(states, target) if self.hides_rowid else self.changed_copies(shared, target)),
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
        _, _, same = self.comparison(target)
        return [
            Step(
                "ivm_delete_copies",
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

    def comparison(self, target: Target) -> tuple[list[str], list[str], list[str]]:
        """What a consolidated row shows, what rows are grouped by, when a row of the state is one of the delta."""
        types = self.types or ("",) * len(self.names)
        columns = target.columns or tuple(map(Column, self.names, types))
        pairs = zip(row_keys(columns, "t."), row_keys(columns, "d."), strict=True)
        return row_outputs(columns), row_keys(columns), [f"{held} IS NOT DISTINCT FROM {gone}" for held, gone in pairs]

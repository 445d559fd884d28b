"""Maintain an operator whose rows of a key depend on input rows of that key only: recompute the touched keys.

Old rows are read from the state, never computed again: where a window's order leaves ties, two computations may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Asof, Keyed, column, shared_operators
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.plan import ASOF_JOIN, WINDOW_PARTITION, Step, Target
from dbt_openivm.compiler.program import ViewProgram
from dbt_openivm.compiler.publish import column_list, drop, dropped, filled, told_apart
from dbt_openivm.compiler.rules import Context, SourceState, delta, keyed_rows, new
from dbt_openivm.names import quote

AFFECTED = "openivm_affected"


@dataclass(frozen=True, eq=False)
class KeyedProgram(ViewProgram):
    """Attributes:
    node: with a `Keyed` operator at its top.
    names: the visible columns as the user sees them, in order.
    """

    @property
    def refresh_type(self) -> str:
        return ASOF_JOIN if isinstance(self.operator, Asof) else WINDOW_PARTITION

    @property
    def operator(self) -> Keyed:
        assert isinstance(self.node.top, Keyed)
        return self.node.top

    @cached_property
    def key_columns(self) -> dict[str, str]:
        """key -> the state's column that holds it: a visible one if there is one."""
        return {
            key: self.shown_columns.get(value.name, key) if isinstance(value, exp.Column) else key
            for key, value in zip(self.operator.key_names, self.operator.held_keys, strict=True)
        }

    @property
    def hidden_keys(self) -> list[str]:
        return [key for key, held in self.key_columns.items() if held == key]

    @property
    def state_columns(self) -> list[str]:
        return [*self.names, *self.hidden_keys]

    # --- rows ------------------------------------------------------------------------------------------------------

    def state_query(self, states: Mapping[str, SourceState]) -> str:
        return self.rows(Context(states, bag=True), restrict=False)

    def rows(self, context: Context, restrict: bool) -> str:
        """The rows of the state, computed from the sources; `restrict` keeps those of the affected keys only."""
        inputs = [new(core, context) for core in self.node.cores]
        if restrict and self.operator.key_names:
            pairs = zip(inputs, self.operator.input_keys, strict=True)
            inputs = [[self.restricted(fragment, keys, context) for fragment in core] for core, keys in pairs]
        rows = keyed_rows(self.operator, inputs, context)
        items = self.items_over(rows)
        items += [sql.named(rows.bind(column(key)), key) for key in self.hidden_keys]
        conditions = [] if self.node.having is None else [rows.bind(self.node.having)]
        return sql.text(rows.select(items, extra=conditions))

    def restricted(self, fragment: Fragment, keys: tuple[exp.Expr, ...], context: Context) -> Fragment:
        alias = context.alias("affected")
        same = [
            sql.null_safe_equal(fragment.bind(value), sql.qualified(alias, name))
            for name, value in zip(self.operator.key_names, keys, strict=True)
        ]
        return Fragment(
            (*fragment.sources, sql.table(AFFECTED, alias)), (*fragment.conditions, *same), fragment.columns
        )

    # --- programs --------------------------------------------------------------------------------------------------

    def incremental(self, states: Mapping[str, SourceState], target: Target) -> list[Step]:
        context = Context(states, shared=shared_operators(*self.node.cores))
        deltas = [delta(core, context) for core in self.node.cores]
        if not any(deltas):
            return []
        keys = [(quote(self.key_columns[key]), quote(key)) for key in self.operator.key_names]
        affected = AFFECTED if keys else None
        steps = filled(context) if keys else []
        if keys:
            query = sql.text(self.touched(deltas))
            steps.append(Step("ivm_keep_query", {"name": AFFECTED, "query": query}, "find the affected keys"))
        held = {"affected": affected, "keys": keys, "having": None}
        rows = {"source": target.data, "columns": column_list(self.names), **held}
        if target.publish:
            steps.append(Step("ivm_keep_rows", {"name": target.old, **rows}, "keep the old rows"))
        query = self.rows(Context(states, bag=True), restrict=True)
        steps += [
            Step("ivm_delete_affected", {"target": target.data, **held}, "delete the rows of the affected keys"),
            Step(
                "ivm_insert_rows",
                {"target": target.data, "columns": column_list(self.state_columns), "query": query},
                "recompute the affected keys",
                counts=True,
            ),
        ]
        if target.publish:
            compared = {"rows": told_apart(self.names, target)}
            difference = {"log": target.log, "old": target.old, "version": target.version, **rows, **compared}
            steps += [Step("ivm_publish", difference, "publish the changed rows"), drop(target.old)]
        return [*steps, *([drop(AFFECTED), *dropped(context)] if keys else [])]

    def touched(self, deltas: list[list[Fragment]]) -> exp.Expr:
        """The keys of all changed rows, once each."""
        selects = []
        for fragments, keys in zip(deltas, self.operator.input_keys, strict=True):
            for fragment in fragments:
                pairs = zip(self.operator.key_names, keys, strict=True)
                selects.append(fragment.select([sql.named(fragment.bind(value), name) for name, value in pairs]))
        names = [column(name) for name in self.operator.key_names]
        rows = sql.derived(sql.union_all(selects), "openivm_rows")
        return sql.select(names, [rows], group=[name.copy() for name in names])

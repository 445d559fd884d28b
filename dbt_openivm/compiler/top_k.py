"""Maintain ORDER BY .. LIMIT: the state is the bag of all rows, the boundary shows the first ones.

A row that leaves the first k makes room for the next one, which only the other rows can tell. The order is completed by
all columns (see `TopK`), so that the boundary is the same whenever it is read, and what is published agrees with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import TopK, column
from dbt_openivm.compiler.bag import BagProgram
from dbt_openivm.compiler.plan import TOP_K, Step, Target
from dbt_openivm.compiler.program import ViewProgram
from dbt_openivm.compiler.publish import column_list, drop, told_apart
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.compiler.rules.top_k import first_rows


@dataclass(frozen=True, eq=False)
class TopKProgram(ViewProgram):
    """Attributes:
    node: with a `TopK` at its top.
    names: the visible columns as the user sees them, in order.
    """

    refresh_type = TOP_K

    @property
    def operator(self) -> TopK:
        assert isinstance(self.node.top, TopK)
        return self.node.top

    @property
    def rows(self) -> BagProgram:
        """The program of the state: all rows."""
        columns = self.operator.child.columns
        node = replace(self.node, top=None, items=tuple((name, column(name)) for name in columns), having=None)
        return BagProgram(node, columns, self.operator.types or ())

    def state_query(self, states: Mapping[str, SourceState]) -> str:
        return self.rows.state_query(states)

    def shown(self, data: str) -> str:
        items = [sql.named(value.copy(), name) for name, value in self.visible_items]
        conditions = [] if self.node.having is None else [self.node.having.copy()]
        source = sql.table(f"({first_rows(self.operator, data)})", "openivm_rows")
        return f"({sql.text(sql.select(items, [source], conditions))}) AS openivm_first"

    def incremental(self, states: Mapping[str, SourceState], target: Target) -> list[Step]:
        steps = self.rows.incremental(states, replace(target, publish=False, columns=()))
        if not steps or not target.publish:
            return steps
        shown = {
            "source": target.visible,
            "columns": column_list(self.names),
            "affected": None,
            "keys": [],
            "having": None,
        }
        compared = {"rows": told_apart(self.names, target)}
        difference = {"log": target.log, "old": target.old, "version": target.version, **shown, **compared}
        return [
            Step("ivm_keep_rows", {"name": target.old, **shown}, "keep the old rows"),
            *steps,
            Step("ivm_publish", difference, "publish the changed rows"),
            drop(target.old),
        ]

"""What the programs of all nodes share but that of a full refresh: a node, and the names that users see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.plan import NodeProgram
from dbt_openivm.compiler.split import Node


@dataclass(frozen=True, eq=False)
class ViewProgram(NodeProgram):
    """Attributes:
    node: what is maintained.
    names: the visible columns as the user sees them, in order.
    """

    node: Node
    names: tuple[str, ...]

    def visible_columns(self) -> tuple[str, ...]:
        return self.names

    @property
    def visible_items(self) -> list[tuple[str, exp.Expr]]:
        """(visible column, its value over the columns of the node's operator)."""
        return [(name, value) for name, (_, value) in zip(self.names, self.node.items, strict=True)]

    @cached_property
    def shown_columns(self) -> dict[str, str]:
        """Column of the node's operator -> the visible column that is nothing else."""
        return {value.name: name for name, value in self.visible_items if isinstance(value, exp.Column)}

    def items_over(self, rows: Fragment) -> list[exp.Expr]:
        """The visible columns over rows of the node's operator."""
        return [sql.named(rows.bind(value), name) for name, value in self.visible_items]

"""A refresh as data: a plan holds nodes, a node's program holds steps, a step names one macro and its arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_openivm import choices
from dbt_openivm.compiler.algebra import Temporal
from dbt_openivm.compiler.facts import Column
from dbt_openivm.compiler.rules import SourceState

SIMPLE_PROJECTION = "SIMPLE_PROJECTION"
SIMPLE_AGGREGATE = "SIMPLE_AGGREGATE"
AGGREGATE_GROUP = "AGGREGATE_GROUP"
AGGREGATE_HAVING = "AGGREGATE_HAVING"
GROUP_RECOMPUTE = "GROUP_RECOMPUTE"
DISTINCT_INCREMENTAL = "DISTINCT_INCREMENTAL"
WINDOW_PARTITION = "WINDOW_PARTITION"
SEMI_ANTI_RECOMPUTE = "SEMI_ANTI_RECOMPUTE"
OUTER_JOIN = "OUTER_JOIN"
ASOF_JOIN = "ASOF_JOIN"
TOP_K = "TOP_K"
RECURSIVE = "RECURSIVE"
RECURSIVE_RECOMPUTE = "RECURSIVE_RECOMPUTE"
FULL_REFRESH = "FULL_REFRESH"

CODES = {
    AGGREGATE_GROUP: 0, SIMPLE_AGGREGATE: 1, SIMPLE_PROJECTION: 2, FULL_REFRESH: 3, AGGREGATE_HAVING: 4,
    WINDOW_PARTITION: 5, GROUP_RECOMPUTE: 6, TOP_K: 7, DISTINCT_INCREMENTAL: 8, SEMI_ANTI_RECOMPUTE: 9,
    OUTER_JOIN: 100, ASOF_JOIN: 101, RECURSIVE: 102, RECURSIVE_RECOMPUTE: 103,
}  # fmt: skip
"""Numbers of the refresh types for other programs, never to be changed: to 9 those of OpenIVM, from 100 on our own."""


@dataclass(frozen=True)
class Step:
    """One statement of a program.

    Attributes:
        macro: the macro that writes the statement.
        arguments: what the macro reads.
        label: what the statement does, for people and for `after`.
        after: name of an earlier count (the label of a step, or one of its `returns`); this step is skipped if it is
            zero.
        counts: whether the rows it touches are the view's changed rows.
        expect: how many rows it must touch, as a number or the name of an earlier count; anything else means that the
            state was changed from outside. None where any number is right.
        returns: names of the counts in the one row that the statement returns; empty for a statement that changes rows.
    """

    macro: str
    arguments: Mapping[str, Any]
    label: str
    after: str | None = None
    counts: bool = False
    expect: int | str | None = None
    returns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Companion:
    """The companion rows that a refresh writes: signed old and new rows of the view, for readers outside the catalog.

    Attributes:
        table: `openivm_delta_<view>`, as SQL.
        view: the view's bare name; temporary tables are named after it.
        net: whether rows are added up by tuple, so that an unchanged result leaves none (`openivm_skip_empty_deltas`).
    """

    table: str
    view: str
    net: bool = False


@dataclass(frozen=True)
class Target:
    """The objects of a node, as SQL, at one refresh.

    Attributes:
        data: the state table.
        visible: the boundary view.
        log: the boundary's change log.
        version: the batch under which this refresh publishes.
        publish: whether anyone consumes the boundary's delta.
        columns: the visible columns; empty where their types are not known yet.
        old: the temporary table in which a program keeps old rows.
        companion: the companion rows to write; None where nobody wants them.
        split: whether each statement may run in a session of its own, which no temporary table outlives. Aggregates
            do without, unless a join below needs one; others do not.
        apply_strategy: how groups take their delta; a key of `STRATEGIES`. The state is the same under all.
        batches: the parts in which they take it, one after the other: less memory, more time.
    """

    data: str
    visible: str
    log: str
    version: int
    publish: bool
    columns: tuple[Column, ...] = ()
    old: str = "openivm_old"
    companion: Companion | None = None
    split: bool = False
    apply_strategy: str = choices.MERGE
    batches: int = 1


class NodeProgram(ABC):
    """How one node is built and refreshed. Subclasses are the refresh types' programs; building steps has no side
    effects."""

    @property
    @abstractmethod
    def refresh_type(self) -> str:
        """How the node is maintained, in a word of the constants above."""

    @abstractmethod
    def state_query(self, states: Mapping[str, SourceState]) -> str:
        """The whole state, computed from the sources."""

    @abstractmethod
    def incremental(self, states: Mapping[str, SourceState], target: Target) -> list[Step]:
        """The steps that bring the state from the cursors to the versions."""

    @abstractmethod
    def visible_columns(self) -> tuple[str, ...]:
        """The columns that users see, in order."""

    def shown(self, data: str) -> str:
        """What stands in FROM for the rows among which `having_column` chooses the visible ones: the state itself."""
        return data

    @property
    def having_column(self) -> str | None:
        """A boolean column of the state that says which rows are visible; None if all are."""
        return None


@dataclass(frozen=True)
class PlanNode:
    """One view to maintain: the model itself (`number` None) or an internal node.

    Attributes:
        sources: keys of what it reads.
        program: how it is maintained.
        moving: its operators that read the clock, by number.
    """

    number: int | None
    sources: tuple[str, ...]
    program: NodeProgram
    moving: Mapping[int, Temporal] = field(default_factory=dict)


@dataclass(frozen=True)
class RefreshPlan:
    """How a view is maintained.

    Attributes:
        refresh_type, reason: of the model itself; `reason` says why it is FULL_REFRESH, else None.
        nodes: in refresh order; the model itself comes last.
        sources: the columns used of every source, by its key (internal nodes excluded).
        output: names and types of the visible columns.
        fingerprint: changes when the view must be rebuilt: another query, other used columns, another compiler.
        volatile: whether the result may change without a change of data.
    """

    refresh_type: str
    reason: str | None
    nodes: tuple[PlanNode, ...]
    sources: Mapping[str, tuple[Column, ...]]
    output: tuple[Column, ...]
    fingerprint: str
    volatile: bool = False

    @property
    def clock(self) -> bool:
        """Whether it changes as time passes, and by which rows is known."""
        return any(node.moving for node in self.nodes)

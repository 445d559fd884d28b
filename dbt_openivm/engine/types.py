"""What callers hand to the engine and get back: plain data, shared by the engine API and the dbt adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from dbt_openivm.choices import AUTO
from dbt_openivm.names import RelationName

REFRESH_MODES = ("auto", "incremental", "strict", "full")
CAPTURES = ("diff", "trigger")


@dataclass(frozen=True)
class ViewSpec:
    """A view as its author wrote it.

    Args:
        name: where users query the view.
        sql: the SELECT, compiled (no Jinja left).
        refresh_mode: one of `REFRESH_MODES`.
        full_refresh: rebuild even if nothing changed.
        capture: the capture of bases that `captures` does not name; one of `CAPTURES`.
        captures: capture per base, keyed by `RelationName.key` (lower case ``database.schema.name``).
        invocation: bases are captured once per invocation (a dbt run); None captures on every refresh.
        origin: where the query stands (a file path), for messages.
        project: the dbt project whose model it is.
        force_view_delta_cascade: whether companion rows are kept even if no consumer of them is registered: those of
            the last refresh.
        skip_empty_deltas: whether companion rows are added up by tuple, so that an unchanged result leaves none.
        apply_strategy: how groups take their delta; one of `APPLY_STRATEGIES`. Kept with the view.
        change_feed: how long the changes of the view stay readable (see `choices.is_retention`), False for no change
            feed, None for what the view has.
        locate: puts places in the user's files for lines of `sql` in a reason.
    """

    name: RelationName
    sql: str
    refresh_mode: str = "auto"
    full_refresh: bool = False
    capture: str = "diff"
    captures: Mapping[str, str] = field(default_factory=dict)
    invocation: str | None = None
    origin: str | None = None
    project: str | None = None
    force_view_delta_cascade: bool = False
    skip_empty_deltas: bool = False
    apply_strategy: str = AUTO
    change_feed: str | Literal[False] | None = None
    locate: Callable[[str], str] = field(default=str, compare=False)


@dataclass(frozen=True)
class ViewInfo:
    """A view after it was created: `sources` are the relations it reads, as ``database.schema.name``."""

    name: str
    refresh_type: str
    reason: str | None
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Consumer:
    """A registered consumer of a view's companion rows.

    Attributes:
        view: ``database.schema.name`` in lower case.
        table: what it reads, as SQL: the view's columns, `openivm_multiplicity` (signed number of copies),
            `openivm_timestamp`, and `openivm_batch`.
        cursor: it has acknowledged the batches up to this one.
        version: the last batch; its next rows are those after `cursor` up to this one.
        complete: whether all rows since `cursor` are there; else it has missed some, and must start anew.
        snapshot: whether it has yet to read the whole view.
        lag: what it has not acknowledged; None where some of that is lost.
    """

    name: str
    view: str
    table: str
    cursor: int
    version: int
    complete: bool
    snapshot: bool = False
    lag: Lag | None = None


@dataclass(frozen=True)
class Lag:
    """How far a consumer is behind its view.

    Attributes:
        batches: refreshes whose changes it has not acknowledged.
        rows: their companion rows.
        since: when the oldest of these refreshes was; None without any.
        seconds: how long ago that is.
    """

    batches: int
    rows: int
    since: datetime | None
    seconds: float


@dataclass(frozen=True)
class Changes:
    """What a consumer reads next.

    Attributes:
        sql: a SELECT of the view's columns, then `openivm_multiplicity` (signed number of copies), `openivm_batch` and
            `openivm_timestamp`. It fails, naming the remedy, if not all rows are there any more when it is run.
        columns: the view's columns.
        after: the batch after which it reads; 0 for a snapshot.
        version: the batch up to which it reads, to be acknowledged once its rows are safe.
        snapshot: whether the rows are those of the whole view at `version`: the consumer's copy must be empty.
    """

    sql: str
    columns: tuple[str, ...]
    after: int
    version: int
    snapshot: bool


@dataclass(frozen=True)
class RefreshResult:
    """What one refresh did.

    Attributes:
        refresh_type: how the view is maintained, such as AGGREGATE_GROUP.
        strategy: "build", "rebuild", "incremental", "full" or "none" (no source changed, nothing was written).
        reason: why the view was rebuilt or refreshed in full; of an incremental refresh, why it was not done as usual.
        delta_rows: rows of the sources' deltas that were read.
        changed_rows: rows of the view's state that were written: for groups every touched one, even if it came out the
            same; None where that was not measured (build, full).
        rows: rows of the view; None where they were not counted.
        ms: milliseconds spent in the refresh, without dbt.
    """

    name: str
    refresh_type: str
    strategy: str
    reason: str | None
    delta_rows: int
    changed_rows: int | None
    rows: int | None
    ms: float

    @property
    def message(self) -> str:
        """The facts of this refresh in one line, as dbt prints them (dbt appends the time)."""
        if self.strategy == "none":
            return f"{self.refresh_type}: no change"
        if self.strategy == "incremental":
            changed = "" if self.changed_rows is None else f", {_count(self.changed_rows)} changed"
            reason = f"; {self.reason}" if self.reason else ""
            return f"{self.refresh_type} incremental: {_count(self.delta_rows, 'change')} in{changed}{reason}"
        rows = "" if self.rows is None else f"; {_count(self.rows)}"
        if self.strategy == "build":
            reason = f" ({self.reason})" if self.reason else ""
            return f"{self.refresh_type} built{reason}{rows}"
        if self.strategy == "rebuild":
            return f"rebuilt: {self.reason}{rows}"
        full = "" if self.refresh_type == "FULL_REFRESH" else " full"
        return f"{self.refresh_type}{full}: {self.reason}{rows}"


def _count(number: int, thing: str = "row") -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"

"""The ways to do a refresh: as it was asked for, and what comes after a failure.

A refresh that runs out of memory is done again with less of it: by one thread, without keeping rows in order, and the
deltas of groups in batches, each by the strategy that needs the least. Then the view is recomputed, at last without the
difference for those who read its changes; they build themselves anew.

Where the program of a view fails on values that its query does not meet, it is recomputed too: a program computes a
group's columns from its delta, and near the limits of a type this may overflow where the query does not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

from dbt_openivm.engine.session import Session

Result = TypeVar("Result")

BATCHES = 16
FAILED = "the incremental refresh failed"
_SPARING = threading.Lock()


@dataclass(frozen=True)
class Way:
    """How a refresh is done.

    Attributes:
        reason: what went wrong before; None for a refresh as it was asked for.
        sparing: whether it must do with little memory.
        full: whether it recomputes, whatever would be cheaper.
        rebuild: whether it starts anew, and so do its consumers.
    """

    reason: str | None = None
    sparing: bool = False
    full: bool = False
    rebuild: bool = False

    @property
    def batches(self) -> int:
        """The parts in which groups take their delta."""
        return BATCHES if self.sparing else 1


ASKED = Way()


def in_some_way(
    session: Session, refresh_mode: str, damaged: Callable[[], bool], attempt: Callable[[Way], Result]
) -> Result:
    """Refresh as asked; after a failure in another way, if there is one.

    Args:
        session: without an open transaction after `attempt` failed.
        refresh_mode: of the view.
        damaged: whether no way can help, because of what somebody else did.
        attempt: a refresh in a transaction of its own.

    Raises:
        Exception: what the last attempt raised.
    """
    way = ASKED
    while True:
        try:
            with saving_memory(session) if way.sparing else nullcontext():
                return attempt(way)
        except Exception as error:
            following = next_way(way, error, refresh_mode)
            if following is None or damaged():
                raise
            way = following


def next_way(way: Way, error: Exception, refresh_mode: str) -> Way | None:
    """What to do after a failure; None if somebody stopped it, or nothing is left to try."""
    if way.rebuild or "duckdb" not in type(error).__module__ or type(error).__name__ == "InterruptException":
        return None
    said = str(error).splitlines()[0]
    if not is_out_of_memory(error):
        fails_by_itself = way.full or refresh_mode != "auto"
        return None if fails_by_itself else Way(f"{FAILED} ({said})", way.sparing, full=True)
    if not way.sparing:
        return Way(f"done again with less memory ({said})", sparing=True, full=way.full)
    if refresh_mode == "strict":
        return None
    if not way.full:
        return Way(f"too little memory to apply the change ({said})", sparing=True, full=True)
    return Way(f"too little memory to tell others what changed ({said})", sparing=True, full=True, rebuild=True)


def is_out_of_memory(error: Exception) -> bool:
    """A commit that runs out of memory fails as a transaction that cannot be committed."""
    return "OutOfMemory" in type(error).__name__ or "Out of Memory" in str(error)


@contextmanager
def saving_memory(session: Session) -> Iterator[None]:
    """Have DuckDB do with less memory, one refresh at a time: the settings are those of the whole process.

    Where the configuration is locked it stays as it is.
    """
    names = ("threads", "external_threads", "preserve_insertion_order", "lock_configuration")
    with _SPARING:
        asked = ", ".join(f"current_setting('{name}')" for name in names)
        [(threads, external, order, locked)] = session.execute(f"SELECT {asked}")
        if locked:
            yield
            return
        set_memory_use(session, external, False)
        try:
            yield
        finally:
            set_memory_use(session, threads, order)


def set_memory_use(session: Session, threads: int, order: bool) -> None:
    session.execute(f"SET GLOBAL threads = {threads}")
    session.execute(f"SET GLOBAL preserve_insertion_order = {order}")

"""Python's cycle collector, kept out of a compilation.

A compilation makes some hundred thousand small objects that live for a few milliseconds. Their number sets off full
collections, each of which looks at everything that dbt and sqlglot have loaded: half of the time of a compilation.
"""

from __future__ import annotations

import gc
from contextlib import ContextDecorator
from threading import Lock
from types import TracebackType


class _Pause(ContextDecorator):
    """The collector waits, if it runs at all, until the last of the blocks (or calls) that ask for it has ended."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting = 0
        self._was_running = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._waiting:
                self._was_running = gc.isenabled()
                gc.disable()
            self._waiting += 1

    def __exit__(self, *_error: type[BaseException] | BaseException | TracebackType | None) -> None:
        with self._lock:
            self._waiting -= 1
            if not self._waiting and self._was_running:
                gc.enable()


collector_paused = _Pause()
"""Of this process, as the collector is."""

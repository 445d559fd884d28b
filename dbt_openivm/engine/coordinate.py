"""What the threads of one process must agree on: locks, pinned versions, what an invocation has captured.

DuckDB lets one process write a database, so agreement within the process is enough. A `Coordinator` belongs to a
database, not to a
connection: it is found by the identity that the catalog holds.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

_COORDINATORS: dict[str, Coordinator] = {}
_GUARD = threading.Lock()


@dataclass
class Coordinator:
    """Attributes:
    lock: held while bases are captured and objects are created: one at a time.
    pins: refresh under way -> source key -> version it will read from; log rows after it must stay.
    captured: invocation -> source key -> version captured in it.
    epoch: raised whenever views or captures come, go or change their shape.
    turns: view key -> number of its refreshes in this process.
    causes: source key -> (the generation that its capture began in this process, why).
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    pins: dict[int, Mapping[str, int]] = field(default_factory=dict)
    captured: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    epoch: int = 0
    turns: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    causes: dict[str, tuple[int, str]] = field(default_factory=dict)
    _views: dict[str, threading.Lock] = field(default_factory=dict)

    def view_lock(self, key: str) -> threading.Lock:
        """One refresh of a view at a time."""
        with _GUARD:
            return self._views.setdefault(key, threading.Lock())

    def lowest_pin(self, source_key: str) -> int | None:
        return min((pin[source_key] for pin in self.pins.values() if source_key in pin), default=None)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with self.lock:
            yield


def coordinator(identity: str) -> Coordinator:
    """The coordinator of the database with this identity."""
    with _GUARD:
        return _COORDINATORS.setdefault(identity, Coordinator())

"""How tests are shared between processes (`--dist loadfile` in the Makefile).

A file's tests share its fixtures in one process; each of the fuzzer's goes where there is room. The slow files come
first and the fuzzer last, so that no process is left alone with a long one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

SLOW = ("packaging", "integration", "slow")
FUZZ = "tests/property/test_fuzz.py"


class Scheduling(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.startswith(FUZZ) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: 0 if has_mark(item, SLOW) else 2 if has_mark(item, ("fuzz",)) else 1)


def has_mark(item: pytest.Item, names: Iterable[str]) -> bool:
    return any(item.get_closest_marker(name) is not None for name in names)

"""The fuzzer with fixed seeds: thousands of refreshes, each compared with a recompute.

Split into parameters so that pytest-xdist can share the work. `python -m tests.property.fuzz` goes beyond.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.property.fuzz import Options, fuzz_one

pytestmark = pytest.mark.fuzz

CASES = int(os.environ.get("OPENIVM_FUZZ_CASES", "200"))
BATCH = 10


@pytest.mark.parametrize("first", range(0, CASES, BATCH))
def test_every_refresh_equals_the_recompute(first: int, tmp_path: Path) -> None:
    options = Options(
        seconds=0,
        seed=first,
        cases=BATCH,
        jobs=1,
        capture=None,
        shrink_seconds=45,
        keep_going=False,
        out=tmp_path,
    )
    refreshes = 0
    for seed in range(first, first + BATCH):
        _, report, found = fuzz_one(seed, options)
        if found:
            pytest.fail(found, pytrace=False)
        refreshes += sum(report.refreshes.values())
    assert refreshes > BATCH

"""TPC-H on little data: every query stays exact, and publishes what changed. `make tpc` runs both suites on more."""

from __future__ import annotations

import pytest

from benchmarks.tpc import report, tools
from benchmarks.tpc.run import Options, Run
from benchmarks.tpc.suites import TPCH

#: Queries that were incremental once, and must stay so.
INCREMENTAL = set(range(1, 23))


@pytest.mark.slow
def test_tpch_is_exact() -> None:
    try:
        tools.data(TPCH.name, 0.01)
    except tools.NotAvailableError as error:
        pytest.skip(f"the generator of TPC-H cannot be had: {error}")
    seen = Run(TPCH, Options(scale_factor=0.01, rounds=2, chained=True)).all()
    assert report.problems(seen) == ""
    assert len(seen) == 22
    lost = INCREMENTAL - {one.number for one in seen if one.incremental}
    assert not lost, report.reasons(seen)

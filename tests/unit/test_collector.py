"""The cycle collector waits for compilations, and runs again after the last of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from dbt_openivm.engine.collector import collector_paused


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.isenabled()
    yield
    (gc.enable if before else gc.disable)()


def test_it_waits_until_the_last_block_has_ended() -> None:
    gc.enable()
    with collector_paused:
        with collector_paused:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_runs_again_after_an_error() -> None:
    gc.enable()
    with pytest.raises(ValueError, match="query"), collector_paused:
        raise ValueError("query")
    assert gc.isenabled()


def test_what_the_user_has_switched_off_stays_off() -> None:
    gc.disable()
    with collector_paused:
        assert not gc.isenabled()
    assert not gc.isenabled()

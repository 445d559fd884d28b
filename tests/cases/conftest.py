"""A world a capture: every case runs once with each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers import World, connect, has_triggers


@pytest.fixture(params=["diff", "trigger"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "trigger" and not has_triggers():
        pytest.skip("triggers need DuckDB 2")
    with connect() as connection:
        yield World(connection, request.param)

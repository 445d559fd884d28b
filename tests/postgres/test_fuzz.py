"""A few random views with fixed seeds; `python -m tests.postgres.fuzz` tries as many as there is time for."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres.fuzz import Tally, try_case


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(16))
def test_random_views_follow_their_tables(con: psycopg.Connection, seed: int) -> None:
    tally = Tally()
    try_case(con, f"quick:{seed}", tally)
    assert tally.refreshes + tally.failing + tally.invalid > 0

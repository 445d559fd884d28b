"""A change feed against the truth: replayed on a copy it gives exactly the view, for every refresh type."""

from __future__ import annotations

import pytest

from dbt_openivm import IvmEngine
from tests.companions.views import ROUNDS, VIEWS, create_tables
from tests.feeds.copies import assert_equal, not_net, replay
from tests.helpers import connect

FED = (
    "sums", "hidden_key", "shown_groups", "total", "median", "distinct_rows", "ranked", "left_joined", "first_rows",
    "reached", "projected", "nested", "any_rows",
)  # fmt: skip


@pytest.mark.parametrize("view", FED)
def test_replaying_gives_the_view(view: str) -> None:
    """One consumer from now on reads every round, one begins with a snapshot and reads every third."""
    with connect() as connection:
        create_tables(connection)
        ivm = IvmEngine(connection)
        ivm.create_view(view, VIEWS[view][1], change_feed=True)
        connection.execute(f"CREATE TABLE fast AS FROM {view}")
        connection.execute(f"CREATE TABLE slow AS FROM {view} LIMIT 0")
        ivm.register_consumer(view, "fast")
        ivm.register_consumer(view, "slow", snapshot=True)
        for number, statements in enumerate(ROUNDS):
            for statement in statements:
                connection.execute(statement)
            ivm.refresh(view)
            for consumer in ("fast", "slow") if number % 3 == 1 else ("fast",):
                changes = ivm.changes(view, consumer)
                assert changes.snapshot == (consumer == "slow" and number == 1)
                replay(connection, changes, consumer)
                assert_equal(connection, consumer, view)
                assert not not_net(connection)
                told = ivm.acknowledge(view, consumer, changes.version)
                assert told.lag is not None
                assert (told.lag.batches, told.lag.rows, told.lag.since) == (0, 0, None)

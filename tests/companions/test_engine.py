"""Companion rows of every refresh type, over rounds of changes: they are exactly how the view changed."""

from __future__ import annotations

import pytest

from dbt_openivm import IvmEngine
from tests.companions.bags import assert_transition, cancelling
from tests.companions.views import ROUNDS, VIEWS, create_tables
from tests.helpers import assert_view_is_exact, connect

RELATIVE = ("AGGREGATE_GROUP", "AGGREGATE_HAVING")
CHILD_FROM = len(ROUNDS) // 2


def rows_after(view: str, batch: int) -> str:
    return f"SELECT * FROM openivm_main.openivm_delta_{view} WHERE openivm_batch > {batch}"


@pytest.mark.parametrize("view", VIEWS)
def test_a_consumer_sees_how_the_view_changed(view: str) -> None:
    """Alone and beside a view that reads the boundary; every other round net; acknowledged once in a while."""
    refresh_type, query = VIEWS[view]
    with connect() as connection:
        create_tables(connection)
        ivm = IvmEngine(connection)
        assert ivm.create_view(view, query).refresh_type == refresh_type
        consumer = ivm.register_consumer(view, "reader")
        connection.execute(f"CREATE TEMP TABLE seen AS FROM {view}")
        for number, statements in enumerate(ROUNDS):
            if number == CHILD_FROM:
                ivm.create_view("child", f"SELECT * FROM {view}")
            connection.execute(f"CREATE OR REPLACE TEMP TABLE old AS FROM {view}")
            for statement in statements:
                connection.execute(statement)
            [before] = ivm.consumers(view)
            ivm.skip_empty_deltas = bool(number % 2)
            ivm.refresh(view)
            if refresh_type != "FULL_REFRESH":
                assert_view_is_exact(connection, view, query)
            assert_transition(connection, "old", rows_after(view, before.version), view)
            assert_transition(connection, "seen", rows_after(view, consumer.cursor), view)
            if ivm.skip_empty_deltas or refresh_type not in RELATIVE:
                assert not cancelling(connection, rows_after(view, before.version))
            if number >= CHILD_FROM:
                assert ivm.refresh("child").strategy in ("incremental", "none")
                assert_view_is_exact(connection, "child", f"SELECT * FROM {view}")
            if number % 3 == 1:
                consumer = ivm.acknowledge(view, "reader", ivm.consumers(view)[0].version)
                connection.execute(f"CREATE OR REPLACE TEMP TABLE seen AS FROM {view}")

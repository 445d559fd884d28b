"""How much is in change logs and states: queries that a refresh asks in one statement for all of them."""

from __future__ import annotations

from dbt_openivm.engine.catalog import ViewRow
from dbt_openivm.engine.runner import StateChangedError
from dbt_openivm.names import literal


def shape_query(key: str, log: str, cursor: int, version: int) -> str:
    """One row (key, rows inserted, rows deleted, all weights are one, rows after the version)."""
    inside = f"openivm_batch > {cursor} AND openivm_batch <= {version}"
    return (
        f"SELECT {literal(key)}, count(*) FILTER (WHERE {inside} AND openivm_multiplicity > 0), "
        f"count(*) FILTER (WHERE {inside} AND openivm_multiplicity < 0), "
        f"coalesce(bool_and(abs(openivm_multiplicity) = 1) FILTER (WHERE {inside}), true), "
        f"count(*) FILTER (WHERE openivm_batch IS NULL OR openivm_batch > {version}) FROM {log}"
    )


def count_query(row: ViewRow) -> str:
    """One row like `shape_query`'s without a key: (rows of a state, rows it should have)."""
    return f"SELECT NULL, count(*), {row.row_count}, true, 0 FROM {row.data.sql}"


def check_count(found: int, expected: int) -> None:
    if found != expected:
        raise StateChangedError(f"{found} rows instead of {expected}")

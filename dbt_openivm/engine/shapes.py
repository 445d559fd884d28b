"""What internal objects look like: other columns than these mean that somebody altered them by hand."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_openivm.compiler.facts import Column
from dbt_openivm.engine.catalog import SourceRow, ViewRow
from dbt_openivm.names import BATCH, MULTIPLICITY, TIMESTAMP

Shapes = Mapping[str, tuple[Column, ...]]
"""Columns of tables and views by `RelationName.key`."""

LOG = (Column(MULTIPLICITY, "BIGINT"), Column(TIMESTAMP, "TIMESTAMP"), Column(BATCH, "BIGINT"))
BUCKETS = (
    Column("openivm_bucket", "BIGINT"),
    Column("openivm_rows", "BIGINT"),
    Column("openivm_fingerprint", "HUGEINT"),
    Column("openivm_buckets", "BIGINT"),
    Column("openivm_version", "VARCHAR"),
)
NO_COLUMNS = (Column("openivm_row", "BOOLEAN"),)
"""The kept copy of a source of which only the number of rows is read."""


def view_is_whole(row: ViewRow, found: Shapes) -> bool:
    """Whether state, boundary and change log of a view are there, as its last refresh left them."""
    return (
        found.get(row.data.key) == row.state
        and found.get(row.visible.key) == row.columns
        and found.get(row.log.key) == (*row.columns, *LOG)
    )


def companion_is_whole(row: ViewRow | None, found: Shapes) -> bool:
    """Whether the table of a view's companion rows is there, with the columns of the view."""
    if row is None or row.companion is None:
        return False
    return found.get(row.companion.key) == (*row.columns, *LOG)


def source_is_whole(row: SourceRow, found: Shapes) -> bool:
    """Whether the tables of a capture are there, with the columns that it gave them."""
    log = found.get(row.objects["delta"].key, ())
    columns, own = log[: -len(LOG)], log[-len(LOG) :]
    if own != LOG or [c.name for c in columns] != [c.name for c in row.columns]:
        return False
    expected = {"copy": columns or NO_COLUMNS, "buckets": BUCKETS}
    if "copy" not in row.objects and columns != row.columns:
        return False
    return all(found.get(name.key) == expected[role] for role, name in row.objects.items() if role != "delta")

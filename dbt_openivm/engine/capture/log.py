"""What the captures share: the change log and the parts of their SQL."""

from __future__ import annotations

from dbt_openivm.engine.capture.base import Base
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.session import Session
from dbt_openivm.names import RelationName, literal, quote

#: the time in UTC, whatever the time zone of the session, and without the ICU extension
TIMESTAMP_SQL = "make_timestamp(epoch_us(now()))"


def quoted_columns(base: Base) -> list[str]:
    return [quote(column.name) for column in base.columns]


def create_log(session: Session, render: Renderer, base: Base, source: str) -> None:
    """Create the empty change log of `base` with the types of `source` (SQL for FROM)."""
    arguments = {"log": base.objects["delta"].sql, "columns": quoted_columns(base), "source": source}
    session.execute(render("ivm_capture_log", arguments))


def widen_log(session: Session, render: Renderer, base: Base, wider: Base, source: str) -> None:
    """Give the change log of `base` the columns of `wider`, typed as in `source`; NULL in rows that are there."""
    had = {column.name.lower() for column in base.columns}
    arguments = {
        "log": base.objects["delta"].sql,
        "columns": quoted_columns(wider),
        "added": [quote(column.name) for column in wider.columns if column.name.lower() not in had],
        "source": source,
    }
    session.execute(render("ivm_capture_log_widen", arguments))


def drop_table(session: Session, table: RelationName) -> None:
    session.execute(f"DROP TABLE IF EXISTS {table.sql}")


def is_relation(table: RelationName, kind: str) -> str:
    """The condition that a row of duckdb_<kind>s() describes `table`. Names compare without case, as DuckDB does."""
    names = {"database_name": table.database, "schema_name": table.schema, f"{kind}_name": table.name}
    return " AND ".join(f"lower({column}) = {literal(name.lower())}" for column, name in names.items())

"""What a database must offer before state can be kept in it."""

from __future__ import annotations

from dbt_openivm.engine.session import Session
from dbt_openivm.errors import ConfigError
from dbt_openivm.names import literal

#: The first version with MERGE INTO.
OLDEST_DUCKDB = (1, 4)


def duckdb_version(session: Session) -> tuple[int, int]:
    """Major and minor version of the DuckDB behind a session; (0, 0) for a development build."""
    text = str(session.execute("SELECT library_version FROM pragma_version()")[0][0])
    parts = text.lstrip("v").split(".")
    return (int(parts[0]), int(parts[1])) if parts[0].isdigit() and len(parts) > 1 else (0, 0)


def check_writable(session: Session, database: str) -> None:
    """Refuse a database in which the state of a view cannot be kept.

    Raises:
        ConfigError: with what the database is, and what to do.
    """
    version = duckdb_version(session)
    if (0, 0) < version < OLDEST_DUCKDB:
        raise ConfigError(
            f"DuckDB {version[0]}.{version[1]} is too old for ivm_view: it has no MERGE INTO. "
            "Install 1.4 or newer (`pip install --upgrade duckdb`)."
        )
    rows = session.execute(
        f"SELECT type, readonly FROM duckdb_databases() WHERE lower(database_name) = lower({literal(database)})"
    )
    kind, readonly = rows[0] if rows else ("unknown", False)
    if kind != "duckdb":
        raise ConfigError(
            f"The database '{database}' is of type '{kind}': the state of an ivm_view can only be kept in a DuckDB "
            "database file. Set `database` of this model to an attached one, or use `materialized: table`. "
            "A view may read its sources from any database."
        )
    if readonly:
        raise ConfigError(
            f"The database '{database}' is attached read-only, and an ivm_view keeps its state beside the view. "
            "Attach it writable, or set `database` of this model to one that is."
        )

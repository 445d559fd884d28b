"""Macros that take the place of DuckDB's own functions: the SQL of refreshes would call them instead."""

from __future__ import annotations

from dbt_openivm.engine.session import Session
from dbt_openivm.errors import UnsafeError
from dbt_openivm.names import literal

NAMES = """
    abs any_value avg bool_and bool_or contains count current_database current_schema current_setting duckdb_columns
    duckdb_databases duckdb_extensions duckdb_functions duckdb_schemas duckdb_tables duckdb_triggers duckdb_types
    duckdb_views encode epoch_us greatest hash isfinite isnan json_deserialize_sql json_serialize_plan
    json_serialize_sql least len list lower make_timestamp max min now pow pragma_version range row_number signbit sqrt
    starts_with substr sum txid_current unnest upper variant_to_parquet_variant variant_typeof version
"""
#: what our own SQL calls; queries of users may call what they like
CALLED = frozenset(NAMES.split())


def check_functions(session: Session, database: str) -> None:
    """Refuse macros under the names of functions that refreshes call, where an unqualified name finds them.

    Raises:
        UnsafeError: which, and what to do.
    """
    rows = session.execute(
        "SELECT DISTINCT database_name, schema_name, function_name FROM system.main.duckdb_functions() "
        f"WHERE NOT internal AND system.main.lower(function_name) IN ({', '.join(map(literal, sorted(CALLED)))}) "
        f"AND (database_name = 'temp' OR database_name = {literal(database)} "
        "AND schema_name IN ('main', system.main.current_schema())) ORDER BY ALL"
    )
    if rows:
        names = ", ".join(f"{schema}.{name}()" for _, schema, name in rows)
        raise UnsafeError(
            f"The macro {names} has the name of a function of DuckDB that refreshes call, and would be called instead. "
            "Nothing was changed. Give it another name (DROP MACRO, CREATE MACRO), or move it to another schema."
        )

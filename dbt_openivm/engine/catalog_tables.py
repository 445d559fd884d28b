"""The catalog's tables: the schema `openivm` of the database that holds the views.

`openivm_views` has one row a view (internal nodes included), `openivm_sources` one row a captured base,
`openivm_delta_tables` one row a (view, source) cursor, `openivm_refresh_history` one row a refresh. No keys and no
indexes: rows are written by one transaction a view, and DuckDB conflicts only where the same row is written twice.
"""

from __future__ import annotations

import re

#: Raised when the layout below changes; a database with another number is refused with a message.
CATALOG_VERSION = 4

TABLES: dict[str, str] = {
    "openivm_catalog": """
        version INTEGER,
        identity VARCHAR         -- of this database, whatever path it is opened by: names its process-wide lock
    """,
    "openivm_views": """
        view_key VARCHAR,        -- database.schema.name in lower case
        view_database VARCHAR, view_schema VARCHAR, view_name VARCHAR,
        owner VARCHAR,           -- for an internal node: the view_key it belongs to
        definition VARCHAR,      -- the query as its author wrote it
        fingerprint VARCHAR,     -- of compiler version, normalised query and columns: another one means a rebuild
        refresh_type VARCHAR, reason VARCHAR,
        internal_schema VARCHAR, data_table VARCHAR, visible_view VARCHAR, delta_table VARCHAR,
        columns VARCHAR,         -- JSON: [[name, type], ...] of the visible rows
        state VARCHAR,           -- JSON: [[name, type], ...] of the state table; others: altered by hand
        version BIGINT,          -- raised by every refresh that changed the view for a consumer; its delta's batch
        log_start BIGINT,        -- the change log is complete for batches after this one
        generation BIGINT,       -- raised when consumers cannot follow by delta (other columns)
        row_count BIGINT,        -- rows of the state after the last refresh; another number means it was edited by hand
        digest VARCHAR,          -- of the query and all facts behind the plan; NULL for a node
        types VARCHAR,           -- JSON: DuckDB's answers to the compiler's probes
        sources VARCHAR,         -- JSON: keys of the sources: as many cursors must be there
        volatile BOOLEAN,        -- whether the result may change without a change of data
        project VARCHAR,         -- the dbt project whose model it is; NULL for one made with the engine API
        companion_table VARCHAR, -- in internal_schema; NULL while nobody wants companion rows
        apply_strategy VARCHAR,  -- as its author wants it: auto, or one by name
        change_feed VARCHAR,     -- how long its changes are kept; NULL without a change feed
        created_at TIMESTAMP,
        refreshed_at TIMESTAMP   -- when the version was raised; later refreshes are in the history
    """,
    "openivm_sources": """
        source_key VARCHAR,      -- database.schema.name in lower case, or the text of a table function
        from_sql VARCHAR,
        capture VARCHAR,
        objects VARCHAR,         -- JSON: role -> [database, schema, name]
        columns VARCHAR,         -- JSON: [[name, type], ...] of the captured columns
        version BIGINT,          -- last captured batch
        log_start BIGINT,        -- the change log is complete for batches after this one
        generation BIGINT        -- raised when changes may have been missed: consumers rebuild
    """,
    "openivm_delta_tables": """
        view_key VARCHAR,        -- of a view; for source_kind companion and snapshot, the name of a consumer
        source_key VARCHAR,      -- of a base, or view_key of a parent or node
        source_kind VARCHAR,     -- base, visible, node, clock, companion, snapshot
        cursor BIGINT,           -- the view has consumed the batches up to this one
        generation BIGINT,
        columns VARCHAR          -- JSON: [[name, type], ...] that the view uses
    """,
    "openivm_refresh_history": """
        view_key VARCHAR, started_at TIMESTAMP, invocation VARCHAR,
        refresh_type VARCHAR, strategy VARCHAR, reason VARCHAR,
        delta_rows BIGINT, changed_rows BIGINT, row_count BIGINT, ms DOUBLE,
        steps VARCHAR            -- JSON: [[step, ms], ...]
    """,
}


def declared(columns: str) -> tuple[tuple[str, str], ...]:
    """(name, type) of the columns that a text of `TABLES` declares.

    Example:
        >>> declared("version INTEGER, identity VARCHAR -- of this database")
        (('version', 'INTEGER'), ('identity', 'VARCHAR'))
    """
    found = re.findall(r"(\w+) ([A-Z]+)", re.sub(r"--.*", "", columns))
    return tuple((name, type_) for name, type_ in found)


SHAPES = {name: declared(columns) for name, columns in TABLES.items()}

"""A database file that was copied or renamed: its catalog still calls it by its old name.

DuckDB names a database after its file. Keys in the catalog, internal views and triggers hold that name, so in a copy
nothing fits: views cannot be read, and tables with triggers cannot be written. Here the catalog takes the new name, and
captures are forgotten; the next refresh of each view then rebuilds it, with its boundary, its view and its triggers.
"""

from __future__ import annotations

from dbt_openivm.engine.catalog import IS_OUTSIDE, MISSED, Catalog
from dbt_openivm.engine.session import Session
from dbt_openivm.names import RelationName, literal


def old_names(session: Session, catalog: Catalog) -> list[str]:
    """The names under which this database maintained views, other than its present one."""
    rows = session.execute(
        f"SELECT DISTINCT view_database FROM {catalog.table('openivm_views')} "
        f"WHERE lower(view_database) <> {literal(catalog.database.lower())}"
    )
    return [str(row[0]) for row in rows]


def adopt(session: Session, catalog: Catalog, old: str) -> None:
    """Give the catalog the database's present name, inside the caller's open transaction."""
    for source in catalog.sources().values():
        for name in source.objects.values():
            here = RelationName(catalog.database, name.schema, name.name)
            session.execute(f"DROP TABLE IF EXISTS {here.sql} CASCADE")  # with its triggers
    session.execute(f"DELETE FROM {catalog.table('openivm_sources')}")
    session.execute(f"DELETE FROM {catalog.table('openivm_delta_tables')} WHERE NOT {IS_OUTSIDE}")
    renamed = "CASE WHEN starts_with({column}, {before}) THEN {after} || substr({column}, {length}) ELSE {column} END"
    before, after = f"{old.lower()}.", f"{catalog.database.lower()}."

    def rename(column: str) -> str:
        value = renamed.format(column=column, before=literal(before), after=literal(after), length=len(before) + 1)
        return f"{column} = {value}"

    session.execute(
        f"UPDATE {catalog.table('openivm_views')} SET {rename('view_key')}, {rename('owner')}, "
        f"view_database = {literal(catalog.database)}"
    )
    session.execute(f"UPDATE {catalog.table('openivm_refresh_history')} SET {rename('view_key')}")
    # whoever consumes companion rows may go on with the original: here it must start anew
    session.execute(f"UPDATE {catalog.table('openivm_delta_tables')} SET {rename('source_key')}, generation = {MISSED}")

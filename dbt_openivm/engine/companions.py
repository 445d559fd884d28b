"""The tables of companion rows, `openivm_delta_<view>`: when they are there, and when their rows go.

A table is there while a consumer is registered, the view has a change feed, or a refresh was told to keep companion
rows anyway. Rows go once all consumers have acknowledged them; those of a change feed also when they are older than its
retention, and then whoever has not acknowledged them is told.
"""

from __future__ import annotations

from dbt_openivm.choices import FOREVER
from dbt_openivm.compiler.plan import Step
from dbt_openivm.engine.bases import free_name
from dbt_openivm.engine.catalog import ALL, Catalog, ViewRow
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.runner import Runner
from dbt_openivm.engine.session import Session
from dbt_openivm.names import RelationName, delta_table, literal


class Companions:
    """Works inside the caller's open transaction; changes need the coordinator's lock and the view's."""

    def __init__(self, session: Session, catalog: Catalog, render: Renderer) -> None:
        self.session = session
        self.catalog = catalog
        self.render = render

    def create(self, view: ViewRow) -> RelationName:
        """Make an empty table of companion rows, in place of the one that the view has. Its boundary must be there."""
        name = view.companion
        if name is None:
            name = RelationName(self.catalog.database, view.data.schema, self.free_name(view))
            self.catalog.set_companion(view.key, name.name)
        arguments = {"log": name.sql, "source": view.visible.sql}
        Runner(self.session, self.render).run([Step("ivm_create_log", arguments, "create the companion table")])
        return name

    def free_name(self, view: ViewRow) -> str:
        rows = self.session.execute(
            f"SELECT lower(table_name) FROM duckdb_tables() WHERE database_name = {literal(self.catalog.database)} "
            f"AND lower(schema_name) = lower({literal(view.data.schema)})"
        )
        return free_name(delta_table(view.name.name), {row[0] for row in rows})

    def drop(self, view: ViewRow) -> None:
        if view.companion is not None:
            self.session.execute(f"DROP TABLE IF EXISTS {view.companion.sql}")
            self.catalog.set_companion(view.key, None)

    # --- rows --------------------------------------------------------------------------------------------------------

    def clean(self, view: ViewRow, table: str, consumed: int | None, change_feed: str | None, moment: str) -> None:
        """Remove what nobody needs any more, before the rows of another refresh come.

        Args:
            consumed: the batch that all consumers which can follow have passed, `ALL` if none can, None without
                consumers.
            change_feed: the retention of the view's change feed, None if it has none.
            moment: SQL of what time it is.
        """
        if consumed is None and change_feed is None:
            consumed = view.version
        if consumed == ALL and change_feed is not None:
            consumed = None  # all have missed changes: as if there were none
        if consumed is not None:
            self.session.execute(f"DELETE FROM {table} WHERE openivm_batch <= {consumed}")
        if change_feed is not None and change_feed != FOREVER:
            self.expire(view.key, table, f"{moment} - INTERVAL {literal(change_feed)}")

    def expire(self, key: str, table: str, oldest: str) -> None:
        """Remove the batches before all those that are young enough, and tell the consumers that needed them.

        Clocks may go backwards, batches do not: what is kept has no gap.
        """
        young = f"SELECT min(openivm_batch) FROM {table} WHERE openivm_timestamp >= {oldest}"
        [(expired,)] = self.session.execute(
            f"SELECT max(openivm_batch) FROM {table} WHERE openivm_batch < coalesce(({young}), {ALL})"
        )
        if expired is not None:
            self.session.execute(f"DELETE FROM {table} WHERE openivm_batch <= {expired}")
            self.catalog.leave_consumers_behind(key, expired)

    def set_time(self, table: str, batch: int, moment: str) -> None:
        """Say when a refresh was, where that is not what DuckDB's clock says."""
        self.session.execute(f"UPDATE {table} SET openivm_timestamp = {moment} WHERE openivm_batch = {batch}")

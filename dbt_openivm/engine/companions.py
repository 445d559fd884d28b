"""The tables of companion rows, `openivm_delta_<view>`, and who consumes them.

A table is there while a consumer is registered, or a refresh was told to keep companion rows anyway. Consumers stand
in `openivm_delta_tables` beside the views that read boundaries; each says itself how far it has come.
"""

from __future__ import annotations

from dataclasses import replace

from dbt_openivm.compiler.plan import Step
from dbt_openivm.engine.bases import free_name
from dbt_openivm.engine.catalog import COMPANION, Catalog, Cursor, ViewRow
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.runner import Runner
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.types import Consumer
from dbt_openivm.errors import ConfigError, QueryError
from dbt_openivm.names import RelationName, delta_table, literal


class Companions:
    """Works inside the caller's open transaction; changes need the coordinator's lock and the view's."""

    def __init__(self, session: Session, catalog: Catalog, render: Renderer) -> None:
        self.session = session
        self.catalog = catalog
        self.render = render

    # --- tables ------------------------------------------------------------------------------------------------------

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

    # --- consumers ---------------------------------------------------------------------------------------------------

    def register(self, key: str, name: str) -> Consumer:
        """Register a consumer from the view's present state on; one that can follow stays where it is.

        Raises:
            QueryError: there is no such view.
            ConfigError: the name cannot be a consumer's.
        """
        check_name(name)
        view = self.view(key)
        known = next((c for c in self.catalog.consumers(key) if c.view_key == name), None)
        if view.companion is None:
            view = replace(view, companion=self.create(view))
        if known is None or known.generation != view.generation:
            known = Cursor(name, key, COMPANION, view.version, view.generation, view.columns)
            self.catalog.put_consumer(known)
        return told(view, known)

    def unregister(self, key: str, name: str, forced: bool) -> None:
        """Forget a consumer; after the last one nobody needs the table, unless refreshes are told to keep it."""
        self.consumer(key, name)
        self.catalog.delete_consumer(name, key)
        if not forced and not self.catalog.consumers(key):
            self.drop(self.view(key))

    def acknowledge(self, key: str, name: str, version: int) -> Consumer:
        """Note that a consumer has the rows up to a batch.

        Raises:
            ConfigError: that batch is not there yet, or was acknowledged before; or the consumer cannot follow.
        """
        view, known = self.view(key), self.consumer(key, name)
        if not known.complete:
            raise ConfigError(
                f"The consumer {name} of {key} has missed companion rows. Nothing was changed. Read the view itself, "
                "and register again: it then follows from there."
            )
        if isinstance(version, bool) or not isinstance(version, int) or not known.cursor <= version <= view.version:
            raise ConfigError(
                f"The consumer {name} of {key} acknowledges batch {version!r}, expected a number from {known.cursor} "
                f"to {view.version}. Nothing was changed."
            )
        cursor = Cursor(name, key, COMPANION, version, view.generation, view.columns)
        self.catalog.put_consumer(cursor)
        return told(view, cursor)

    def consumer(self, key: str, name: str) -> Consumer:
        """Raises:
        QueryError: there is no such view.
        ConfigError: the view has no such consumer.
        """
        view = self.view(key)
        for cursor in self.catalog.consumers(key):
            if cursor.view_key == name:
                return told(view, cursor)
        raise ConfigError(f"The view {key} has no consumer {name!r}. Nothing was changed. Register it first.")

    def consumers(self, key: str) -> list[Consumer]:
        """All consumers of a view, by name.

        Raises:
            QueryError: there is no such view.
        """
        view = self.view(key)
        return [told(view, cursor) for cursor in self.catalog.consumers(key)]

    def view(self, key: str) -> ViewRow:
        found = self.catalog.view(key)
        if found is None or found.owner is not None:
            raise QueryError(f"There is no incremental view {key}. Create it with create_view().")
        return found


def told(view: ViewRow, cursor: Cursor) -> Consumer:
    assert view.companion is not None
    complete = cursor.generation == view.generation
    return Consumer(cursor.view_key, view.key, view.companion.sql, cursor.cursor, view.version, complete)


def check_name(name: object) -> None:
    """A consumer's name stands where keys of views do, which have dots.

    Raises:
        ConfigError: it is no such name.
    """
    if not isinstance(name, str) or not name.strip() or "." in name:
        raise ConfigError(f"{name!r} is no name of a consumer. Expected a text without dots.")

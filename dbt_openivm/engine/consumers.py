"""Who consumes the companion rows of a view: registered consumers, each of which says itself how far it has come.

They stand in `openivm_delta_tables`, beside the views that read boundaries.
"""

from __future__ import annotations

from dataclasses import replace

from dbt_openivm.compiler.keys import row_keys, row_outputs
from dbt_openivm.engine.catalog import COMPANION, IS_OUTSIDE, SNAPSHOT, Cursor, ViewRow
from dbt_openivm.engine.companions import Companions
from dbt_openivm.engine.types import Changes, Consumer, Lag
from dbt_openivm.errors import ConfigError, QueryError
from dbt_openivm.names import literal, quote

ANEW = (
    "Unregister the consumer, empty its copy, and register it again with a snapshot: it then reads the whole view, and "
    "follows from there."
)
"""What to do when changes are lost."""


class Consumers:
    """Works inside the caller's open transaction; changes need the coordinator's lock and the view's."""

    def __init__(self, companions: Companions, moment: str = "now()::TIMESTAMP") -> None:
        self.companions = companions
        self.session = companions.session
        self.catalog = companions.catalog
        self.moment = moment

    # --- their life --------------------------------------------------------------------------------------------------

    def register(self, key: str, name: str, snapshot: bool = False) -> Consumer:
        """Register a consumer from the view's present state on; one that can follow stays where it is.

        Args:
            snapshot: whether it reads the whole view first.

        Raises:
            QueryError: there is no such view.
            ConfigError: the name cannot be a consumer's, or it is one's that has missed changes.
        """
        check_name(name)
        view = self.view(key)
        known = next((c for c in self.catalog.consumers(key) if c.view_key == name), None)
        if known is not None:
            consumer = self.told(view, known)
            if not consumer.complete:
                raise missed(consumer)
            return consumer
        if view.companion is None:
            view = replace(view, companion=self.companions.create(view))
        kind = SNAPSHOT if snapshot else COMPANION
        cursor = Cursor(name, key, kind, view.version, view.generation, view.columns)
        self.catalog.put_consumer(cursor)
        return self.told(view, cursor)

    def unregister(self, key: str, name: str, forced: bool) -> None:
        """Forget a consumer; after the last one nobody needs the table, unless refreshes are told to keep it."""
        view = self.view(key)
        self.find(view, name)
        self.catalog.delete_consumer(name, key)
        if not forced and view.change_feed is None and not self.catalog.consumers(key):
            self.companions.drop(view)

    def acknowledge(self, key: str, name: str, version: int) -> Consumer:
        """Note that a consumer has the rows up to a batch.

        Raises:
            ConfigError: that batch is not there yet, or was acknowledged before; or the consumer cannot follow.
        """
        view = self.view(key)
        known = self.told(view, self.find(view, name))
        if not known.complete:
            raise missed(known)
        check_batch(known, "acknowledges", version)
        cursor = Cursor(name, key, COMPANION, version, view.generation, view.columns)
        self.catalog.put_consumer(cursor)
        return self.told(view, cursor)

    # --- what they read ----------------------------------------------------------------------------------------------

    def changes(self, key: str, name: str, after: int | None) -> Changes:
        """What a consumer has to read up to now.

        Args:
            after: the batch that it has already, if it knows better than by what it acknowledged; 0 for nothing.

        Raises:
            ConfigError: it has missed changes, or those after this batch are not kept for it.
        """
        view = self.view(key)
        known = self.told(view, self.find(view, name))
        if not known.complete:
            raise missed(known)
        columns = tuple(column.name for column in view.columns)
        if known.snapshot and not after and not isinstance(after, bool):
            sql = whole(view, self.guard(view, known, view.version))
            return Changes(sql, columns, 0, view.version, True)
        start = known.cursor if after is None else after
        check_batch(known, "reads the changes after", start)
        return Changes(later(view, self.guard(view, known, start), start), columns, start, view.version, False)

    def guard(self, view: ViewRow, consumer: Consumer, batch: int) -> str:
        """A scalar subquery: this batch, or an error unless all rows after it are there when it is read."""
        table = self.catalog.table("openivm_delta_tables")
        return (
            f"(SELECT CASE WHEN count(*) > 0 THEN {batch} ELSE error({literal(overtaken(consumer))}) END FROM {table} "
            f"WHERE view_key = {literal(consumer.name)} AND source_key = {literal(view.key)} "
            f"AND {IS_OUTSIDE} AND cursor <= {batch} "
            f"AND generation = {view.generation})"
        )

    # --- telling -----------------------------------------------------------------------------------------------------

    def all(self, key: str) -> list[Consumer]:
        """All consumers of a view, by name.

        Raises:
            QueryError: there is no such view.
        """
        view = self.view(key)
        return [self.told(view, cursor) for cursor in self.catalog.consumers(key)]

    def find(self, view: ViewRow, name: str) -> Cursor:
        for cursor in self.catalog.consumers(view.key):
            if cursor.view_key == name:
                return cursor
        raise ConfigError(f"The view {view.key} has no consumer {name!r}. Nothing was changed. Register it first.")

    def view(self, key: str) -> ViewRow:
        found = self.catalog.view(key)
        if found is None or found.owner is not None:
            raise QueryError(f"There is no incremental view {key}. Create it with create_view().")
        return found

    def told(self, view: ViewRow, cursor: Cursor) -> Consumer:
        table = "" if view.companion is None else view.companion.sql
        lag = self.lag(view, cursor) if cursor.generation == view.generation else None
        return Consumer(
            cursor.view_key, view.key, table, cursor.cursor, view.version, lag is not None, cursor.kind == SNAPSHOT, lag
        )

    def lag(self, view: ViewRow, cursor: Cursor) -> Lag | None:
        """None if the table is gone."""
        if view.companion is None or not self.catalog.columns_of([view.companion]):
            return None
        [(batches, rows, since, seconds)] = self.session.execute(
            "SELECT count(DISTINCT openivm_batch), count(*), min(openivm_timestamp), "
            f"coalesce(epoch({self.moment} - min(openivm_timestamp)), 0) FROM {view.companion.sql} "
            f"WHERE openivm_batch > {cursor.cursor}"
        )
        return Lag(batches, rows, since, seconds)


def later(view: ViewRow, batch: str, after: int) -> str:
    """The companion rows after a batch, up to the last one that is there now."""
    assert view.companion is not None
    columns = ", ".join(quote(column.name) for column in view.columns)
    return (
        f"SELECT {columns}, openivm_multiplicity, openivm_batch, openivm_timestamp\nFROM {view.companion.sql}\n"
        f"WHERE openivm_batch > {after} AND openivm_batch <= {view.version} AND openivm_batch > {batch}"
    )


def whole(view: ViewRow, batch: str) -> str:
    """The rows of the view as they are now, or, once more have come, without these."""
    assert view.companion is not None
    columns = ", ".join(quote(column.name) for column in view.columns)
    rows = (
        f"SELECT {columns}, 1 AS openivm_multiplicity FROM {view.visible.sql}\n  UNION ALL\n  SELECT {columns}, "
        f"-openivm_multiplicity FROM {view.companion.sql} WHERE openivm_batch > {batch}"
    )
    outputs = ", ".join(row_outputs(view.columns))
    keys = ", ".join(row_keys(view.columns))
    return (
        f"SELECT {outputs}, sum(openivm_multiplicity)::BIGINT AS openivm_multiplicity, "
        f"{view.version}::BIGINT AS openivm_batch, now()::TIMESTAMP AS openivm_timestamp\nFROM (\n  {rows}\n)\n"
        f"GROUP BY {keys}\nHAVING sum(openivm_multiplicity) <> 0"
    )


def check_name(name: object) -> None:
    """A consumer's name stands where keys of views do, which have dots.

    Raises:
        ConfigError: it is no such name.
    """
    if not isinstance(name, str) or not name.strip() or "." in name:
        raise ConfigError(f"{name!r} is no name of a consumer. Expected a text without dots.")


def check_batch(consumer: Consumer, does: str, batch: object) -> None:
    """Raises:
    ConfigError: it is no batch of those that are kept for the consumer.
    """
    if isinstance(batch, bool) or not isinstance(batch, int) or not consumer.cursor <= batch <= consumer.version:
        raise ConfigError(
            f"The consumer {consumer.name} of {consumer.view} {does} batch {batch!r}, expected a number from "
            f"{consumer.cursor} to {consumer.version}. Nothing was changed."
        )


def missed(consumer: Consumer) -> ConfigError:
    return ConfigError(
        f"The consumer {consumer.name} of {consumer.view} has missed changes: the view was rebuilt with other columns, "
        "or they were lost, or the retention of its change feed was over before it acknowledged them. Nothing was "
        f"changed. {ANEW}"
    )


def overtaken(consumer: Consumer) -> str:
    return (
        f"The changes of {consumer.view} that the consumer {consumer.name} was about to read are not all there any "
        f"more: it acknowledged later ones, was registered anew, or has missed some. Ask for its changes again."
    )

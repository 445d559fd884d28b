"""Prepare, apply, release: the life of a refresh. The engine API and the dbt adapter both stand on this."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

from dbt_openivm.compiler.explain import explain
from dbt_openivm.engine.apply import Application, drop_views
from dbt_openivm.engine.bases import Bases
from dbt_openivm.engine.catalog import Catalog, ViewRow, create_schema
from dbt_openivm.engine.clock import Clock, moment
from dbt_openivm.engine.companions import Companions
from dbt_openivm.engine.consumers import Consumers
from dbt_openivm.engine.coordinate import Coordinator, coordinator
from dbt_openivm.engine.planning import NotCompiledError, compile_view
from dbt_openivm.engine.prepare import REFRESH, Prepared, Preparer, maintained, relation_name
from dbt_openivm.engine.quick import QuickRefresh
from dbt_openivm.engine.renamed import adopt, old_names
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.shadowed import check_functions
from dbt_openivm.engine.stage import Staging
from dbt_openivm.engine.types import Consumer, RefreshResult, ViewSpec
from dbt_openivm.engine.ways import ASKED, Way, in_some_way
from dbt_openivm.engine.with_facts import compile_known
from dbt_openivm.errors import OpenIvmError, QueryError, UnsafeError
from dbt_openivm.names import RelationName, internal_schema, literal, quote

_SETUP = threading.Lock()
Result = TypeVar("Result")
SpecOf = Callable[[ViewRow], ViewSpec]
"""The view as its author wrote it, from the row that the catalog has of it."""

COMPILE_ATTEMPTS = 3


class Maintainer:
    """Maintains the views of one database.

    Args:
        session: runs the SQL.
        database: holds the views and all internal objects.
        render: writes the SQL of steps.
        clock: what time it is; None for DuckDB's now().
    """

    def __init__(self, session: Session, database: str, render: Renderer, clock: Clock | None = None) -> None:
        self.session = session
        self.clock = clock
        self.render = render
        self.catalog = Catalog(session, database)
        self._coordinator: Coordinator | None = None
        self._preparer: Preparer | None = None
        self._held: dict[int, ExitStack] = {}
        self.quick = QuickRefresh(session, self.catalog, render, clock)

    # --- set-up ------------------------------------------------------------------------------------------------------

    def setup(self) -> None:
        """Create the catalog if it is not there. Own transaction; any number of times, from any thread.

        Raises:
            UnsafeError: macros stand in the way; see `check_functions`.
        """
        with _SETUP:
            check_functions(self.session, self.catalog.database)
            if not self.catalog.exists():
                self.transaction(self.catalog.create)
            for name in old_names(self.session, self.catalog):
                self.transaction(partial(adopt, self.session, self.catalog, name))

    @property
    def coordinator(self) -> Coordinator:
        if self._coordinator is None:
            self._coordinator = coordinator(self.catalog.identity())
        return self._coordinator

    @property
    def preparer(self) -> Preparer:
        if self._preparer is None:
            bases = Bases(self.session, self.catalog, self.render, self.coordinator)
            self._preparer = Preparer(self.session, self.catalog, bases)
        return self._preparer

    # --- a refresh ---------------------------------------------------------------------------------------------------

    def run(self, spec: ViewSpec) -> tuple[Prepared, RefreshResult]:
        """Prepare and apply in one transaction of our own, begun only when the locks are held."""
        return self.alone(spec.name, lambda: self.transaction(lambda: self._run(spec, None)))

    def rerun(self, view: RelationName, spec_of: SpecOf, refresh_mode: str, full: bool) -> RefreshResult:
        """`run` a view that exists, by the row that the catalog has of it, in whatever way succeeds.

        Raises:
            QueryError: there is no such view.
        """
        quick = None if full or not self.quick.knows(view.key) else self.run_quickly(view)
        return quick or self.run_properly(view, spec_of, refresh_mode)

    def run_properly(self, view: RelationName, spec_of: SpecOf, refresh_mode: str) -> RefreshResult:
        def attempt(way: Way) -> RefreshResult:
            return self.transaction(lambda: self._rerun(view, spec_of, way))

        return self.alone(view, lambda: in_some_way(self.session, refresh_mode, self.is_damaged, attempt))

    def _rerun(self, view: RelationName, spec_of: SpecOf, way: Way) -> RefreshResult:
        rows = self.catalog.views()
        found = [row for row in rows if row.key == view.key and row.owner is None]
        if not found:
            raise no_view(view)
        return self._run(spec_of(found[0]), rows, way)[1]

    def run_quickly(self, view: RelationName) -> RefreshResult | None:
        """A quick refresh, or None where a proper one must do it.

        Whatever goes wrong in it is left to the proper refresh, which meets it again if it is the query's own.
        """
        with self.coordinator.view_lock(view.key), self.coordinator.lock:
            try:
                return self.transaction(lambda: self.quick.refresh(view, self.coordinator))
            except UnsafeError:
                raise
            except Exception:
                self.quick.forget(view.key)
                return None

    def alone(self, view: RelationName, work: Callable[[], Result]) -> Result:
        """Do `work`, which begins a transaction of its own, with nobody else refreshing the view or capturing."""

        def locked() -> Result:
            with self.coordinator.view_lock(view.key), self.coordinator.lock:
                return self.compiled(work)

        return self.mended(locked)

    def mended(self, work: Callable[[], Result]) -> Result:
        """Do `work`, and again if it failed because somebody damaged the catalog since `setup`."""
        try:
            return work()
        except OpenIvmError:
            raise
        except Exception:
            if not self.is_damaged():
                raise
        self._coordinator = self._preparer = None
        self.setup()
        return work()

    def is_damaged(self) -> bool:
        """Whether somebody damaged the catalog since `setup`.

        Raises:
            UnsafeError: macros stand in the way; see `check_functions`.
        """
        check_functions(self.session, self.catalog.database)
        return not self.catalog.exists()

    def compiled(self, work: Callable[[], Result]) -> Result:
        """Do `work`, and again after compiling outside its transaction what it did not find compiled."""
        for _ in range(COMPILE_ATTEMPTS):
            try:
                return work()
            except NotCompiledError as missing:
                self.preparer.compile(missing.spec)
        raise UnsafeError(
            "The relations of the view keep changing while it is compiled. Nothing was changed. Run again."
        )

    def _run(self, spec: ViewSpec, rows: list[ViewRow] | None, way: Way = ASKED) -> tuple[Prepared, RefreshResult]:
        prepared = self._prepare(spec, rows)
        if prepared.occupied:
            raise UnsafeError(
                f"There is a table or view {spec.name} that is no incremental view. Nothing was changed. "
                "Drop or rename it, or choose another name for the view."
            )
        application = Application(self.session, self.catalog, self.render, prepared, self.clock, way)
        result = application.run()
        self.coordinator.turns[prepared.key] += 1
        self.quick.remember(prepared, self.coordinator, application.touched)
        return prepared, result

    def prepare(self, spec: ViewSpec, in_transaction: bool = False) -> Prepared:
        """Compile, capture, decide; pin what the refresh will read. `release` must follow, whatever happens.

        Args:
            spec: the view.
            in_transaction: whether to work inside the caller's open transaction instead of a short one of its own. No
                other capture may overlap it then, so all of them wait until `release`.

        Raises:
            QueryError: DuckDB refuses the query, or it is no single SELECT.
            ConfigError: a configured capture cannot serve its source.
            UnsupportedError: refresh mode "strict", and the query can only be refreshed in full.
        """
        if not in_transaction:
            return self.mended(lambda: self._prepare_and_hold(spec, in_transaction))
        return self._prepare_and_hold(spec, in_transaction)

    def _prepare_and_hold(self, spec: ViewSpec, in_transaction: bool) -> Prepared:
        with ExitStack() as held:
            held.enter_context(self.coordinator.view_lock(spec.name.key))
            with ExitStack() as locked:
                locked.enter_context(self.coordinator.lock)
                if in_transaction:
                    prepared = self._prepare(spec, compiled=False)
                else:
                    prepared = self.compiled(lambda: self.transaction(lambda: self._prepare(spec)))
                self.coordinator.pins[id(prepared)] = prepared.versions
                if in_transaction:
                    held.push(locked.pop_all())
            self._held[id(prepared)] = held.pop_all()
            self.coordinator.epoch += 1
        return prepared

    def transaction(self, work: Callable[[], Result]) -> Result:
        """Do `work` in a transaction of our own."""
        self.session.begin()
        try:
            result = work()
            self.session.commit()
        except BaseException:
            self.session.rollback()
            raise
        return result

    def _prepare(self, spec: ViewSpec, rows: list[ViewRow] | None = None, compiled: bool = True) -> Prepared:
        prepared = self.preparer.prepare(spec, rows, compiled)
        if prepared.action != REFRESH:
            self.coordinator.epoch += 1
            create_schema(self.session, self.catalog.database, internal_schema(spec.name.schema))
        return prepared

    def apply(self, prepared: Prepared, way: Way = ASKED) -> RefreshResult:
        """Refresh inside the caller's open transaction. After a failure it may be rolled back and done in another way.

        Raises:
            UnsafeError: what the view reads was dropped or changed its columns since `prepare`.
        """
        self.preparer.recheck(prepared)
        # what is prepared and applied apart may overlap with anything: quick refreshes start over
        self.coordinator.epoch += 1
        return Application(self.session, self.catalog, self.render, prepared, self.clock, way).run()

    def release(self, prepared: Prepared) -> None:
        """Let go of what `prepare` pinned and locked."""
        self.coordinator.pins.pop(id(prepared), None)
        held = self._held.pop(id(prepared), None)
        if held is not None:
            held.close()

    # --- around a refresh --------------------------------------------------------------------------------------------

    def drop_view(self, view: RelationName) -> None:
        """`drop` in a transaction of its own.

        Raises:
            QueryError: there is no such view.
        """
        self.alone(view, lambda: self.transaction(lambda: self.drop_known(view)))

    def drop_known(self, view: RelationName) -> None:
        row = self.catalog.view(view.key)
        if row is None or row.owner is not None:
            raise no_view(view)
        self.drop(view)

    def drop(self, view: RelationName) -> None:
        """Remove a view and its objects, inside the caller's open transaction; sources that nobody reads any more too.

        Raises:
            UnsafeError: other views read it.
        """
        readers = [cursor.view_key for cursor in self.catalog.cursors(f"source_key = {literal(view.key)}")]
        if readers:
            raise UnsafeError(
                f"The view {view} is read by {', '.join(readers)}. Nothing was changed. Drop those views first, and "
                "unregister consumers of its companion rows."
            )
        self.coordinator.epoch += 1
        family = self.catalog.family(view.key)
        for row in family:
            self.drop_user_view(row)
        drop_views(self.session, self.catalog, family)
        self.drop_unread_sources()

    def register_consumer(self, view: RelationName, name: str, snapshot: bool = False) -> Consumer:
        """See `Consumers.register`."""

        def register() -> Consumer:
            self.coordinator.epoch += 1
            return self.consumers.register(view.key, name, snapshot)

        return self.alone(view, lambda: self.transaction(register))

    def unregister_consumer(self, view: RelationName, name: str, forced: bool) -> None:
        """See `Consumers.unregister`."""

        def unregister() -> None:
            self.consumers.unregister(view.key, name, forced)
            self.coordinator.epoch += 1

        self.alone(view, lambda: self.transaction(unregister))

    def acknowledge(self, view: RelationName, name: str, version: int) -> Consumer:
        """See `Consumers.acknowledge`."""
        return self.alone(view, lambda: self.transaction(lambda: self.consumers.acknowledge(view.key, name, version)))

    @property
    def consumers(self) -> Consumers:
        return Consumers(Companions(self.session, self.catalog, self.render), moment(self.clock))

    def drop_user_view(self, row: ViewRow) -> None:
        """Drop the view that users query, unless something else has taken its name."""
        found = self.session.execute(
            f"SELECT sql FROM duckdb_views() WHERE database_name = {literal(row.name.database)} "
            f"AND schema_name = {literal(row.name.schema)} AND view_name = {literal(row.name.name)}"
        )
        if found and quote(row.visible.name)[1:-1] in found[0][0]:
            self.session.execute(f"DROP VIEW {row.name.sql}")

    def drop_unread_sources(self) -> list[str]:
        """Remove the captures of bases that no view reads, nor a view that is being built; returns their keys."""
        read = f"SELECT source_key FROM {self.catalog.table('openivm_delta_tables')}"
        unread = self.catalog.sources(f"source_key NOT IN ({read})")
        bases = Bases(self.session, self.catalog, self.render, self.coordinator)
        unpinned = [row for key, row in unread.items() if self.coordinator.lowest_pin(key) is None]
        for row in unpinned:
            bases.remove(row, relation_name(row.from_sql))
        return [row.key for row in unpinned]

    def compile(self, spec: ViewSpec, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The statements of a refresh that the caller runs; see `compile_with_facts`. Changes nothing.

        Raises:
            ConfigError: the facts are wrong; the text names the fields.
        """
        return compile_known(self.session, spec, maintained(self.known_views()), facts, self.render)

    def known_views(self) -> dict[str, ViewRow]:
        return {row.key: row for row in self.catalog.views()} if self.catalog.exists() else {}

    def explain(self, spec: ViewSpec) -> str:
        """How the view is, or would be, maintained: operator tree, hidden columns, program. Changes nothing."""
        exists = self.catalog.exists()
        views = self.known_views()
        plan, facts = compile_view(self.session, spec, maintained(views))
        bases = Bases(self.session, self.catalog, self.render, Coordinator())
        staging = Staging(bases, views, self.catalog.sources() if exists else {})
        return explain(plan, staging.stage(spec, plan, facts), self.render)


def no_view(view: RelationName) -> QueryError:
    return QueryError(f"There is no incremental view {view}. Create it with create_view().")

"""One refresh as a dbt model: check, prepare, apply and release, as the materialization `ivm_view` calls them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger

from dbt_openivm.adapter.config import misspelt, relation_key, source_captures, view_config
from dbt_openivm.adapter.limited import Limited
from dbt_openivm.adapter.places import locator
from dbt_openivm.adapter.session import DbtSession
from dbt_openivm.engine.database import check_writable
from dbt_openivm.engine.garbage import Scope, without_model
from dbt_openivm.engine.render import Renderer, Step
from dbt_openivm.engine.report import shown
from dbt_openivm.engine.types import RefreshResult, ViewSpec
from dbt_openivm.engine.ways import Way, in_some_way
from dbt_openivm.names import RelationName

if TYPE_CHECKING:
    from dbt_openivm.engine.maintain import Maintainer
    from dbt_openivm.engine.prepare import Prepared

Context = Mapping[str, Any]

logger = AdapterLogger("OpenIvm")


@dataclass
class IvmResponse(AdapterResponse):
    """What dbt prints after a model, and the fields of `adapter_response` in run_results.json."""

    # dbt reads these annotations at run time, also on Python 3.10.
    refresh_type: Optional[str] = None  # noqa: UP045
    strategy: Optional[str] = None  # noqa: UP045
    reason: Optional[str] = None  # noqa: UP045
    delta_rows: Optional[int] = None  # noqa: UP045
    changed_rows: Optional[int] = None  # noqa: UP045
    refresh_ms: Optional[float] = None  # noqa: UP045

    @classmethod
    def of(cls, result: RefreshResult) -> IvmResponse:
        return cls(
            _message=result.message,
            code=result.strategy.upper(),
            rows_affected=result.changed_rows if result.changed_rows is not None else result.rows,
            refresh_type=result.refresh_type,
            strategy=result.strategy,
            reason=result.reason,
            delta_rows=result.delta_rows,
            changed_rows=result.changed_rows,
            refresh_ms=round(result.ms, 3),
        )


def renderer(context: Context) -> Renderer:
    """Render step macros through dbt, so that a user's project can override each one."""

    def render(macro: str, arguments: Mapping[str, Any]) -> str:
        return str(context[macro](Step(macro, arguments))).strip()

    return render


def relation_name(relation: Any) -> RelationName:
    return RelationName(relation.database, relation.schema, relation.identifier)


class Refresher:
    """The refreshes of one dbt invocation: at most one a thread at a time.

    Args:
        root: folder of the project.
    """

    _setup_lock = threading.Lock()

    def __init__(self, connections: Any, root: str | None = None) -> None:
        self._connections = connections
        self._root = root
        self._open = threading.local()
        self._ready: set[str] = set()
        self._captures: tuple[str, dict[str, str]] | None = None
        self._warned: set[str] = set()
        self._limited = Limited()

    @property
    def session(self) -> DbtSession:
        return DbtSession(self._connections)

    def maintainer(self, database: str, context: Context) -> Maintainer:
        from dbt_openivm.engine.maintain import Maintainer

        return Maintainer(self.session, database, renderer(context))

    def check(self, context: Context, set_up: bool) -> None:
        """Refuse what cannot work; set the database up: once, in a transaction of its own, before the model's."""
        view_config(context["model"])
        self.captures(context)
        if set_up:
            self._set_up(context)

    def _set_up(self, context: Context) -> None:
        self.session.end_lookups()
        database = context["this"].database
        with self._setup_lock:
            if database not in self._ready:
                check_writable(self.session, database)
                self.maintainer(database, context).setup()
                self._warn_of_left_overs(database, context["graph"], context["project_name"])
                self._ready.add(database)

    def _warn_of_left_overs(self, database: str, graph: Mapping[str, Any], project: str) -> None:
        """A view without a model still counts as a consumer: the change logs of its sources are kept for it."""
        gone = without_model(self.session, database, project_scope(graph, project))
        if gone:
            names = ", ".join(shown(view.name) for view in gone)
            logger.warning(
                f"No model of this project maintains {names}, but changes of their sources are still kept for them. "
                "`dbt run-operation ivm_gc` shows what could be cleared."
            )

    def lock(self, context: Context) -> None:
        """Keep other models from capturing until `release`.

        Before a hook opens the transaction in which this model will capture: it would conflict with captures that are
        committed in between.
        """
        self.session.end_lookups()
        lock = self.maintainer(context["this"].database, context).coordinator.lock
        lock.acquire()
        self._open.lock = lock

    def prepare(self, context: Context, inside: bool) -> None:
        """Compile, and capture what changed: in its own transaction, or inside the one that a hook has opened."""
        if not inside:
            self.session.end_lookups()
        in_transaction = self.session.in_transaction
        maintainer = self.maintainer(context["this"].database, context)
        spec = self.spec(context, capture_again=bool(context["pre_hooks"]))
        self._open.refresh = (maintainer, maintainer.prepare(spec, in_transaction=in_transaction))
        self._open.inside = inside
        self._warn_of_other_captures(context, self._open.refresh[1])

    def apply(self) -> IvmResponse:
        """Bring the view up to date inside dbt's open transaction.

        It may be rolled back and done in another way, unless that loses what was done in it before: by a hook, or to
        make room for a view that is built.
        """
        from dbt_openivm.engine.prepare import REFRESH

        maintainer, prepared = self._open.refresh
        if self._open.inside or prepared.action != REFRESH:
            return IvmResponse.of(maintainer.apply(prepared))

        def attempt(way: Way) -> RefreshResult:
            self.session.ensure_transaction()
            result: RefreshResult = maintainer.apply(prepared, way)
            return result

        mode = prepared.spec.refresh_mode
        return IvmResponse.of(in_some_way(self.session, mode, maintainer.is_damaged, attempt))

    def limited_query(self, context: Context) -> str:
        """The query of a model under `--empty` or `--sample`, over the queries of the models that it reads."""
        statements, query = self._limited.read(context)
        for statement in statements:
            self.session.execute(statement)
        return query

    def validated(self, context: Context) -> None:
        """Note that a model was validated, but not built."""
        self._limited.note(context)

    def release(self) -> None:
        """Let go of what `prepare` pinned and `lock` locked; whatever is still uncommitted failed."""
        refresh: tuple[Maintainer, Prepared] | None = getattr(self._open, "refresh", None)
        lock = getattr(self._open, "lock", None)
        self._open.refresh = self._open.lock = None
        try:
            if refresh is not None or lock is not None:
                self.session.rollback()
            if refresh is not None:
                refresh[0].release(refresh[1])
        finally:
            if lock is not None:
                lock.release()

    def spec(self, context: Context, capture_again: bool = False) -> ViewSpec:
        """The model as the engine takes it.

        Args:
            capture_again: a hook may have written the sources since another model of this run captured them.
        """
        node = context["model"]
        config = view_config(node)
        return ViewSpec(
            name=relation_name(context["this"]),
            sql=node["compiled_code"],
            refresh_mode=config.refresh_mode,
            full_refresh=bool(context["should_full_refresh"]()),
            capture=config.capture,
            captures=self.captures(context),
            invocation=None if capture_again else context["invocation_id"],
            origin=node["original_file_path"],
            project=context["project_name"],
            force_view_delta_cascade=config.force_view_delta_cascade,
            skip_empty_deltas=config.skip_empty_deltas,
            apply_strategy=config.apply_strategy,
            change_feed=config.change_feed or False,
            locate=locator(node, self._root),
        )

    def captures(self, context: Context) -> dict[str, str]:
        invocation = context["invocation_id"]
        with self._setup_lock:
            if self._captures is None or self._captures[0] != invocation:
                self._captures = (invocation, source_captures(context["graph"]))
                self._warned.clear()
                for warning in misspelt(context["graph"]):
                    logger.warning(warning)
            return self._captures[1]

    def _warn_of_other_captures(self, context: Context, prepared: Prepared) -> None:
        """A model's `capture` counts for sources that have none yet: say so where it does not."""
        wanted = context["model"]["config"].get("capture")
        for key, source in prepared.sources.items():
            if wanted not in (None, source.capture) and key not in prepared.spec.captures and key not in self._warned:
                self._warned.add(key)
                logger.warning(
                    f"{context['model']['name']} asks for capture {wanted}, but {key} is captured by {source.capture}: "
                    f"it was before, or cannot be by {wanted}. Set meta: {{openivm: {{capture: {wanted}}}}} on the "
                    "source to change that for all its readers, or to be told why it cannot be."
                )


def project_scope(graph: Mapping[str, Any], project: str, everywhere: bool = False) -> Scope:
    """Which views the models of a project maintain, and in which schemas a view without a model is left over."""
    models = [node for node in graph["nodes"].values() if node["resource_type"] == "model"]
    made = {relation_key(node): node["config"]["materialized"] for node in models}
    return Scope(project, made, {f"{node['database']}.{node['schema']}".lower() for node in models}, everywhere)

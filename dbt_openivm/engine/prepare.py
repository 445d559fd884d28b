"""Before a refresh: compile, bring captures up to now, decide between build, rebuild and refresh."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dbt_openivm.compiler.compile import COLUMNS_CHANGED, difference
from dbt_openivm.compiler.facts import VISIBLE, CompileFacts, Relation
from dbt_openivm.compiler.plan import FULL_REFRESH, RefreshPlan
from dbt_openivm.engine.bases import Bases, Need
from dbt_openivm.engine.catalog import Catalog, Cursor, SourceRow, ViewRow, companion_passed, passed
from dbt_openivm.engine.gather import Gathered, IsView, gather
from dbt_openivm.engine.planning import Made, Outline, Planner
from dbt_openivm.engine.reasons import column_changes, missed_changes
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.shapes import Shapes, companion_is_whole, source_is_whole, view_is_whole
from dbt_openivm.engine.types import ViewInfo, ViewSpec
from dbt_openivm.errors import ConfigError, QueryError, UnsafeError, UnsupportedError
from dbt_openivm.names import CATALOG_SCHEMA, PREFIX, RelationName, quote, split_name, visible_view

BUILD, REBUILD, REFRESH = "build", "rebuild", "refresh"
DAMAGED = "its internal objects were changed from outside"


@dataclass
class Prepared:
    """A refresh about to happen.

    Attributes:
        action: `BUILD`, `REBUILD` or `REFRESH`.
        reason: why it is a rebuild.
        family: the view and its internal nodes as the catalog holds them, by key.
        sources: the captured bases by key, at the versions pinned for this refresh.
        currents: SQL of the current relation of each base.
        cursors: what the view has consumed, by source key.
        passed: the batch of the boundary that every view which reads this one has passed, None if none does.
        companion_passed: the batch of companion rows that every registered consumer has passed, None without consumers.
        companion_whole: whether the table of companion rows is there, as it was made.
        user_view_ours: whether the view that users query exists and reads our boundary.
        occupied: whether a table or another view has its name.
        alone_on_sources: whether no other view consumes any of its bases.
    """

    spec: ViewSpec
    outline: Outline
    planner: Planner
    facts: CompileFacts
    action: str
    reason: str | None
    family: Mapping[str, ViewRow]
    sources: Mapping[str, SourceRow]
    currents: Mapping[str, str]
    cursors: Mapping[str, Cursor]
    passed: int | None
    companion_passed: int | None
    companion_whole: bool
    user_view_ours: bool
    occupied: bool
    alone_on_sources: bool
    started: float = field(default_factory=time.perf_counter)

    @property
    def key(self) -> str:
        return self.spec.name.key

    @cached_property
    def made(self) -> Made:
        """The plan; not made unless it is needed."""
        return self.planner.plan(self.spec, self.facts, self.root)

    @property
    def plan(self) -> RefreshPlan:
        return self.made.plan

    @property
    def root(self) -> ViewRow | None:
        return self.family.get(self.key)

    @property
    def keeps_companion(self) -> bool:
        """Whether anybody wants companion rows."""
        forced = self.spec.force_view_delta_cascade or self.change_feed is not None
        return forced or self.companion_passed is not None

    @property
    def change_feed(self) -> str | None:
        """How long the changes of the view are to be kept; None for no change feed."""
        if self.spec.change_feed is None:
            return self.root.change_feed if self.root else None
        return self.spec.change_feed or None

    @property
    def versions(self) -> dict[str, int]:
        """The version of each base that this refresh reads."""
        return {key: row.version for key, row in self.sources.items()}

    @property
    def info(self) -> ViewInfo:
        relations = self.facts.relations
        names = tuple(relations[key].key if key in relations else key for key in self.outline.sources)
        return ViewInfo(str(self.spec.name), self.outline.refresh_type, self.outline.reason, names)


class Preparer:
    """Prepares refreshes of one database's views. Needs the coordinator's lock; `prepare` also an open transaction."""

    def __init__(self, session: Session, catalog: Catalog, bases: Bases) -> None:
        self.session = session
        self.catalog = catalog
        self.bases = bases
        self.planner = Planner(session)

    def prepare(self, spec: ViewSpec, rows: Sequence[ViewRow] | None = None, compiled: bool = True) -> Prepared:
        """Prepare one view.

        Args:
            rows: the catalog's views, if they were read in this transaction already.
            compiled: whether the plan must be in memory already. A probe that DuckDB refuses would end the
                transaction, so that plans are made before it: see `compile`.

        Raises:
            NotCompiledError: no plan in memory fits; `compile` must run outside the transaction.
        """
        started = time.perf_counter()
        self.bases.begin()
        views = {row.key: row for row in (self.catalog.views() if rows is None else rows)}
        family = {key: row for key, row in views.items() if spec.name.key in (key, row.owner)}
        registered = self.catalog.cursors()
        cursors = {cursor.source_key: cursor for cursor in registered if cursor.view_key == spec.name.key}
        known = self.catalog.sources()
        found = gather(self.session, spec.sql, maintained(views), internal_names(spec, family, cursors, known))
        outline = self.planner.outline(spec, found.facts, family, cursors, compiled)
        self.check(spec, outline)
        check_acyclic(spec, outline, registered)
        sources = self.capture(spec, outline, found, known, registered)
        currents = {key: self.bases.current(row, relation_name(row.from_sql)) for key, row in sources.items()}
        parents = {key: views[key] for key in outline.sources if key in views and key not in sources}
        why = missed_changes(sources, parents, cursors, self.bases.coordinator.causes)
        action, reason = self.decide(spec, outline, found, family, cursors, why)
        ours = found.objects.get(spec.name.key)
        return Prepared(
            spec, outline, self.planner, found.facts, action, reason, family, sources, currents, cursors,
            passed(registered, spec.name.key), companion_passed(registered, spec.name.key),
            companion_is_whole(family.get(spec.name.key), shapes_of(found)), ours is not None and ours.kind == VISIBLE,
            ours is not None and ours.kind != VISIBLE and not is_orphan(ours, views),
            alone_on(sources, registered), started,
        )  # fmt: skip

    def recheck(self, prepared: Prepared) -> None:
        """Take in what others did between `prepare` and now: a capture or parent that began anew means a rebuild.

        Raises:
            UnsafeError: something that the view reads is gone, or has other columns.
        """
        self.bases.begin()
        known, views = self.catalog.sources(), {row.key: row for row in self.catalog.views()}
        sources, parents = dict(prepared.sources), {}
        for key, columns in prepared.outline.sources.items():
            if key in sources:
                now = known.get(key)
                if now is None or not set(columns) <= set(now.columns):
                    raise overtaken(prepared.spec.name, key)
                if now.generation != sources[key].generation:
                    sources[key] = now
            elif key not in views or views[key].columns != prepared.facts.relations[key].columns:
                raise overtaken(prepared.spec.name, key)
            else:
                parents[key] = views[key]
        prepared.sources = sources
        prepared.currents = {key: self.bases.current(row, relation_name(row.from_sql)) for key, row in sources.items()}
        missed = missed_changes(sources, parents, prepared.cursors, self.bases.coordinator.causes)
        if prepared.action == REFRESH and missed is not None:
            prepared.action, prepared.reason = REBUILD, missed

    # --- compile -----------------------------------------------------------------------------------------------------

    def compile(self, spec: ViewSpec) -> None:
        """Make the plan of a view from what DuckDB knows now, and keep it in memory.

        Raises:
            QueryError: DuckDB refuses the query, or it is no single SELECT.
        """
        views = {row.key: row for row in self.catalog.views()}
        self.planner.make(spec, gather(self.session, spec.sql, maintained(views)).facts)

    def check(self, spec: ViewSpec, plan: Outline) -> None:
        internal = spec.name.schema.lower() == CATALOG_SCHEMA or spec.name.schema.lower().startswith(PREFIX)
        if internal or spec.name.name.lower().startswith(PREFIX):
            raise ConfigError(
                f"The view {spec.name} has a name that dbt-openivm keeps for its own objects: the schema "
                f"{CATALOG_SCHEMA} and what starts with {PREFIX}. Choose another name or schema."
            )
        temporary = [key.rsplit(".", 1)[-1] for key in plan.sources if key.startswith("temp.")]
        if temporary:
            raise QueryError(
                f"The view {spec.name} reads the temporary table {', '.join(temporary)}, which is gone with this "
                "connection. Name the table that you mean with its schema, or create it for good."
            )
        used = [c.name for columns in plan.sources.values() for c in columns if c.name.lower().startswith(PREFIX)]
        if used:
            raise QueryError(
                f"The view {spec.name} reads a source column named {', '.join(used)}. Names that start with {PREFIX} "
                "are kept for internal columns. Rename the column in the source, or read it through a view that "
                "renames it."
            )
        if spec.refresh_mode == "strict" and plan.refresh_type == FULL_REFRESH:
            reason = spec.locate(plan.reason or "")
            raise UnsupportedError(
                f"The view {spec.name} has refresh_mode 'strict', but {reason}. Nothing was changed. "
                "Rewrite the construct, or set refresh_mode to 'auto' to let the view be refreshed in full."
            )

    # --- capture -----------------------------------------------------------------------------------------------------

    def capture(
        self,
        spec: ViewSpec,
        plan: Outline,
        found: Gathered,
        known: Mapping[str, SourceRow],
        registered: Sequence[Cursor],
    ) -> dict[str, SourceRow]:
        rows: dict[str, SourceRow] = {}
        for key, columns in plan.sources.items():
            relation, row = found.facts.relations[key], known.get(key)
            if relation.kind == VISIBLE:
                continue
            need = Need(
                relation.key, relation.sql, relation_name(relation.sql), columns, relation.columns,
                spec.captures.get(key), spec.capture, spec.invocation, passed(registered, key),
                1 + max((cursor.generation for cursor in registered if cursor.source_key == key), default=-1),
            )  # fmt: skip
            whole = row is None or self.is_whole(row, found.objects)
            rows[key] = (
                self.bases.ready(row, need)
                if row is None or whole
                else self.bases.reinstall(row, need, f"internal tables of the capture of {key} were dropped or altered")
            )
            if spec.invocation is not None:
                self.bases.coordinator.captured[spec.invocation].setdefault(key, rows[key].version)
        return rows

    def is_whole(self, row: SourceRow, seen: Mapping[str, Relation]) -> bool:
        """Whether a capture's objects are as it made them; those of a source new to the view are not among `seen`."""
        shapes = {name.key: seen[name.key].columns for name in row.objects.values() if name.key in seen}
        missing = [name for name in row.objects.values() if name.key not in shapes]
        return source_is_whole(row, shapes | (self.catalog.columns_of(missing) if missing else {}))

    # --- decide ------------------------------------------------------------------------------------------------------

    def decide(
        self,
        spec: ViewSpec,
        plan: Outline,
        found: Gathered,
        family: Mapping[str, ViewRow],
        cursors: Mapping[str, Cursor],
        missed: str | None,
    ) -> tuple[str, str | None]:
        """Build, rebuild (and why), or refresh."""
        root = family.get(spec.name.key)
        if root is None:
            return BUILD, None
        if spec.full_refresh:
            return REBUILD, "a full refresh was asked for"
        shapes = shapes_of(found)
        whole = len(family) == plan.nodes and all(view_is_whole(row, shapes) for row in family.values())
        changed = difference(root.fingerprint, plan.fingerprint)
        if changed == COLUMNS_CHANGED:
            changed = column_changes(cursors, plan.sources, root, plan.output) or changed
        reason = changed or (None if whole else DAMAGED) or missed
        return (REFRESH, None) if reason is None else (REBUILD, reason)


def shapes_of(found: Gathered) -> Shapes:
    return {key: relation.columns for key, relation in found.objects.items()}


def is_orphan(view: Relation, views: Mapping[str, ViewRow]) -> bool:
    """Whether a plain view is one of ours whose row in the catalog is gone: it reads the boundary of its name."""
    return view.key not in views and visible_view(view.key.rsplit(".", 1)[-1]) in (view.definition or "").lower()


def overtaken(view: RelationName, key: str) -> UnsafeError:
    return UnsafeError(
        f"{key}, which the view {view} reads, was dropped or changed its columns while a refresh of the view was under "
        "way. Nothing was changed. Run again."
    )


def alone_on(sources: Mapping[str, SourceRow], registered: Sequence[Cursor]) -> bool:
    return all(sum(cursor.source_key == key for cursor in registered) <= 1 for key in sources)


def check_acyclic(spec: ViewSpec, plan: Outline, registered: Sequence[Cursor]) -> None:
    """Refuse a view that one of its sources reads.

    Raises:
        QueryError: names the way round.
    """
    reads: dict[str, list[str]] = {}
    for cursor in registered:
        reads.setdefault(cursor.view_key, []).append(cursor.source_key)
    pending = [(key, [key]) for key in plan.sources]
    while pending:
        key, way = pending.pop()
        if key == spec.name.key:
            raise QueryError(
                f"The view {spec.name} would read itself{''.join(f' through {step}' for step in way[:-1])}."
            )
        pending.extend((source, [*way, source]) for source in reads.get(key, []) if source not in way)


def relation_name(from_sql: str) -> RelationName | None:
    """The catalog entry that a FROM text names; None for a file reader."""
    parts = split_name(from_sql) if from_sql.startswith('"') and from_sql.endswith('"') else []
    return RelationName(*parts) if len(parts) == 3 else None


def maintained(views: Mapping[str, ViewRow]) -> IsView:
    """Tells a view of ours from a plain one that took its name: ours reads its boundary."""

    def is_view(name: RelationName, sql: str) -> bool:
        row = views.get(name.key)
        return row is not None and quote(row.visible.name)[1:-1].lower() in sql.lower()

    return is_view


def internal_names(
    spec: ViewSpec, family: Mapping[str, ViewRow], cursors: Iterable[str], known: Mapping[str, SourceRow]
) -> set[str]:
    """What must be there for a refresh: the view, its state and boundary, the objects of its sources' captures."""
    states = {name.name for row in family.values() for name in row.objects}
    states |= {row.companion.name for row in family.values() if row.companion is not None}
    captures = {name.name for key in cursors if key in known for name in known[key].objects.values()}
    return {spec.name.name} | states | captures

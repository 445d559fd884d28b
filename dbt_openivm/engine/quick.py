"""The quick way to "nothing changed": a few plain reads instead of a preparation.

It serves views all of whose sources tell of their changes themselves (by triggers, or as incremental views), whose
query goes through no plain view and no macro, and which this very engine has refreshed before. Tables with triggers
cannot change their columns without losing the triggers, so that nothing else can have changed the plan. Whatever looks
different is left to a proper refresh.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dbt_openivm.compiler.facts import SQL_VIEW, VISIBLE
from dbt_openivm.engine.bases import base_of
from dbt_openivm.engine.capture.trigger import TriggerCapture
from dbt_openivm.engine.catalog import Catalog, Cursor, SourceRow, ViewRow
from dbt_openivm.engine.prepare import Prepared, missed_changes, relation_name
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.types import RefreshResult


@dataclass(frozen=True)
class Seen:
    """A view as this engine last refreshed it; `logs` are the change logs that its sources' triggers write."""

    digest: str | None
    generation: int
    refresh_type: str
    logs: tuple[str, ...]


PENDING = "SELECT 1 FROM {log} WHERE openivm_batch IS NULL LIMIT 1"


class QuickCheck:
    """Remembers the views that it can serve."""

    def __init__(self, session: Session, catalog: Catalog, render: Renderer) -> None:
        self.session = session
        self.catalog = catalog
        self.render = render
        self._seen: dict[str, Seen] = {}

    def remember(self, prepared: Prepared) -> None:
        """Take note of a view after its refresh was committed."""
        row = prepared.root
        if row is not None and prepared.action == "refresh" and is_simple(prepared):
            logs = tuple(source.objects["delta"].sql for source in prepared.sources.values())
            self._seen[prepared.key] = Seen(row.digest, row.generation, row.refresh_type, logs)
        else:
            self._seen.pop(prepared.key, None)

    def unchanged(self, name: str, key: str) -> RefreshResult | None:
        """The result of a refresh that has nothing to do, or None if a proper one must decide."""
        seen = self._seen.get(key)
        if seen is None or any(self.session.execute(PENDING.format(log=log)) for log in seen.logs):
            return None
        views = {row.key: row for row in self.catalog.views()}
        row = views.get(key)
        if row is None or (row.digest, row.generation) != (seen.digest, seen.generation):
            return None
        cursors = {c.source_key: c for c in self.catalog.cursors() if c.view_key == key}
        sources = self.catalog.sources()
        bases = {source: sources[source] for source, cursor in cursors.items() if cursor.kind != VISIBLE}
        parents = {source: views[source] for source, cursor in cursors.items() if cursor.kind == VISIBLE}
        if missed_changes(bases, parents, cursors) or self.has_changes(bases, parents, cursors):
            return None
        if not self.is_intact(name, [r for r in views.values() if key in (r.key, r.owner)]):
            return None
        return RefreshResult(name, seen.refresh_type, "none", None, 0, None, None, 0.0)

    def has_changes(self, bases: dict[str, SourceRow], parents: dict[str, ViewRow], cursors: dict[str, Cursor]) -> bool:
        if any(parent.version != cursors[key].cursor for key, parent in parents.items()):
            return True
        capture = TriggerCapture(self.session, self.render)
        for key, row in bases.items():
            probe = capture.probe(base_of(row, relation_name(row.from_sql)))
            if probe.broken or probe.pending or row.version != cursors[key].cursor:
                return True
        return False

    def is_intact(self, name: str, family: Iterable[ViewRow]) -> bool:
        """Whether the view can be read and its states have the rows that its last refresh left."""
        self.session.execute(f"SELECT 1 FROM {name} LIMIT 0")
        return all(self.session.execute(f"SELECT count(*) FROM {row.data.sql}") == [(row.row_count,)] for row in family)


def is_simple(prepared: Prepared) -> bool:
    """Whether every source tells of its changes, and nothing but the query defines the view."""
    if prepared.outline.volatile or prepared.facts.macros:
        return False
    if any(relation.kind == SQL_VIEW for relation in prepared.facts.relations.values()):
        return False
    return all(row.capture == TriggerCapture.kind for row in prepared.sources.values())

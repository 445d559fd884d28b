"""Why a view must be rebuilt, in words that name what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dbt_openivm.compiler.facts import BASE, VISIBLE, Column
from dbt_openivm.engine.catalog import Cursor, SourceRow, ViewRow

Causes = Mapping[str, tuple[int, str]]
"""Source key -> (the generation that its capture began, why)."""


def column_changes(
    cursors: Mapping[str, Cursor], sources: Mapping[str, Sequence[Column]], root: ViewRow, output: Sequence[Column]
) -> str | None:
    """Which columns a view reads or returns otherwise than when it was built; None if none does."""
    found = list(_changes(cursors, sources, root, output))
    if len(found) > 1:
        return f"{found[0]} (and {len(found) - 1} more)"
    return found[0] if found else None


def _changes(
    cursors: Mapping[str, Cursor], sources: Mapping[str, Sequence[Column]], root: ViewRow, output: Sequence[Column]
) -> Iterator[str]:
    for key, columns in sources.items():
        if key in cursors:
            yield from _of_relation(f"the column {key}.", cursors[key].columns, columns)
        else:
            yield f"it reads {key} now"
    yield from (f"it no longer reads {key}" for key in cursors.keys() - sources.keys())
    yield from _of_relation("its column ", root.columns, output)


def _of_relation(prefix: str, before: Sequence[Column], after: Sequence[Column]) -> Iterator[str]:
    old, new = ({column.name: column.type for column in columns} for columns in (before, after))
    for name in old.keys() & new.keys():
        if old[name] != new[name]:
            yield f"{prefix}{name} changed its type from {old[name]} to {new[name]}"
    yield from (f"{prefix}{name} is new" for name in new if name not in old)
    yield from (f"{prefix}{name} is no longer read" for name in old if name not in new)


def missed_changes(
    sources: Mapping[str, SourceRow], parents: Mapping[str, ViewRow], cursors: Mapping[str, Cursor], causes: Causes
) -> str | None:
    """Why the view cannot follow one of its sources by delta, or None."""
    known: dict[str, SourceRow | ViewRow] = {**sources, **parents}
    reasons = (_missed(key, source, cursors.get(key), causes) for key, source in known.items())
    return next((reason for reason in reasons if reason is not None), None)


def _missed(key: str, source: SourceRow | ViewRow, cursor: Cursor | None, causes: Causes) -> str | None:
    kind = VISIBLE if isinstance(source, ViewRow) else BASE
    if cursor is None:
        return f"it has not read {key} before"
    if cursor.kind != kind:
        return f"{key} is {'an' if kind == VISIBLE else 'no'} ivm_view now"
    if cursor.generation != source.generation:
        generation, cause = causes.get(key, (-1, ""))
        if generation == source.generation:
            return cause
        anew = "was built anew" if kind == VISIBLE else "has a new capture"
        return f"{key} {anew}, so that its changes since the last refresh are not known"
    if cursor.cursor < source.log_start:
        return f"the changes of {key} since the last refresh were cleared before it could read them"
    if cursor.cursor > source.version:
        return f"it has read more changes of {key} than there are: was an older state restored?"
    return None

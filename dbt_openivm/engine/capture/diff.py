"""Capture by comparison with a kept copy: for any relation that can be selected from, without any set-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dbt_openivm.compiler.keys import row_hash, row_keys, row_outputs
from dbt_openivm.engine.capture.base import Base, Capture, Probe
from dbt_openivm.engine.capture.log import (
    TIMESTAMP_SQL,
    create_log,
    drop_table,
    is_relation,
    quoted_columns,
    widen_log,
)
from dbt_openivm.errors import UnsafeError

#: the signed difference while `collect` runs
DIFFERENCE = "temp.main.openivm_difference"
ROWS_PER_BUCKET = 128
#: below this one pass over all rows costs less than finding buckets
SMALL = 20_000
MOST_BUCKETS = 1 << 18
#: fingerprints are laid out anew when their number of buckets is this many times off
STALE_FACTOR = 8


def bucket_count(rows: int) -> int:
    """How many buckets suit a base of `rows` rows: 1 for a small one, else a power of two.

    Example:
        >>> bucket_count(1_000), bucket_count(10_000_000)
        (1, 65536)
    """
    if rows < SMALL:
        return 1
    return min(MOST_BUCKETS, 1 << max(1, rows // ROWS_PER_BUCKET).bit_length() - 1)


class DiffCapture(Capture):
    """A kept copy of the captured columns, and fingerprints of it by bucket: nothing more than the copy's own content.

    An unchanged base is seen by one scan (a count and a sum of row hashes). Otherwise only rows of changed buckets are
    compared. Log, copy and fingerprints are derived from one temporary table, so that they never disagree, even where
    the base is a file that somebody writes meanwhile: the next capture finds what this one did not see.
    """

    kind: ClassVar[str] = "diff"
    roles: ClassVar[tuple[str, ...]] = ("copy", "buckets")

    def refusal(self, base: Base) -> str | None:  # noqa: ARG002 - any relation will do
        return None

    def install(self, base: Base) -> None:
        self._run("ivm_capture_copy", base)
        self._write_fingerprints(base)
        create_log(self.session, self.render, base, base.objects["copy"].sql)

    def widen(self, base: Base, wider: Base) -> None:
        """Take the copy anew with the columns of `wider`.

        Raises:
            UnsafeError: the base (a file, a foreign database) changed since `collect` read it.
        """
        self._run("ivm_capture_copy", wider)
        unchanged, _, _, _ = self._compare(base, base.objects["copy"].sql)
        if not unchanged:
            raise UnsafeError(f"{base.key} changed while it was captured; nothing was changed. Run again.")
        self._write_fingerprints(wider)
        widen_log(self.session, self.render, base, wider, base.objects["copy"].sql)

    def collect(self, base: Base, batch: int) -> int:
        unchanged, same_version, buckets, rows = self._compare(base, base.from_sql)
        if not same_version:
            # hash() is not stable between DuckDB versions; the copy is, so the fingerprints are computed from it again
            self._write_fingerprints(base)
            unchanged, _, buckets, rows = self._compare(base, base.from_sql)
        if unchanged:
            return 0
        self._run("ivm_capture_difference", base, buckets=buckets)
        changed = self._apply(base, batch, buckets)
        expected = bucket_count(rows)
        if not changed or max(expected, buckets) >= STALE_FACTOR * min(expected, buckets):
            # no change where the fingerprints see one: a setting (TimeZone) changed the text of a value
            self._write_fingerprints(base)
        self.session.execute(f"DROP TABLE {DIFFERENCE}")
        return changed

    def probe(self, base: Base) -> Probe:
        return Probe(self._broken(base), pending=True)

    def _broken(self, base: Base) -> str | None:
        expected = {"delta": len(base.columns) + 3, "copy": len(base.columns) or 1, "buckets": 5}
        tables = " OR ".join(
            f"({is_relation(base.objects[role], 'table')} AND column_count = {count})"
            for role, count in expected.items()
        )
        [(found,)] = self.session.execute(f"SELECT count(*) FROM duckdb_tables() WHERE {tables}")
        if found != len(expected):
            return f"an internal table of the capture of {base.key} was dropped or altered"
        copy, buckets = base.objects["copy"].sql, base.objects["buckets"].sql
        [(rows, kept)] = self.session.execute(
            f"SELECT (SELECT count(*) FROM {copy}), (SELECT max(openivm_rows) FROM {buckets} WHERE openivm_bucket = -1)"
        )
        return None if rows == kept else f"the kept copy of {base.key} was edited: {rows} rows, expected {kept}"

    def uninstall(self, base: Base) -> None:
        for role in ("delta", *self.roles):
            drop_table(self.session, base.objects[role])

    def current(self, base: Base) -> str:
        return base.objects["copy"].sql

    def _compare(self, base: Base, source: str) -> tuple[bool, bool, int, int]:
        """Is `source` what the fingerprints say; do they hold for this DuckDB; their buckets; rows of `source`."""
        [(unchanged, same_version, buckets, rows)] = self._run("ivm_capture_compare", base, source=source)
        return unchanged, same_version, buckets, rows

    def _apply(self, base: Base, batch: int, buckets: int) -> int:
        """Write the difference into log, copy and fingerprints; return the number of log rows."""
        [(changed, gone)] = self.session.execute(
            f"SELECT count(*), count(*) FILTER (WHERE openivm_multiplicity < 0) FROM {DIFFERENCE}"
        )
        if changed:
            self._run("ivm_capture_write_log", base, batch=batch)
            if gone:
                self._run("ivm_capture_copy_delete", base)
            self._run("ivm_capture_copy_insert", base)
            self._run("ivm_capture_advance", base, buckets=buckets)
        return int(changed)

    def _write_fingerprints(self, base: Base) -> None:
        [(rows,)] = self.session.execute(f"SELECT count(*) FROM {base.objects['copy'].sql}")
        self._run("ivm_capture_fingerprints", base, buckets=bucket_count(rows))

    def _run(self, macro: str, base: Base, **more: Any) -> list[tuple[Any, ...]]:
        return self.session.execute(self.render(macro, {**_arguments(base), **more}))


def _arguments(base: Base) -> Mapping[str, Any]:
    """What the templates of this capture read, apart from batch and buckets."""
    pairs = zip(row_keys(base.columns, "kept."), row_keys(base.columns, "gone."), strict=True)
    hidden = any(column.name.lower() == "rowid" for column in base.columns)
    return {
        "source": base.from_sql,
        "copy": base.objects["copy"].sql,
        "fingerprints": base.objects["buckets"].sql,
        "log": base.objects["delta"].sql,
        "difference": DIFFERENCE,
        "columns": quoted_columns(base),
        "outputs": row_outputs(base.columns),
        "keys": row_keys(base.columns),
        "same": [f"{kept} IS NOT DISTINCT FROM {gone}" for kept, gone in pairs] or ["true"],
        "hash": row_hash(base.columns),
        "rowid": "CAST(NULL AS BIGINT)" if hidden else "rowid",
        "timestamp": TIMESTAMP_SQL,
    }

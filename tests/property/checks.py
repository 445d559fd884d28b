"""The promises of a refresh, each as a check that raises `Failure`."""

from __future__ import annotations

from typing import Any

from dbt_openivm.names import literal, quote
from tests.bags import bag_difference

SHOWN = 12

OLD = "fuzz_old"
TRUTH = "fuzz_truth"


class Failure(Exception):
    """A broken promise.

    Args:
        check: which one, in a few fixed words.
        view: the view it happened to.
        detail: what was seen.
        signature: what must stay the same while shrinking, besides `check`.
    """

    def __init__(self, check: str, view: str, detail: str, signature: str = "") -> None:
        super().__init__(f"{check} [{view}]: {detail}")
        self.check = check
        self.view = view
        self.detail = detail
        self.signature = signature
        self.step = -1

    def __reduce__(self) -> tuple[type[Failure], tuple[str, str, str, str]]:
        """By its own arguments, not by the text that Exception holds: processes send failures to each other."""
        return Failure, (self.check, self.view, self.detail, self.signature)


def fingerprint(connection: Any, view: str) -> tuple[Any, ...]:
    """A bag's hash: the same rows in any order give the same."""
    sql = f"SELECT count(*), sum(hash(fuzz_row)) FROM {quote(view)} AS fuzz_row"
    rows: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
    return rows[0]


def check_rows(connection: Any, view: str) -> None:
    """The view equals its recompute, which stands in the temporary table TRUTH."""
    surplus, missing = bag_difference(connection, f"SELECT * FROM {quote(view)}", f"SELECT * FROM {TRUTH}")
    if surplus or missing:
        raise Failure("wrong rows", view, f"surplus {surplus[:SHOWN]}, missing {missing[:SHOWN]}")


def check_columns(connection: Any, view: str) -> None:
    """Names and types are those of a CTAS of the query."""
    got = _columns(connection, quote(view))
    expected = _columns(connection, TRUTH)
    if got != expected:
        raise Failure("wrong columns", view, f"got {got}, expected {expected}")


def _columns(connection: Any, relation: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {relation}").fetchall()]


def view_version(connection: Any, view: str) -> int:
    key = f"memory.main.{view}".lower()
    rows = connection.execute("SELECT version FROM openivm.openivm_views WHERE view_key = ?", [key]).fetchall()
    return int(rows[0][0]) if rows else -1


def check_delta(connection: Any, view: str, since: int, until: int) -> None:
    """Old visible rows plus the published delta are the new visible rows, and no tuple cancels within the delta."""
    log = f"openivm_main.{quote('openivm_delta_openivm_visible_' + view)}"
    columns = ", ".join(quote(name) for name, _ in _columns(connection, quote(view)))
    delta = (
        f"SELECT {columns}, openivm_multiplicity AS fuzz_weight FROM {log} "
        f"WHERE openivm_batch > {since} AND openivm_batch <= {until}"
    )
    unbalanced = connection.execute(
        f"SELECT {columns}, sum(fuzz_weight) AS fuzz_sum FROM "
        f"(SELECT {columns}, 1 AS fuzz_weight FROM {OLD} UNION ALL {delta} UNION ALL "
        f"SELECT {columns}, -1 FROM {quote(view)}) GROUP BY ALL HAVING fuzz_sum <> 0"
    ).fetchall()
    if unbalanced:
        raise Failure("wrong delta", view, f"old + delta - new is not empty: {unbalanced[:SHOWN]}")
    cancelling = connection.execute(
        f"SELECT {columns}, list(fuzz_weight) FROM ({delta}) GROUP BY {columns} "
        "HAVING sum(fuzz_weight) = 0 OR (min(fuzz_weight) < 0 AND max(fuzz_weight) > 0) OR bool_or(fuzz_weight IS NULL)"
    ).fetchall()
    if cancelling:
        raise Failure("delta not net", view, f"weights that cancel: {cancelling[:SHOWN]}")


def catalog_state(connection: Any) -> dict[str, tuple[Any, ...]]:
    """A hash of every table of the catalog and of every change log: a refresh without a change touches none of them."""
    tables = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT temporary AND (schema_name = 'openivm' "
        "OR (schema_name LIKE 'openivm!_%' ESCAPE '!' AND table_name LIKE 'openivm!_delta!_%' ESCAPE '!'))"
    ).fetchall()
    if not tables:
        return {}
    names = [f"{quote(schema)}.{quote(table)}" for schema, table in tables]
    hashes = (f"SELECT {literal(name)}, count(*), sum(hash(fuzz_row)) FROM {name} AS fuzz_row" for name in names)
    return {row[0]: row for row in connection.execute(" UNION ALL ".join(hashes)).fetchall()}


def check_rest(engine: Any, connection: Any, view: str) -> None:
    """A second refresh at once says "none" and writes nothing."""
    before = catalog_state(connection)
    result = engine.refresh(view)
    if result.strategy != "none":
        raise Failure("second refresh", view, f"strategy {result.strategy!r} ({result.reason}) without any change")
    after = catalog_state(connection)
    if before != after:
        changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        raise Failure("second refresh", view, f"wrote to {', '.join(changed)}")

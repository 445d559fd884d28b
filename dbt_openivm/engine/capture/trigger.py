"""Capture by triggers: the writer's own transaction writes the change log. DuckDB 2.0 and later."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dbt_openivm.compiler.keys import blurred_conditions, blurred_groups
from dbt_openivm.engine.capture.base import Base, Capture, Probe
from dbt_openivm.engine.capture.log import (
    TIMESTAMP_SQL,
    create_log,
    drop_table,
    is_relation,
    quoted_columns,
    widen_log,
)
from dbt_openivm.engine.session import Row
from dbt_openivm.errors import UnsafeError
from dbt_openivm.names import RelationName, literal, quote

#: event -> does it add rows, does it remove rows
EVENTS = {"INSERT": (True, False), "UPDATE": (True, True), "DELETE": (False, True)}
REMEDY = "Set 'capture: diff' for it."


@dataclass(frozen=True)
class Unnumbered:
    """Rows of a log without a batch number, by the sign of their weight."""

    added: int
    removed: int


class TriggerCapture(Capture):
    """Three AFTER statement triggers on a table write what every statement added and removed."""

    kind: ClassVar[str] = "trigger"

    @cached_property
    def triggers(self) -> frozenset[Row]:
        """(database, schema, table, trigger) of all triggers, in lower case, as this capture object first saw them."""
        return frozenset(
            tuple(str(part).lower() for part in row)
            for row in self.session.execute(
                "SELECT database_name, schema_name, table_name, trigger_name FROM duckdb_triggers()"
            )
        )

    def refusal(self, base: Base) -> str | None:
        if base.relation is None:
            return f"{base.key} is no table, so it cannot have triggers. {REMEDY}"
        if base.relation.database.lower() != base.schema.database.lower():
            return (
                f"{base.key} lies in another database than its views ({base.schema.database}), and a trigger can write"
                f" to its own database only. {REMEDY}"
            )
        [(version, tables)] = self.session.execute(
            "SELECT version(), (SELECT count(*) FROM duckdb_tables()"
            f" WHERE {is_relation(base.relation, 'table')} AND NOT temporary)"
        )
        if _major(version) < 2:
            return f"capture: trigger needs DuckDB 2.0 or later, this is {version}. {REMEDY}"
        return None if tables else f"{base.key} is no table, so it cannot have triggers. {REMEDY}"

    def install(self, base: Base) -> None:
        """Create log and triggers.

        A writer that began before and is still open gets an error from DuckDB when it commits; it has to run again.
        """
        table = _table(base)
        self._fence(table)
        create_log(self.session, self.render, base, base.from_sql)
        self._create_triggers(base)

    def widen(self, base: Base, wider: Base) -> None:
        self._fence(_table(base))
        self._drop_triggers(base)
        widen_log(self.session, self.render, base, wider, base.from_sql)
        self._create_triggers(wider)

    def collect(self, base: Base, batch: int) -> int:
        arguments = {"log": base.objects["delta"].sql, "batch": batch}
        [(numbered,)] = self.session.execute(self.render("ivm_capture_number", arguments))
        return int(numbered)

    def probe(self, base: Base) -> Probe:
        shape = self.unnumbered(base)
        if not self.is_whole(base):
            return Probe(_broken_text(base), pending=True)
        if shape.added and shape.removed and self.is_blurred(base):
            return Probe(_blurred_text(base), pending=True)
        return Probe(None, pending=bool(shape.added or shape.removed))

    def unnumbered(self, base: Base) -> Unnumbered:
        """What triggers have logged since the last capture."""
        if self.session.execute(f"SELECT count(*) FROM {base.objects['delta'].sql}") == [(0,)]:
            return Unnumbered(0, 0)  # an empty log, the usual case, shows in the table's metadata
        [row] = self.session.execute(f"SELECT {unnumbered_columns(base)}")
        added, removed = added_and_removed(*row)
        return Unnumbered(int(added), int(removed))

    def is_whole(self, base: Base) -> bool:
        """Whether all triggers are there."""
        return wanted_triggers(base) <= self.triggers

    def is_blurred(self, base: Base) -> bool:
        """Whether the logged rows may differ from what the table holds: see `blurred_conditions`."""
        blurred = self._blurred_sql(base)
        return bool(blurred and self.session.execute(blurred)[0][0])

    def uninstall(self, base: Base) -> None:
        self._drop_triggers(base)
        drop_table(self.session, base.objects["delta"])

    def current(self, base: Base) -> str:
        return base.from_sql

    def _blurred_sql(self, base: Base) -> str | None:
        """One row: can the pending rows differ from what the table holds? None where no column lends itself to that."""
        conditions, groups = blurred_conditions(base.columns), blurred_groups(base.columns)
        if not conditions and not groups:
            return None
        arguments = {"log": base.objects["delta"].sql, "conditions": conditions, "groups": groups}
        return self.render("ivm_capture_blurred", arguments)

    def _create_triggers(self, base: Base) -> None:
        self._drop_triggers(base)
        for event, (added, removed) in EVENTS.items():
            arguments = {
                "trigger": quote(_trigger_name(base, event)),
                "event": event,
                "table": _table(base).sql,
                "log": base.objects["delta"].sql,
                "columns": quoted_columns(base),
                "added": added,
                "removed": removed,
                "timestamp": TIMESTAMP_SQL,
            }
            self.session.execute(self.render("ivm_capture_trigger", arguments))

    def _drop_triggers(self, base: Base) -> None:
        """Drop what is there under our names: DROP TRIGGER IF EXISTS fails where the table is gone."""
        found = self.session.execute(f"SELECT trigger_name FROM duckdb_triggers() WHERE {_is_trigger(base)}")
        for (name,) in found:
            self.session.execute(f"DROP TRIGGER {quote(name)} ON {_table(base).sql}")

    def _fence(self, table: RelationName) -> None:
        """Make DuckDB refuse the commit of every writer that does not know the triggers of this transaction.

        A transaction sees the catalog as it was when it began: a writer that is open now would write past the triggers,
        and its rows would be in no log. Setting the comment that the table already has changes nothing, but is an
        ALTER, and a writer of a table that was altered meanwhile cannot commit.
        """
        rows = self.session.execute(f"SELECT comment FROM duckdb_tables() WHERE {is_relation(table, 'table')}")
        if not rows:
            raise UnsafeError(f"The table {table} does not exist any more.")
        comment = "NULL" if rows[0][0] is None else literal(rows[0][0])
        self.session.execute(f"COMMENT ON TABLE {table.sql} IS {comment}")


def _table(base: Base) -> RelationName:
    assert base.relation is not None  # `refusal` let it pass
    return base.relation


def unnumbered_columns(base: Base) -> str:
    """SQL after SELECT of one row: how many logged rows have no batch number, and the sum of their multiplicities.

    Two filtered counts would say `added_and_removed` at once, and take DuckDB twice as long to plan.
    """
    return f"count(*), sum(openivm_multiplicity) FROM {base.objects['delta'].sql} WHERE openivm_batch IS NULL"


def added_and_removed(rows: int, balance: int | None) -> tuple[int, int]:
    """From how many rows triggers logged, each of multiplicity 1 or -1, and their sum."""
    added = (int(rows) + int(balance or 0)) // 2
    return added, int(rows) - added


def _trigger_name(base: Base, event: str) -> str:
    """Unique, since the name of the log is."""
    return f"{base.objects['delta'].name}_{event.lower()}"


def _is_trigger(base: Base) -> str:
    names = ", ".join(literal(_trigger_name(base, event).lower()) for event in EVENTS)
    return f"{is_relation(_table(base), 'table')} AND lower(trigger_name) IN ({names})"


def wanted_triggers(base: Base) -> frozenset[Row]:
    """(database, schema, table, trigger) of the triggers that must be there, in lower case."""
    table = _table(base)
    names = (_trigger_name(base, event) for event in EVENTS)
    return frozenset((table.database.lower(), table.schema.lower(), table.name.lower(), name.lower()) for name in names)


def _broken_text(base: Base) -> str:
    return f"a trigger of the capture of {base.key} is gone: the table was replaced, or the trigger dropped"


def _blurred_text(base: Base) -> str:
    return (
        f"an UPDATE of {base.key} replaced a value by one that DuckDB calls equal (0.0 and -0.0, 30 days and 1 month),"
        " and whether it was stored cannot be told"
    )


def _major(version: str) -> int:
    return int(version.lstrip("v").split(".", 1)[0])

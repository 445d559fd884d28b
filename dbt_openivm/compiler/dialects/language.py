"""How the steps of a program are said on an engine: which statements a step becomes, and in what words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_openivm.compiler.dialects import writing
from dbt_openivm.compiler.dialects.postgres import PostgresWriter
from dbt_openivm.compiler.dialects.writing import Writer
from dbt_openivm.compiler.plan import Step

TEMPORARY = {
    "ivm_keep_query": "name", "ivm_keep_rows": "name", "ivm_find_stale": "name", "ivm_consolidate": "delta",
}  # fmt: skip
"""Steps that fill a temporary table, and the argument that names it."""


class Language:
    """DuckDB, in whose words the compiler writes.

    Attributes:
        name: of the dialect, as in ``facts.target_dialect``.
        writer: None where the compiler's words are right.
        longest_name: bytes of a name that the engine keeps.
    """

    name = "duckdb"
    longest_name = 1 << 20
    writer: Writer | None = None

    def arguments(self, step: Step, verbatim: str | None = None) -> Mapping[str, Any]:
        """The arguments of a step in the engine's words.

        Args:
            verbatim: a query that is in the engine's words already.
        """
        if self.writer is None:
            return step.arguments
        whole = {name: value for name, value in step.arguments.items() if value == verbatim and name == "query"}
        others = {name: value for name, value in step.arguments.items() if name not in whole}
        return {**writing.arguments(self.writer, others), **whole}

    def cleared(self, _tables: Sequence[str], _views: Sequence[str]) -> list[Step]:
        """Remove the tables and views that an earlier setup has left, where creating does not replace them."""
        return []

    def captured(self, _table: str, _log: str, _names: Mapping[str, str], _columns: Sequence[str]) -> list[Step]:
        """Have the engine itself put the changes of a table into its log.

        Args:
            _names: "function" and "trigger", what to call them, as SQL.
            _columns: of the table.
        """
        return []

    def built(self, _target: str, _keys: Sequence[str]) -> list[Step]:
        """Have a new state found by its keys.

        Args:
            _keys: columns of the state; none where its rows have no keys.
        """
        return []

    def promised(self) -> list[Step]:
        """Check what a refresh relies on besides the facts."""
        return []

    def refreshing(self, step: Step) -> list[Step]:
        """The statements of a step of a refresh."""
        return [step]


class Postgres(Language):
    name = "postgres"
    longest_name = 63
    writer = PostgresWriter()

    def cleared(self, tables: Sequence[str], views: Sequence[str]) -> list[Step]:
        objects = [("VIEW", name) for name in reversed(views)] + [("TABLE", name) for name in tables]
        return [Step("ivm_drop", {"kind": kind, "name": name}, f"drop an earlier {name}") for kind, name in objects]

    def captured(self, table: str, log: str, names: Mapping[str, str], columns: Sequence[str]) -> list[Step]:
        function = {"function": names["function"], "table": table, "log": log, "columns": list(columns)}
        steps = [Step("ivm_log_function", function, f"create the function that logs changes of {table}")]
        for event in ("INSERT", "UPDATE", "DELETE", "TRUNCATE"):
            arguments = {**function, "trigger": names[event], "event": event}
            steps.append(Step("ivm_log_trigger", arguments, f"log every {event} of {table}"))
        return steps

    def built(self, target: str, keys: Sequence[str]) -> list[Step]:
        index = Step("ivm_index_state", {"target": target, "columns": list(keys)}, "index the state by its keys")
        return [*([index] if keys else []), Step("ivm_analyze", {"target": target}, "take statistics of the state")]

    def promised(self) -> list[Step]:
        """All statements must see one state of the tables and their logs."""
        label = "check that the transaction sees one state"
        return [Step("ivm_check_isolation", {}, label, expect=0, returns=("the transaction sees more than one state",))]

    def refreshing(self, step: Step) -> list[Step]:
        """A table that a view reads cannot be replaced: its rows are.

        Nothing is known of a temporary table before it is looked at; joins would be planned as with a large one.
        """
        if step.macro in TEMPORARY:
            name = step.arguments[TEMPORARY[step.macro]]
            return [step, Step("ivm_analyze", {"target": name}, f"take statistics: {step.label}", after=step.after)]
        if step.macro != "ivm_create_state":
            return [step]
        target, query = step.arguments["target"], step.arguments["query"]
        clear = Step("ivm_clear_log", {"log": target}, f"{step.label}: clear it")
        fill = Step("ivm_fill_state", {"target": target, "query": query}, step.label, step.after, step.counts)
        return [clear, fill]


LANGUAGES: Mapping[str, Language] = {language.name: language for language in (Language(), Postgres())}

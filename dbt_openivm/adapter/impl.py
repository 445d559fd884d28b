"""The adapter: dbt-duckdb's, and what the materialization `ivm_view` and our operations call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.duckdb.impl import DuckDBAdapter

from dbt_openivm.adapter import operations
from dbt_openivm.adapter.config import OpenIvmConfig
from dbt_openivm.adapter.errors import as_dbt_errors
from dbt_openivm.adapter.refresh import Refresher


class OpenIvmAdapter(DuckDBAdapter):
    """dbt-duckdb's adapter with incrementally maintained views.

    The connection manager stays dbt-duckdb's own class: it keeps its environment on itself, and parts of dbt-duckdb ask
    that class for it by name. So only `type` says who we are.
    """

    AdapterSpecificConfigs = OpenIvmConfig

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        self._refresher = Refresher(self.connections, getattr(config, "project_root", None))

    @classmethod
    def type(cls) -> str:
        return "openivm"

    @available.parse_none
    def ivm_check(self, context: Mapping[str, Any]) -> None:
        """Check a model's configuration and database; set the database up on first use."""
        with as_dbt_errors():
            self._refresher.check(context, set_up=not operations.is_limited_run(self.config))

    @available.parse_none
    def ivm_lock(self, context: Mapping[str, Any]) -> None:
        """Keep other models from capturing while a hook's transaction is open."""
        with as_dbt_errors():
            self._refresher.lock(context)

    @available.parse_none
    def ivm_prepare(self, context: Mapping[str, Any], inside: bool) -> None:
        """Compile a model and capture the changes of its sources; `inside` the transaction that a hook has opened."""
        with as_dbt_errors():
            self._refresher.prepare(context, inside)

    @available.parse_none
    def ivm_begin(self) -> None:
        """Open the model's transaction if no hook has."""
        self._refresher.session.ensure_transaction()

    @available.parse_none
    def ivm_apply(self) -> Any:
        """Refresh a prepared model inside dbt's transaction, and say what was done."""
        with as_dbt_errors():
            return self._refresher.apply()

    @available.parse(lambda *_, **__: False)
    def ivm_is_limited_run(self) -> bool:
        """Whether this run compiles models over none or some of their rows (`--empty`, `--sample`)."""
        return operations.is_limited_run(self.config)

    @available.parse_none
    def ivm_limited_query(self, context: Mapping[str, Any]) -> str:
        """The query of a model in a limited run, over what its parents' queries say now."""
        with as_dbt_errors():
            return self._refresher.limited_query(context)

    @available.parse_none
    def ivm_validated(self, context: Mapping[str, Any]) -> None:
        """Let the models below read this model's query in place of the view that is there."""
        self._refresher.validated(context)

    @available.parse(lambda *_, **__: False)
    def ivm_is_maintained(self, relation: Any) -> bool:
        """Whether a relation is in the catalog of maintained views."""
        with as_dbt_errors():
            return operations.is_maintained(self._refresher, relation)

    @available.parse(lambda *_, **__: "")
    def ivm_definition(self, relation: Any) -> str:
        """The query of a maintained view as its author wrote it."""
        with as_dbt_errors():
            return operations.definition(self._refresher, relation, operations.is_limited_run(self.config))

    @available.parse(lambda *_, **__: [])
    def ivm_trigger_drops(self, relation: Any) -> list[str]:
        """The statements that drop the triggers of a capture on a table."""
        with as_dbt_errors():
            return operations.trigger_drops(self._refresher, relation)

    @available.parse(lambda *_, **__: "")
    def ivm_operation(self, name: str, context: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
        """Run one of our operations (`operations.run` has their names) and return its text."""
        with as_dbt_errors():
            return operations.run(name, self, context, arguments)

    @property
    def refresher(self) -> Refresher:
        return self._refresher

    def post_model_hook(self, config: Any, context: Any) -> None:
        """dbt calls this whatever happened to the model."""
        try:
            with as_dbt_errors():
                self._refresher.release()
        finally:
            super().post_model_hook(config, context)

"""FULL_REFRESH: recompute the query as it was written; the published delta is still the net difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_openivm.compiler.plan import FULL_REFRESH, NodeProgram, Step, Target
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.errors import InternalError


@dataclass(frozen=True, eq=False)
class FullProgram(NodeProgram):
    """Attributes:
    sql: the user's query.
    names: its columns.
    """

    sql: str
    names: tuple[str, ...]
    refresh_type = FULL_REFRESH

    def visible_columns(self) -> tuple[str, ...]:
        return self.names

    def state_query(self, states: Mapping[str, SourceState]) -> str:  # noqa: ARG002 - reads its sources live
        return self.sql.strip().rstrip(";")

    def incremental(self, states: Mapping[str, SourceState], target: Target) -> list[Step]:  # noqa: ARG002 - has none
        raise InternalError("A FULL_REFRESH view has no incremental program.")

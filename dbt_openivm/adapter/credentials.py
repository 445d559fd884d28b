"""The profile: dbt-duckdb's, under our type."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.duckdb.credentials import DuckDBCredentials


@dataclass
class OpenIvmCredentials(DuckDBCredentials):
    """Everything a dbt-duckdb profile holds is accepted here and means the same."""

    @property
    def type(self) -> str:
        return "openivm"

"""Databases in which no state can be kept are refused with what they are and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_openivm.engine.database import check_writable
from dbt_openivm.errors import ConfigError


class FakeSession:
    """Answers with a version, and with the type of a database and whether it is read-only."""

    def __init__(self, version: str, *databases: tuple[str, bool]) -> None:
        self.version = version
        self.databases = list(databases)

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        return [(self.version,)] if "pragma_version" in sql else self.databases

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...


@pytest.mark.parametrize(
    ("version", "database", "words"),
    [
        ("v1.3.2", ("duckdb", False), ["DuckDB 1.3 is too old", "MERGE INTO", "1.4"]),
        ("v2.0.1", ("motherduck", False), ["'there'", "'motherduck'", "materialized: table"]),
        ("v2.0.1", ("ducklake", False), ["'ducklake'"]),
        ("v2.0.1", ("duckdb", True), ["read-only", "Attach it writable"]),
    ],
)
def test_refused(version: str, database: tuple[str, bool], words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        check_writable(FakeSession(version, database), "there")
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("version", ["v1.4.0", "v1.5.5", "v2.0.1", "main-build"])
def test_accepted(version: str) -> None:
    check_writable(FakeSession(version, ("duckdb", False)), "there")

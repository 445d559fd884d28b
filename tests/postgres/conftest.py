"""Tests on a real PostgreSQL. One server a test process, one schema a test."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres import server


@pytest.fixture(scope="session")
def where() -> Iterator[str]:
    folder = server.binaries()
    if folder is None and os.environ.get("OPENIVM_REQUIRE_POSTGRES"):
        pytest.fail("There are no programs of a PostgreSQL server, 15 or later, but OPENIVM_REQUIRE_POSTGRES is set.")
    if folder is None:
        pytest.skip("There are no programs of a PostgreSQL server, 15 or later (Debian: apt-get install postgresql).")
    with server.running(folder) as where:
        yield where


@pytest.fixture
def con(where: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA tried")
        connection.execute("SET search_path = tried")
        connection.execute("SET client_min_messages = warning")
        yield connection
        connection.execute("DROP SCHEMA tried CASCADE")

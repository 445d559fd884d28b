"""dbt Labs' conformance tests for adapters, run with `type: openivm`."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403 - the fixtures that the base classes use


@pytest.fixture(scope="class")
def dbt_profile_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("conformance") / "warehouse.duckdb"
    return {"type": "openivm", "threads": 4, "path": str(path)}

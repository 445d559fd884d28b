"""Case 33 through dbt: time passes between two runs, and nothing else happens."""

from __future__ import annotations

import time

import pytest

from tests.integration.project import Project

pytestmark = pytest.mark.integration

RECENT = "SELECT id, seen FROM events WHERE seen > now() - INTERVAL 8 SECOND"
COUNTED = "SELECT count(*) AS n FROM {{ ref('recent') }}"


@pytest.mark.parametrize("capture", ["diff", "trigger"])
def test_case_33_rows_leave_as_time_passes(project: Project, capture: str) -> None:
    """A row leaves a sliding window between two runs: no delta is no reason to skip, and the child follows."""
    project.execute(
        "CREATE TABLE events (id INTEGER, seen TIMESTAMPTZ)",
        "INSERT INTO events VALUES (1, now() - INTERVAL 1 DAY), (2, now()), (3, now() + INTERVAL 1 DAY)",
    )
    project.model("recent", RECENT, capture=capture)
    project.model("counted", COUNTED)
    first = project.run()
    assert first.response("recent")["refresh_type"] == "SIMPLE_PROJECTION"
    time.sleep(8)
    second = project.run()
    assert second.strategy("recent") in ("incremental", "none")
    assert project.query("SELECT id FROM recent ORDER BY id") == [(3,)]
    assert project.query("SELECT n FROM counted") == [(1,)]
    third = project.run()
    assert third.strategy("recent") == "none"
    assert third.strategy("counted") == "none"

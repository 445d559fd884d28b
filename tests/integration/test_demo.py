"""`make demo`, as a newcomer runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.integration
def test_demo_ends_with_every_model_equal_to_its_recompute(tmp_path: Path) -> None:
    command = [sys.executable, "integration_tests/demo.py", "--database", str(tmp_path / "demo.duckdb")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "16 of 16 models equal their recompute" in done.stdout
    counted = re.search(r"(\d+) of (\d+) refreshes were incremental", done.stdout)
    assert counted is not None
    incremental, refreshes = map(int, counted.groups())
    # Only the backlog, which is larger than what was there, may be recomputed instead.
    assert refreshes == 7 * 16
    assert incremental >= 6 * 16

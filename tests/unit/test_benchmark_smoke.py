"""`make bench` and `make bench-apply` on little data: every side runs, and every view equals its recompute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_small_bench_is_exact(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--small", "--no-dbt", "--workdir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    times = [line for line in done.stdout.splitlines() if line.endswith("| yes   |")]
    assert len(times) == 33  # four changes of eight views, and one more of E
    assert "compile, cold" in done.stdout


@pytest.mark.slow
def test_apply_strategies_leave_the_same_states(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.apply", "--quick", "--workdir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([line for line in done.stdout.splitlines() if line.startswith("| 1")]) == 8
    assert list(tmp_path.iterdir()) == []

"""A project with `type: openivm` runs from an editable install and from a wheel, each in a fresh virtual environment.

The wheel's environment has DuckDB 1.5, so that the older generation is covered too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.packaging, pytest.mark.slow]

ROOT = Path(__file__).parents[2]

FILES = {
    "dbt_project.yml": "{name: fresh, version: 1.0.0, config-version: 2, profile: fresh}",
    "profiles.yml": "fresh: {target: dev, outputs: {dev: {type: openivm, path: fresh.duckdb, threads: 2}}}",
    "seeds/sales.csv": "product,price\na,1\na,2\nb,3\n",
    "models/total.sql": "{{ config(materialized='ivm_view') }}\n"
    "select product, sum(price) as total from {{ ref('sales') }} group by product",
    "models/schema.yml": "models: [{name: total, data_tests: [ivm_equals_recompute]}]",
}


@pytest.mark.parametrize("mode", ["editable", "wheel"])
def test_a_project_runs_from_a_fresh_install(tmp_path: Path, mode: str) -> None:
    python = create_environment(tmp_path)
    if mode == "editable":
        pip(python, "install", "--editable", str(ROOT))
    else:
        pip(python, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT))
        pip(python, "install", *map(str, tmp_path.glob("dbt_openivm-*.whl")), "duckdb==1.5.*")
    project = write_project(tmp_path / "project")

    dbt(python, project, "build")
    (project / "seeds/sales.csv").write_text("product,price\na,1\nb,3\nb,4\nc,5\n")
    output = dbt(python, project, "build")
    assert "AGGREGATE_GROUP incremental" in output
    assert "total" in dbt(python, project, "run-operation", "ivm_status")
    assert "total" in dbt(python, project, "show", "--select", "total")
    (project / "facts.json").write_text('{"schemas": {"sales": {"product": "VARCHAR", "price": "INTEGER"}}}')
    (project / "query.sql").write_text("select product, sum(price) as total from sales group by product")
    answer = run(python, project, "dbt-openivm", "compile", "query.sql", "--facts", "facts.json")
    assert json.loads(answer)["refresh_type"]["name"] == "AGGREGATE_GROUP"


def create_environment(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    return folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"


def pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=python.parent)
    assert result.returncode == 0, result.stdout + result.stderr


def write_project(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def dbt(python: Path, project: Path, *arguments: str) -> str:
    """Run dbt in the project's folder, away from the checkout."""
    return run(python, project, "dbt", "--no-use-colors", *arguments)


def run(python: Path, project: Path, program: str, *arguments: str) -> str:
    """Run a program of the environment in the project's folder."""
    command = [str(python.parent / program), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout

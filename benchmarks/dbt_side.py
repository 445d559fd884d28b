"""The same views as dbt models: ivm_view, table, and a hand-written incremental merge."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import differences, recompute
from benchmarks.sales import Change, Size, change
from benchmarks.sides import Samples, connect
from benchmarks.views import View

KINDS = ("ivm_view", "table", "incremental")
TABLES = ("sales", "products", "customers")


@dataclass(frozen=True)
class DbtSide:
    """A dbt project with one model of one kind, on its own copy of the data."""

    view: View
    kind: str
    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "bench.duckdb"

    def create(self, base: Path) -> None:
        """Write the project, and build its model."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "models").mkdir(parents=True)
        shutil.copy(base, self.database)
        self._write(
            "dbt_project.yml", {"name": "bench", "profile": "bench", "flags": {"send_anonymous_usage_stats": False}}
        )
        output = {"type": "openivm", "path": str(self.database), "threads": 1}
        self._write("profiles.yml", {"bench": {"target": "dev", "outputs": {"dev": output}}})
        self._write("models/sources.yml", {"sources": [_sources()]})
        (self.folder / "models" / "by_dbt.sql").write_text(self._model())
        self.run()

    def run(self) -> float:
        """`dbt run`: the milliseconds in which dbt executed the model."""
        from dbt.cli.main import dbtRunner

        os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
        places = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        outcome = dbtRunner().invoke(["run", "--quiet", *places])
        run: Any = outcome.result
        if not outcome.success:
            said = outcome.exception or "\n".join(str(result.message) for result in run.results)
            raise SystemExit(f"dbt run failed for {self.kind} of view {self.view.name}: {said}")
        return _execution(run.results[0])

    def measure(self, size: Size, changes: list[Change], repeat: int) -> dict[str, Samples]:
        """Apply each change `repeat` times, with a `dbt run` after each."""
        return {
            what.key: self._series(size, what, range(number * 100, number * 100 + repeat))
            for number, what in enumerate(changes)
        }

    def _series(self, size: Size, what: Change, steps: range) -> Samples:
        samples = Samples()
        for step in steps:
            with connect(self.database) as con:
                samples.write.append(change(con, size, what, step))
            samples.refresh.append(self.run())
            with connect(self.database) as con:
                recompute(con, self.view)
                samples.differences += differences(con, self.view, "by_dbt")
        return samples

    def _model(self) -> str:
        keys = list(self.view.unique_key)
        config = {
            "ivm_view": "materialized='ivm_view'",
            "table": "materialized='table'",
            "incremental": f"materialized='incremental', incremental_strategy='merge', unique_key={keys}",
        }[self.kind]
        query = self.view.incremental if self.kind == "incremental" else self.view.sql
        query = re.sub(rf"\b(FROM|JOIN) ({'|'.join(TABLES)})\b", r"\1 {{ source('main', '\2') }}", query)
        return f"{{{{ config({config}) }}}}\n{query}"

    def _write(self, name: str, content: dict[str, Any]) -> None:
        # JSON is YAML.
        (self.folder / name).write_text(json.dumps(content, indent=2))


def _sources() -> dict[str, Any]:
    captured = {"meta": {"openivm": {"capture": "trigger"}}}
    return {"name": "main", "schema": "main", "tables": [{"name": table, "config": captured} for table in TABLES]}


def _execution(result: Any) -> float:
    execute = next(step for step in result.timing if step.name == "execute")
    return float((execute.completed_at - execute.started_at).total_seconds() * 1000)

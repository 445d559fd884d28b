"""The dbt project of this folder, run through dbt's own Python entry point."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner, dbtRunnerResult
from dbt_common.events.base_types import EventMsg

FOLDER = Path(__file__).parent.parent


@dataclass(frozen=True)
class ModelRun:
    """What dbt reported of one model."""

    name: str
    sql: str
    response: dict[str, Any]
    milliseconds: float


class DbtError(Exception):
    """A dbt command failed; the message is what dbt printed."""


class Project:
    """Runs dbt quietly on one database file; what dbt says is kept for the day that it fails."""

    def __init__(self, database: Path, threads: int = 1) -> None:
        self.database = database
        self._options = [
            "--project-dir",
            str(FOLDER),
            "--profiles-dir",
            str(FOLDER),
            "--log-level",
            "none",
            "--no-use-colors",
        ]
        self._options += ["--target-path", str(database.parent / "target"), "--log-path", str(database.parent / "logs")]
        os.environ["OPENIVM_DEMO_DB"] = str(database)
        os.environ["OPENIVM_DEMO_THREADS"] = str(threads)

    def seed(self) -> None:
        self._invoke("seed")

    def run(self) -> list[ModelRun]:
        """`dbt run`: what happened to each model, in the order of the run."""
        return [_model_run(result) for result in self._invoke("run").result.results]

    def test(self) -> int:
        """`dbt test`: the number of tests, all of which passed."""
        return len(self._invoke("test").result.results)

    def _invoke(self, command: str) -> dbtRunnerResult:
        said: list[str] = []

        def listen(event: EventMsg) -> None:
            if event.info.level != "debug":
                said.append(event.info.msg)

        outcome = dbtRunner(callbacks=[listen]).invoke([command, *self._options])
        if not outcome.success:
            raise DbtError("\n".join([*said, str(outcome.exception or "")]))
        return outcome


def _model_run(result: Any) -> ModelRun:
    return ModelRun(result.node.name, result.node.compiled_code, result.adapter_response, _milliseconds(result))


def _milliseconds(result: Any) -> float:
    """The refresh as the engine timed it; dbt's own time for the model where it did not."""
    if "refresh_ms" in result.adapter_response:
        return float(result.adapter_response["refresh_ms"])
    execute = next(step for step in result.timing if step.name == "execute")
    return (execute.completed_at - execute.started_at).total_seconds() * 1000

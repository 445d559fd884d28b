"""A dbt project in a temporary folder, run through dbt's own API, and the database it builds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import yaml
from dbt.adapters.duckdb.connections import DuckDBConnectionManager
from dbt.cli.main import dbtRunner

Row = tuple[Any, ...]


class Run:
    """What one dbt command did."""

    def __init__(self, result: Any, messages: list[str]) -> None:
        self.success: bool = result.success
        self.exception = result.exception
        self.results = list(getattr(result.result, "results", None) or [])
        self.messages = messages

    @property
    def text(self) -> str:
        return "\n".join(self.messages)

    def of(self, name: str) -> Any:
        """The result of one node."""
        return next(result for result in self.results if result.node.name == name)

    def response(self, name: str) -> dict[str, Any]:
        return dict(self.of(name).adapter_response)

    def strategy(self, name: str) -> str:
        return str(self.response(name)["strategy"])

    def error(self, name: str) -> str:
        result = self.of(name)
        assert result.status == "error", f"{name} did not fail: {result.status}, {result.message}"
        return str(result.message)


class Project:
    """A project whose files are given as text."""

    def __init__(self, folder: Path, target: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self.path = folder / "warehouse.duckdb"
        folder.mkdir(parents=True, exist_ok=True)
        self.profile({"threads": 4, **(target or {})})
        self.config({})

    def profile(self, target: Mapping[str, Any]) -> None:
        output = {"type": "openivm", "path": str(self.path), **target}
        self.write("profiles.yml", yaml.safe_dump({"it": {"target": "dev", "outputs": {"dev": output}}}))

    def config(self, extra: Mapping[str, Any]) -> None:
        base = {"name": "it", "version": "1.0.0", "config-version": 2, "profile": "it"}
        self.write("dbt_project.yml", yaml.safe_dump({**base, **extra}))

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def model(self, name: str, sql: str, **config: Any) -> None:
        """Write a model; an ivm_view unless `materialized` says otherwise."""
        settings = {"materialized": "ivm_view", **config}
        arguments = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        self.write(f"models/{name}.sql", f"{{{{ config({arguments}) }}}}\n{sql}\n")

    def remove(self, name: str) -> None:
        (self.folder / f"models/{name}.sql").unlink()

    def sources(self, *tables: str, meta: Mapping[str, Any] | None = None) -> None:
        """Declare tables of the schema `main` as the source `src`."""
        entries = [{"name": table, **({"config": {"meta": dict(meta)}} if meta else {})} for table in tables]
        self.write(
            "models/sources.yml", yaml.safe_dump({"sources": [{"name": "src", "schema": "main", "tables": entries}]})
        )

    def dbt(self, *arguments: str) -> Run:
        """Run a dbt command."""
        messages: list[str] = []

        def listen(event: Any) -> None:
            if event.info.level != "debug":
                messages.append(str(event.info.msg))

        runner = dbtRunner(callbacks=[listen])
        where = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        return Run(runner.invoke([*arguments, *where]), [re.sub(r"\x1b\[\d*m", "", m) for m in messages])

    def run(self, *arguments: str) -> Run:
        """`dbt run`, which must succeed."""
        return self.succeed("run", *arguments)

    def succeed(self, *arguments: str) -> Run:
        run = self.dbt(*arguments)
        assert run.success, f"dbt {' '.join(arguments)} failed: {run.exception}\n{run.text[-6000:]}"
        return run

    def fail(self, *arguments: str) -> Run:
        run = self.dbt(*arguments)
        assert not run.success, f"dbt {' '.join(arguments)} succeeded"
        return run

    def operation(self, name: str, **arguments: Any) -> str:
        """The text that an operation prints."""
        run = self.succeed("run-operation", name, "--args", json.dumps(arguments))
        return run.text

    def execute(self, *statements: str) -> None:
        """Change the database from outside dbt, a statement a transaction."""
        with duckdb.connect(str(self.path)) as connection:
            for statement in statements:
                connection.execute(statement)

    def query(self, sql: str) -> list[Row]:
        with duckdb.connect(str(self.path)) as connection:
            return connection.execute(sql).fetchall()

    def rows(self, relation: str) -> list[Row]:
        return self.query(f"SELECT * FROM {relation} ORDER BY ALL")

    def assert_equal(self, relation: str, query: str) -> None:
        """The relation equals the query as a bag."""
        difference = self.query(f"({query} EXCEPT ALL FROM {relation}) UNION ALL (FROM {relation} EXCEPT ALL {query})")
        assert not difference, f"{relation} differs from its query in {len(difference)} rows: {difference[:10]}"

    def close(self) -> None:
        DuckDBConnectionManager.close_all_connections()

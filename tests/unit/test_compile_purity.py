"""The layers stay apart, imports stay light, and a plan depends on its input alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LOADED = "import sys; print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"

COMPILE_ALL = """
import pathlib, pkgutil, importlib
import dbt_openivm.compiler as compiler
for module in pkgutil.walk_packages(compiler.__path__, "dbt_openivm.compiler."):
    importlib.import_module(module.name)
"""

GOLDEN = """
import hashlib
import duckdb
from tests.golden.cases import cases, schema
from tests.golden.compiled import compiled
from tests.golden.show import show
connection = duckdb.connect()
for statement in schema():
    connection.execute(statement)
texts = [show(case, made) + made.plan.fingerprint for case in cases() for made in [compiled(connection, case.sql)]]
print(hashlib.sha256("".join(texts).encode()).hexdigest())
"""


def run(code: str, seed: str = "0") -> str:
    """Run code in a fresh process; returns what it prints."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(code: str) -> set[str]:
    return set(run(f"{code}\n{LOADED}").split())


def test_the_compiler_imports_neither_duckdb_nor_dbt() -> None:
    found = loaded_by(COMPILE_ALL)
    assert "sqlglot" in found
    assert not found & {"duckdb", "_duckdb", "dbt", "jinja2", "agate"}


def test_importing_the_package_is_light() -> None:
    """dbt imports every installed `dbt_*` module."""
    assert not loaded_by("import dbt_openivm") & {"sqlglot", "jinja2", "duckdb", "_duckdb", "dbt", "pandas", "numpy"}


def test_the_engine_does_not_import_dbt() -> None:
    found = loaded_by("from dbt_openivm import IvmEngine")
    assert not found & {"dbt", "agate", "pandas"}


def test_unknown_names_of_the_package() -> None:
    import dbt_openivm

    with pytest.raises(AttributeError, match="no_such"):
        dbt_openivm.no_such  # noqa: B018, reading it is the test


def test_equal_input_gives_equal_bytes() -> None:
    """All golden queries, in two processes that hash strings differently."""
    assert run(GOLDEN, "1") == run(GOLDEN, "2")

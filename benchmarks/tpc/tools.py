"""Fetch the generators, and keep what they made.

They are DuckDB extensions from PyPI (packages `duckdb-extension-*`, MIT), which hold the TPC's own generators and query
templates, under the TPC's licence: fetched here, not redistributed. An extension fits one version of
DuckDB only, so it runs in a process of its own with that version, whichever version the engine is tested with.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.tpc import generate

VERSION = "1.5.5"
WORKDIR = Path(__file__).parents[2] / "build" / "tpc"


class NotAvailableError(Exception):
    """The generators cannot be had on this machine."""


def data(suite: str, scale_factor: float, workdir: Path = WORKDIR) -> Path:
    """The folder with `<table>.parquet` and `queries.json` of a suite; made if it is not there.

    Raises:
        NotAvailableError: pip has no package for this machine, or cannot reach any.
    """
    folder = workdir / f"{suite}-{scale_factor:g}"
    if not folder.exists():
        tools = _tools(workdir)
        extension = tools / f"duckdb_extension_{suite}" / "extensions" / f"v{VERSION}" / f"{suite}.duckdb_extension"
        with tempfile.TemporaryDirectory(dir=workdir) as scratch:
            made = Path(scratch) / "data"
            made.mkdir()
            command = [sys.executable, generate.__file__, str(extension), suite, str(scale_factor), str(made)]
            _run(command, {**os.environ, "PYTHONPATH": str(tools)})
            _move(made, folder)
    return folder


def queries(folder: Path) -> dict[int, str]:
    """The suite's queries by their number."""
    texts = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    return {int(number): text.strip().removesuffix(";") for number, text in texts.items()}


def _tools(workdir: Path) -> Path:
    """The folder in which DuckDB and its extensions are installed, apart from the environment."""
    folder = workdir / f"duckdb-{VERSION}-{sys.implementation.cache_tag}"
    if not folder.exists():
        workdir.mkdir(parents=True, exist_ok=True)
        packages = [f"{name}=={VERSION}" for name in ("duckdb", "duckdb-extension-tpch", "duckdb-extension-tpcds")]
        with tempfile.TemporaryDirectory(dir=workdir) as scratch:
            made = Path(scratch) / "tools"
            pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps"]
            _run([*pip, "--target", str(made), *packages], {**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})
            _move(made, folder)
    return folder


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotAvailableError(f"{' '.join(command[:4])} .. failed: {(done.stderr or done.stdout).strip()[-500:]}")


def _move(made: Path, folder: Path) -> None:
    """Put a finished folder in its place; another process may have been faster."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.exists():
            raise
        shutil.rmtree(made, ignore_errors=True)

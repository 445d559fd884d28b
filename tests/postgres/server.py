"""A PostgreSQL server for tests and benchmarks: a fresh cluster in a temporary directory, reached by a Unix socket."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

OLDEST = 15
"""The first version with MERGE."""
SETTINGS = (
    "listen_addresses=", "fsync=off", "full_page_writes=off", "synchronous_commit=off", "shared_buffers=128MB",
    "max_connections=20", "autovacuum=off",
)  # fmt: skip
TRIES = 200


def binaries() -> Path | None:
    """The folder of the newest server programs that are installed; None if there are none."""
    found = [Path(path) for path in Path("/usr/lib/postgresql").glob("*/bin")]
    found += [Path(path).parent for path in [shutil.which("postgres")] if path]
    usable = [folder for folder in found if (folder / "initdb").exists() and version(folder) >= OLDEST]
    return max(usable, key=version, default=None)


def version(folder: Path) -> int:
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)", said)
    return int(found[1]) if found else 0


def owner() -> str | None:
    """Whom to run the server as: it refuses root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Start a server of these programs; yields how to connect to it."""
    user = owner()
    with tempfile.TemporaryDirectory(prefix="pg") as place:
        if user is not None:
            shutil.chown(place, user)
        data = Path(place) / "data"
        create = [
            folder / "initdb", "-D", data, "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync", "--locale=C",
            "--locale-provider=icu", "--icu-locale=en",
        ]  # fmt: skip
        subprocess.run(create, check=True, capture_output=True, user=user, cwd=place)
        settings = [part for setting in SETTINGS for part in ("-c", setting)]
        command = [folder / "postgres", "-D", data, "-k", place, *settings]
        with (Path(place) / "log").open("w") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, user=user, cwd=place)
        try:
            where = f"host={place} user=tester dbname=postgres"
            wait(where, server)
            yield where
        finally:
            server.terminate()
            server.wait()


def wait(where: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(TRIES):
        try:
            psycopg.connect(where).close()
        except psycopg.OperationalError:
            if server.poll() is not None:
                raise
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("The server did not start.")

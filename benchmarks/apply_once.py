"""One program in a process of its own, under a memory limit.

Reads JSON from standard input (database, memory_limit, statements), runs the statements in one transaction and prints
JSON: wall and CPU milliseconds, bytes resident at most, and the first line of the error where it failed. It imports
nothing but DuckDB, so that the peak is that of the statements.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import duckdb

from benchmarks.sales import NO_CHECKPOINT

STATUS = Path("/proc/self/status")


def main() -> None:
    """Run what standard input asks for."""
    asked = json.load(sys.stdin)
    config = {"memory_limit": asked["memory_limit"], "temp_directory": f"{asked['database']}.tmp"}
    with duckdb.connect(asked["database"], config=config) as con:
        con.execute(NO_CHECKPOINT)
        wall, cpu, error = time.perf_counter(), time.process_time(), None
        try:
            for statement in ("BEGIN", *asked["statements"], "COMMIT"):
                con.execute(statement).fetchall()
        except duckdb.OutOfMemoryException as failed:
            error = str(failed).splitlines()[0]
        took = {"wall": (time.perf_counter() - wall) * 1000, "cpu": (time.process_time() - cpu) * 1000}
        print(json.dumps({**took, "peak": resident_peak(), "error": error}))


def resident_peak() -> int:
    """Bytes; on Linux not from getrusage, which starts with the peak of the process that started this one."""
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()

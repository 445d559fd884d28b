"""Write a suite's tables as parquet files and its queries as JSON. Runs by itself, under the DuckDB of `tools.py`.

python generate.py EXTENSION_FILE SUITE SCALE_FACTOR FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}


def main(extension: str, suite: str, scale_factor: str, folder: Path) -> None:
    con = duckdb.connect()
    con.execute(f"LOAD '{extension}'")
    con.execute(f"CALL {GENERATORS[suite]}(sf={float(scale_factor)})")
    queries = con.execute(f"SELECT query_nr, query FROM {suite}_queries() ORDER BY query_nr").fetchall()
    (folder / "queries.json").write_text(json.dumps(dict(queries)), encoding="utf-8")
    for (table,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        con.execute(f"COPY {table} TO '{folder / table}.parquet'")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))

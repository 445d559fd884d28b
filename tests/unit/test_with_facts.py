"""`compile_with_facts`: its statements run one by one, its errors name the field, its bytes are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from dbt_openivm import compile_with_facts
from dbt_openivm.errors import ConfigError
from tests.bags import bag_difference

T = {"t": {"k": "INTEGER", "x": "INTEGER"}}
TU = {**T, "u": {"k": "INTEGER", "y": "INTEGER"}}
QUERIES = {
    "SELECT k, x + 1 AS x1 FROM t WHERE x > 1": T,
    "SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k": T,
    "SELECT k, max(x) AS m FROM t GROUP BY k HAVING count(*) > 1": T,
    "SELECT sum(x) AS s FROM t": T,
    "SELECT DISTINCT k FROM t": T,
    "SELECT t.k, x, y FROM t LEFT JOIN u ON t.k = u.k": TU,
    "SELECT t.k, sum(y) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k": TU,
    "SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n": T,
    "SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY x) AS r FROM t": T,
}


def apply(con: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[int, int]], weight: int) -> None:
    for k, v in rows:
        if weight > 0:
            con.execute(f"INSERT INTO {table} VALUES ({k}, {v})")
        else:
            column = con.execute(f"DESCRIBE {table}").fetchall()[1][0]
            con.execute(f"DELETE FROM {table} WHERE k = {k} AND {column} = {v}")
        con.execute(f"INSERT INTO openivm_delta_{table} BY NAME SELECT * REPLACE ({k} AS k), {weight} AS "
                    f"openivm_multiplicity FROM (SELECT * FROM (SELECT {k} AS k, {v} AS "
                    f"{'x' if table == 't' else 'y'}))")  # fmt: skip


@pytest.mark.parametrize("cascade", [False, True])
@pytest.mark.parametrize("query", QUERIES)
def test_statements_one_by_one(query: str, cascade: bool) -> None:
    schemas = QUERIES[query]
    made = compile_with_facts(query, {"version": 1, "schemas": schemas, "force_view_delta_cascade": cascade})
    con = duckdb.connect()
    for table, columns in schemas.items():
        con.execute(f"CREATE TABLE {table} ({', '.join(f'{n} {t}' for n, t in columns.items())})")
        con.execute(f"INSERT INTO {table} VALUES (1, 10), (1, 20), (2, 5)")
    for statement in made["setup"]:
        con.execute(statement["sql"])
    for inserts, deletes in [([(3, 7), (1, 30)], [(2, 5)]), ([(2, 9)], [(1, 10), (3, 7)]), ([], [(1, 20), (1, 30)])]:
        for table in schemas:
            apply(con, table, inserts, 1)
            apply(con, table, deletes, -1)
        for statement in made["statements"]:
            con.execute(statement["sql"])
        assert bag_difference(con, "SELECT * FROM openivm_visible_view", query) == ([], [])
    con.close()


def test_facts_change_the_plan() -> None:
    query = "SELECT t.k, sum(y) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k"
    mixed = compile_with_facts(query, {"version": 1, "schemas": TU})
    insert_only = compile_with_facts(query, {"version": 1, "schemas": TU, "assume_insert_only": True})
    one = compile_with_facts(query, {"version": 1, "schemas": TU, "delta_shape": {"u": "empty"}})
    assert len(str(insert_only["statements"])) < len(str(mixed["statements"]))
    assert "openivm_delta_u" not in {
        name for s in one["statements"] if "openivm_delta_t" in s["reads"] for name in s["reads"]
    }


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"nonsense": 1}, "nonsense"), ({"version": 2}, "version"), ({"target_dialect": "oracle"}, "target_dialect"),
        ({"compile_only": "yes"}, "compile_only"), ({"delta_shape": {"z": "empty"}}, "delta_shape.z"),
        ({"delta_shape": {"t": "odd"}}, "delta_shape.t"), ({"schemas": TU}, "schemas.u"),
        ({"schemas": {"t": {"k": "NOTYPE"}}}, "schemas.t"),
    ],
)  # fmt: skip
def test_errors_name_the_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigError, match=f"facts.{field}"):
        compile_with_facts("SELECT k FROM t", {"version": 1, "schemas": T, **change})


def test_the_command_line_writes_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT k, sum(x) AS s FROM t GROUP BY k")
    (tmp_path / "f.json").write_text(json.dumps({"version": 1, "schemas": T}))
    command = [sys.executable, "-m", "dbt_openivm.cli", "compile", "q.sql", "--facts", "f.json"]
    root = str(Path(__file__).parents[2])
    outputs = [
        subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": root, "PYTHONHASHSEED": seed},
                       capture_output=True, check=True).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0])["refresh_type"]["code"] == "AGGREGATE_GROUP"

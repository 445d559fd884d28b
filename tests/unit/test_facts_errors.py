"""Wrong facts are errors that name the path of the field; the command line; the same input gives the same bytes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from dbt_openivm import compile_with_facts
from dbt_openivm.cli import main
from dbt_openivm.engine.given_facts import DIALECTS, FIELDS, SHAPES
from dbt_openivm.errors import ConfigError, QueryError
from tests.unit.self_run import PAGE

ROOT = Path(__file__).parents[2]
T = {"t": {"k": "INTEGER", "x": "INTEGER"}}
TU = {**T, "u": {"k": "INTEGER", "y": "INTEGER"}}
QUERY = "SELECT t.k, y FROM t JOIN u ON t.k = u.k"
KEY = {"child_table": "t", "child_columns": ["k"], "parent_table": "u", "parent_columns": ["k"], "rely": True}

WRONG: list[tuple[Mapping[str, Any], str]] = [
    ({"nonsense": 1}, ".nonsense: unknown field; there are schema_version, target_dialect"),
    ({"schema_version": 2}, ".schema_version: 2 is of a later dbt-openivm; this one knows 1"),
    ({"schema_version": "1"}, ".schema_version: got '1', expected the number 1"),
    ({"schema_version": True}, ".schema_version: got True"),
    ({"schema_version": 0}, ".schema_version: got 0"),
    ({"target_dialect": "db2"}, ".target_dialect: got 'db2', expected duckdb or postgres"),
    ({"target_dialect": ["duckdb"]}, ".target_dialect: got ['duckdb']"),
    ({"compile_only": "yes"}, ".compile_only: got 'yes', expected true or false"),
    ({"force_view_delta_cascade": 1}, ".force_view_delta_cascade: got 1"),
    ({"assume_insert_only": None}, ".assume_insert_only: got None"),
    ({"view": ""}, ".view: got ''"),
    ({"view": "a.b.c.d"}, ".view: got 'a.b.c.d'"),
    ({"view": "openivm_x"}, ".view: got 'openivm_x', expected a name of one to three parts that does not start with"),
    ({"view": "T"}, ".view: the name of the table facts.schemas.t"),
    ({"view": "memory.main.u"}, ".view: the name of the table facts.schemas.u"),
    ({"schemas": {**TU, "openivm_z": {"k": "INTEGER"}}}, ".schemas.openivm_z: got 'openivm_z', expected a name"),
    ({"schemas": []}, ".schemas: got [], expected an object {table: {column: type}}"),
    ({"schemas": {**TU, "v": {"k": "INTEGER"}}}, ".schemas.v: a table that the query does not read"),
    ({"schemas": {**TU, "a..b": {"k": "INTEGER"}}}, ".schemas.a..b: got 'a..b', expected a name of one to"),
    ({"schemas": {**TU, "T": {"k": "INTEGER"}}}, ".schemas.T: the same table as t"),
    ({"schemas": {**TU, "main.t": {"k": "INTEGER"}}}, ".schemas.main.t: the same table as t"),
    ({"schemas": {**TU, "system.s.t": {"k": "INTEGER"}}}, ".schemas.system.s.t: "),
    ({"schemas": {**TU, "t": {}}}, ".schemas.t: got {}, expected at least one column"),
    ({"schemas": {**TU, "t": ["k"]}}, ".schemas.t: got ['k'], expected an object {column: type}"),
    ({"schemas": {**TU, "t": {"k": 5}}}, ".schemas.t.k: got 5, expected the name of a type"),
    ({"schemas": {**TU, "t": {"k": "INTEGER", "K": "INTEGER"}}}, ".schemas.t.K: a column twice"),
    ({"schemas": {**TU, "t": {"openivm_k": "INTEGER"}}}, ".schemas.t.openivm_k: expected a name that does not start"),
    ({"schemas": {**TU, "t": {"k": "NOTYPE"}}}, ".schemas.t.k: DuckDB has no type NOTYPE"),
    ({"schemas": {**TU, "t": {"k": "INTEGER, z INTEGER"}}}, ".schemas.t.k: DuckDB has no type INTEGER, z INTEGER"),
    ({"schemas": {**TU, "t": {"k": "INTEGER); DROP TABLE u; --"}}}, ".schemas.t.k: DuckDB has no type"),
    ({"schemas": {**TU, "t": {"k": "INTEGER) ORDER BY (1"}}}, ".schemas.t.k: DuckDB has no type"),
    ({"schemas": {**TU, "t": {"k": "INTEGER DEFAULT 5"}}}, ".schemas.t.k: DuckDB has no type"),
    ({"schemas": {**TU, "t": {"k": "INTEGER NOT NULL"}}}, ".schemas.t.k: DuckDB has no type"),
    ({"delta_shape": "empty"}, ".delta_shape: got 'empty', expected an object {table: shape}"),
    ({"delta_shape": {"z": "empty"}}, ".delta_shape.z: a table that is not in facts.schemas"),
    ({"delta_shape": {"t": "odd"}}, ".delta_shape.t: got 'odd', expected empty or insert_only or mixed"),
    ({"delta_shape": {"t": ["empty"]}}, ".delta_shape.t: got ['empty']"),
    ({"delta_shape": {"t": "mixed"}, "assume_insert_only": True}, ".delta_shape.t: mixed, but facts.assume"),
    ({"unique_keys": {"t": "k"}}, ".unique_keys.t: got 'k', expected a list of keys"),
    ({"unique_keys": {"t": ["k"]}}, ".unique_keys.t[0]: got 'k', expected a list of columns"),
    ({"unique_keys": {"t": [["k"], []]}}, ".unique_keys.t[1]: got []"),
    ({"unique_keys": {"t": [["z"]]}}, ".unique_keys.t[0]: z is no column of facts.schemas.t"),
    ({"unique_keys": {"t": [["k", "K"]]}}, ".unique_keys.t[0]: a column twice"),
    ({"fk_relations": {}}, ".fk_relations: got {}, expected a list of objects"),
    ({"fk_relations": [{}]}, ".fk_relations[0].child_table: missing"),
    ({"fk_relations": [KEY, 5]}, ".fk_relations[1]: got 5, expected an object with child_table"),
    ({"fk_relations": [{**KEY, "relly": True}]}, ".fk_relations[0].relly: unknown field"),
    ({"fk_relations": [{"child_table": "t"}]}, ".fk_relations[0].parent_columns: missing"),
    ({"fk_relations": [{**KEY, "rely": "yes"}]}, ".fk_relations[0].rely: got 'yes'"),
    ({"fk_relations": [{**KEY, "parent_table": "z"}]}, ".fk_relations[0].parent_table: a table that is not in"),
    ({"fk_relations": [{**KEY, "child_columns": ["y"]}]}, ".fk_relations[0].child_columns: y is no column of"),
    ({"fk_relations": [{**KEY, "parent_columns": ["k", "y"]}]}, ".fk_relations[0].parent_columns: got ['k', "),
    ({"table_stats": {"t": 5}}, ".table_stats.t: got 5, expected an object with rows"),
    ({"table_stats": {"t": {"rows": -1}}}, ".table_stats.t.rows: got -1, expected a whole number from 0 on"),
    ({"table_stats": {"t": {"rows": 1.5}}}, ".table_stats.t.rows: got 1.5"),
    ({"table_stats": {"t": {"size": 1}}}, ".table_stats.t.size: unknown field"),
    ({"delta_stats": {"t": {"inserts": True}}}, ".delta_stats.t.inserts: got True"),
    ({"delta_stats": {"t": {"inserts": 1}}, "delta_shape": {"t": "empty"}}, ".delta_stats.t.inserts: 1, but the"),
    ({"delta_stats": {"t": {"deletes": 2}}, "assume_insert_only": True}, ".delta_stats.t.deletes: 2, but the"),
    ({"column_stats": {"t": {"z": {"distinct": 1}}}}, ".column_stats.t.z: z is no column of facts.schemas.t"),
    ({"column_stats": {"t": {"k": {"distinct": "3"}}}}, ".column_stats.t.k.distinct: got '3'"),
    ({"column_stats": {"t": {"k": {"most": 3}}}}, ".column_stats.t.k.most: unknown field"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[str(index) for index in range(len(WRONG))])
def test_errors_name_the_field(change: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compile_with_facts(QUERY, {"schemas": TU, **change})
    assert f"facts{message}" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1 or "missing" in message, "one problem, named once"


def test_all_problems_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        compile_with_facts(QUERY, {"schemas": TU, "view": 3, "delta_shape": {"t": 1, "z": "empty"}, "mode": "x"})
    paths = [line.split(":")[0] for line in str(caught.value).splitlines()]
    assert paths == ["facts.mode", "facts.view", "facts.delta_shape.t", "facts.delta_shape.z"]


def test_names_may_leave_out_what_only_one_table_has() -> None:
    schemas = {"a.t": T["t"], "b.t": T["t"], "b.u": T["t"]}
    query = "SELECT x.k FROM a.t AS x, b.t AS y, b.u AS z"
    compile_with_facts(query, {"schemas": schemas, "delta_shape": {"u": "empty", "B.T": "empty"}})
    with pytest.raises(ConfigError, match=r"facts\.delta_shape\.t: may be a\.t or b\.t"):
        compile_with_facts(query, {"schemas": schemas, "delta_shape": {"t": "empty"}})


def test_facts_that_are_no_object() -> None:
    with pytest.raises(ConfigError, match=re.escape("facts: expected an object, got ['t']")):
        compile_with_facts(QUERY, cast("dict[str, Any]", ["t"]))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k FROM", "syntax error"),
        ("SELECT z FROM t", '"z" not found'),
        ("SELECT k FROM v", "v does not exist"),
        ("DELETE FROM t", ""),
        ("SELECT k FROM t; SELECT 1", ""),
        ("SELECT * FROM t, read_csv('/etc/passwd')", ""),
        ("SELECT * FROM '/etc/passwd.csv'", ""),
        ("COPY t TO 'rows.csv'", ""),
    ],
)
def test_queries_that_are_not_valid(query: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        compile_with_facts(query, {"schemas": T})
    assert message in str(caught.value)
    assert "facts.schemas" in str(caught.value), "says over what the query is read"


def test_no_tables() -> None:
    answer = compile_with_facts("SELECT 1 AS one", {})
    assert answer["statements"] == []
    assert answer["logs"] == {}


def test_an_unused_cte_reads_its_table() -> None:
    """DuckDB wants it to be there."""
    compile_with_facts("WITH unused AS (SELECT * FROM u) SELECT k FROM t", {"schemas": TU})


# --- the command line ------------------------------------------------------------------------------------------------


def command(tmp_path: Path, facts: str, *arguments: str) -> list[str]:
    (tmp_path / "f.json").write_text(facts, encoding="utf-8")
    (tmp_path / "q.sql").write_text('SELECT k, sum(x) AS "Größe" FROM t GROUP BY k', encoding="utf-8")
    return ["compile", *(arguments or [str(tmp_path / "q.sql")]), "--facts", str(tmp_path / "f.json")]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(tmp_path, json.dumps({"schemas": T}))) == 0
    printed = capsys.readouterr().out
    query = (tmp_path / "q.sql").read_text(encoding="utf-8")
    assert json.loads(printed) == compile_with_facts(query, {"schemas": T})
    assert "Größe" in printed


@pytest.mark.parametrize(
    ("facts", "query", "message"),
    [
        ('{"schemas": {}', "q.sql", "f.json: no JSON"),
        ("[]", "q.sql", "facts: expected an object, got []"),
        ('{"view": "a", "view": "b"}', "q.sql", "facts: the field view stands twice in one object"),
        ('{"schemas": {"t": {"k": "INTEGER", "x": "MONY"}}}', "q.sql", "facts.schemas.t.x: DuckDB has no type MONY"),
        ("{}", "missing.sql", "No such file"),
    ],
)
def test_errors_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], facts: str, query: str, message: str
) -> None:
    assert main(command(tmp_path, facts, str(tmp_path / query))) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    """In other processes, with another order of sets; the query comes from standard input."""
    tables = {f"t{number}": {"k": "INTEGER", "x": "VARCHAR"} for number in range(4)}
    joined = "t0.k = t1.k AND t1.k = t2.k AND t2.k = t3.k"
    query = f"SELECT t0.k, max(t1.x) AS m FROM {', '.join(tables)} WHERE {joined} GROUP BY t0.k"
    keys = [{**KEY, "child_table": f"t{n}", "parent_table": f"t{n + 1}"} for n in range(3)]
    facts = {"schemas": tables, "fk_relations": keys, "delta_shape": {"t1": "insert_only", "t3": "insert_only"}}
    arguments = [sys.executable, "-m", "dbt_openivm.cli", *command(tmp_path, json.dumps(facts), "-")]
    outputs = [
        subprocess.run(
            arguments, input=query.encode(), capture_output=True, check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    ]  # fmt: skip
    assert outputs[0] == outputs[1] == outputs[2]
    assert json.loads(outputs[0])["refresh_type"] == {"code": 0, "name": "AGGREGATE_GROUP"}


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_page_has_every_field() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for field in FIELDS:
        assert re.search(rf"^\| `{field}` \|", page, flags=re.MULTILINE), field
    assert [value for value in (*DIALECTS, *SHAPES) if f'"{value}"' not in page] == []
    answer = compile_with_facts("SELECT k FROM t", {"schemas": T})
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", page, flags=re.MULTILINE))))
    assert {*answer, *answer["statements"][0]} <= named

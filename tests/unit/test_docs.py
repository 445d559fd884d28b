"""The documentation's examples run, its links lead somewhere, and its tables agree with the code."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from dbt_openivm.compiler import plan
from dbt_openivm.compiler.decompose import RULES
from dbt_openivm.compiler.statistics import PAIR_RULES
from dbt_openivm.engine.types import CAPTURES, REFRESH_MODES
from tests.golden.cases import cases
from tests.golden.compiled import compiled
from tests.unit.compiling import database

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_a_page_names_are_there(page: Path) -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text(encoding="utf-8")))
    missing = [
        f"{file}::{name}"
        for file, name in sorted(named)
        if not (ROOT / file).exists() or f"def {name}" not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert missing == []


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    missing = [
        page.name for page in (ROOT / "docs").glob("*.md") if page.name != "index.md" and f"({page.name})" not in index
    ]
    assert missing == []


def test_the_examples_of_the_engine_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "engine-api.md").read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(block, scope)
    con = scope["con"]
    assert isinstance(con, duckdb.DuckDBPyConnection)
    assert sorted(con.execute("FROM totals").fetchall()) == [("EU", 20), ("US", 50)]
    assert scope["plan"].refresh_type == "AGGREGATE_GROUP"  # type: ignore[attr-defined] # made by exec
    con.close()


def test_the_example_of_compiling_with_facts() -> None:
    text = (ROOT / "docs" / "compile-with-facts.md").read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(block, scope)
    con = scope["con"]
    assert isinstance(con, duckdb.DuckDBPyConnection)
    assert sorted(con.execute("FROM totals").fetchall()) == [("EU", 20), ("US", 50)]
    codes = dict(re.findall(r"\| (\d+) \| ([A-Z_]+)(?= \|)", text))
    assert {name: int(code) for code, name in codes.items()} == plan.CODES
    con.close()


def test_every_refresh_type_and_setting_is_documented() -> None:
    operators = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    types = {value for name, value in vars(plan).items() if name.isupper() and isinstance(value, str)}
    assert [name for name in types if name not in operators] == []
    api = (ROOT / "docs" / "engine-api.md").read_text(encoding="utf-8")
    assert [name for name in (*CAPTURES, *REFRESH_MODES) if f'"{name}"' not in api] == []


def test_every_additive_aggregate_is_documented() -> None:
    operators = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8").replace("count(*)", "count_star")
    assert [name for name in (*RULES, *PAIR_RULES) if name not in operators] == []


QUERIES = {
    "SELECT DISTINCT * FROM (SELECT k FROM t UNION ALL SELECT k FROM u)": "DISTINCT_INCREMENTAL",
    "SELECT k FROM t ORDER BY k": "SIMPLE_PROJECTION",
    "SELECT median(x) AS m FROM t": "GROUP_RECOMPUTE",
    "SELECT k, sum(x) AS s, mode(x) AS m FROM t GROUP BY k": "GROUP_RECOMPUTE",
    "SELECT k, count(DISTINCT x) AS n FROM t GROUP BY k": "AGGREGATE_GROUP",
    "SELECT k, list(DISTINCT x) AS l FROM t GROUP BY k": "GROUP_RECOMPUTE",
    "SELECT k, count(*) AS n FROM t GROUP BY ROLLUP (k)": "AGGREGATE_GROUP",
    "SELECT k, max(x) AS n FROM t GROUP BY k": "AGGREGATE_GROUP",
    "SELECT * FROM (SELECT k, max(x) AS n FROM t GROUP BY k) WHERE n > 1": "AGGREGATE_HAVING",
    "SELECT t FROM t": "SIMPLE_PROJECTION",
    "SELECT count(*) AS n FROM t GROUP BY ()": "SIMPLE_AGGREGATE",
    "SELECT k FROM t UNION SELECT k FROM u": "DISTINCT_INCREMENTAL",
    "SELECT k FROM t EXCEPT SELECT k FROM u": "AGGREGATE_HAVING",
    "SELECT k FROM t INTERSECT ALL SELECT k FROM u": "SIMPLE_PROJECTION",
}


@pytest.mark.parametrize(("query", "refresh_type"), QUERIES.items())
def test_what_the_pages_say_of_queries(query: str, refresh_type: str) -> None:
    with database(["CREATE TABLE t (k INTEGER, x INTEGER)", "CREATE TABLE u (k INTEGER)"]) as connection:
        assert compiled(connection, query).plan.refresh_type == refresh_type


def test_golden_files_show_every_refresh_type() -> None:
    text = "".join(case.path.read_text(encoding="utf-8") for case in cases())
    types = {value for name, value in vars(plan).items() if name.isupper() and isinstance(value, str)}
    assert [name for name in types if f"refresh type: {name}" not in text] == []

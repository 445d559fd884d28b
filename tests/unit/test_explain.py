"""What `explain` says of every kind of view: lines that fit a terminal, real names, SQL that can be run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
import sqlglot

from dbt_openivm import IvmEngine
from dbt_openivm.compiler.layout import RESERVED, WIDTH, keywords, wrapped_sql
from dbt_openivm.compiler.remedies import ELSE, remedy

SET_UP = """
CREATE TABLE sales AS SELECT i AS id, i % 7 AS product, i * 10 AS price, i::DOUBLE AS weight FROM range(100) r(i);
CREATE TABLE products AS SELECT i AS product, 'p' || i AS name, 'a' AS category FROM range(7) r(i);
"""

QUERIES = {
    "projection": "SELECT id, price * 2 AS double_price FROM sales WHERE price > 50",
    "many columns": "SELECT " + ", ".join(f"price + {i} AS a_long_column_name_{i}" for i in range(20)) + " FROM sales",
    "groups": "SELECT product, sum(price) AS s, avg(weight) AS a, max(price) AS m FROM sales GROUP BY product",
    "one column": "SELECT product, count(*) AS n FROM sales GROUP BY product",
    "having": "SELECT product, sum(price) AS s FROM sales GROUP BY product HAVING count(*) > 3",
    "recomputed groups": "SELECT product, median(price) AS m FROM sales GROUP BY product",
    "one row": "SELECT count(*) AS n, sum(price) AS s FROM sales",
    "distinct": "SELECT DISTINCT category FROM products",
    "join of a group": "SELECT name, n FROM products JOIN (SELECT product, count(*) AS n FROM sales GROUP BY 1) AS q "
    "USING (product)",
    "union": "SELECT id FROM sales UNION ALL SELECT product FROM products",
    "left join": "SELECT s.id, p.name FROM sales AS s LEFT JOIN products AS p ON s.product = p.product",
    "semi join": "SELECT id FROM sales WHERE product IN (SELECT product FROM products WHERE category = 'a')",
    "anti join": "SELECT id FROM sales AS s WHERE NOT EXISTS (SELECT 1 FROM products AS p WHERE p.product = s.product)",
    "window": "SELECT id, rank() OVER (PARTITION BY product ORDER BY price) AS r FROM sales",
    "unnest": "SELECT id, unnest([price, product]) AS u FROM sales",
    "rollup": "SELECT product, count(*) AS n FROM sales GROUP BY ROLLUP (product)",
    "chain": "SELECT * FROM parent WHERE price > 100",
    "volatile": "SELECT id, random() AS r FROM sales",
    "unknown table function": "SELECT * FROM duckdb_settings()",
}


@pytest.fixture
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        opened.execute(SET_UP)
        yield opened


@pytest.mark.parametrize("query", [pytest.param(sql, id=name) for name, sql in QUERIES.items()])
def test_every_kind_of_view(connection: Any, query: str) -> None:
    engine = IvmEngine(connection)
    engine.create_view("parent", "SELECT id, price FROM sales")
    text = engine.explain(query)
    lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert not any(line.strip() in ("hidden columns", "shows") for line in lines)
    assert "openivm_agg_" not in text.partition("program\n")[0]
    assert "node:" not in text
    for section in ("sources", "operators", "program"):
        assert any(line.startswith(section) for line in lines)
    assert "    capture " in text or "  none" in text


@pytest.mark.parametrize("query", [QUERIES["groups"], QUERIES["join of a group"], QUERIES["recomputed groups"]])
def test_the_program_is_sql(connection: Any, query: str) -> None:
    program = IvmEngine(connection).explain(query).partition("left out\n")[2]
    assert len(sqlglot.parse(program, dialect="duckdb")) > 1


def test_the_names_of_a_built_view(connection: Any) -> None:
    engine = IvmEngine(connection)
    engine.create_view("mv", "SELECT product, count(*) AS n FROM sales GROUP BY product")
    maintainer = engine.maintainer
    text = maintainer.explain(
        engine.spec(engine.view_name("mv"), "SELECT product, count(*) AS n FROM sales GROUP BY 1")
    )
    assert text.startswith("main.mv: AGGREGATE_GROUP")
    assert "openivm_main.openivm_data_mv" in text
    assert "openivm_main.openivm_delta_sales" in text
    assert "capture diff" in text


def test_a_full_refresh_says_what_would_help(connection: Any) -> None:
    text = IvmEngine(connection).explain("SELECT id,\n  random() AS r FROM sales")
    assert "random() at line 2" in text
    assert "hash(id)" in text
    assert "on every run" in text
    assert remedy("a window function at line 3 cannot be maintained incrementally yet") == ELSE


def test_the_capture_of_a_source(connection: Any) -> None:
    if duckdb.__version__ < "2":
        pytest.skip("triggers need DuckDB 2.0")
    engine = IvmEngine(connection, captures={"sales": "trigger"})
    query = "SELECT id FROM sales"
    assert "capture trigger: whoever writes the table logs the change, from the first run on" in engine.explain(query)
    engine.create_view("mv", query)
    assert "from the first run on" not in engine.explain(query)


def test_sql_is_broken_between_words_only() -> None:
    line = "SELECT " + ", ".join(f"'a  {i}' AS \"column {i}\"" for i in range(20)) + " FROM t"
    parts = wrapped_sql(line)
    assert len(parts) > 1
    assert " ".join(part.strip() for part in parts) == line


def test_keywords_keep_their_quotes(connection: Any) -> None:
    categories = "('reserved', 'type_function')"
    rows = connection.execute(
        f"SELECT upper(keyword_name) FROM duckdb_keywords() WHERE keyword_category IN {categories}"
    ).fetchall()
    assert {row[0] for row in rows} <= keywords()
    assert all(word.isupper() for word in RESERVED)
    assert wrapped_sql('SELECT "order", "plain", "Case" FROM "t"') == ['SELECT "order", plain, "Case" FROM t']

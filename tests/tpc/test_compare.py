"""What the comparison of `benchmarks.tpc` takes for equal."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from benchmarks.tpc.compare import Truth, differences, truth_of


@pytest.fixture
def connection() -> Any:
    with duckdb.connect() as opened:
        opened.execute(
            "CREATE TABLE t AS FROM (VALUES (1, 10, .5::DOUBLE), (2, 20, 1.5), (3, 20, 2.5), (4, 30, 3)) AS t(id, x, f)"
        )
        yield opened


TIED = "SELECT id, x FROM t ORDER BY x LIMIT 2"


@pytest.mark.parametrize(
    ("query", "view", "wrong"),
    [
        (TIED, "SELECT id, x FROM t WHERE id IN (1, 2)", False),
        (TIED, "SELECT id, x FROM t WHERE id IN (1, 3)", False),
        (TIED, "SELECT id, x FROM t WHERE id IN (2, 3)", True),
        (TIED, "SELECT id, x FROM t WHERE id IN (1, 4)", True),
        (TIED, "SELECT id, x FROM t WHERE id IN (1, 2, 3)", True),
        (TIED, "SELECT id, x FROM t WHERE id = 1", True),
        ("SELECT id, x FROM t ORDER BY 2 DESC, id LIMIT 2", "SELECT id, x FROM t WHERE id IN (2, 4)", False),
        ("SELECT id, x FROM t ORDER BY 2 DESC, id LIMIT 2", "SELECT id, x FROM t WHERE id IN (3, 4)", True),
        ("SELECT id, f FROM t", "SELECT id, f * (1 + 1e-12) AS f FROM t", False),
        ("SELECT id, f FROM t", "SELECT id, f * (1 + 1e-6) AS f FROM t", True),
        ("SELECT x FROM t", "SELECT DISTINCT x FROM t", True),
    ],
)  # fmt: skip
def test_differences(connection: Any, query: str, view: str, wrong: bool) -> None:
    connection.execute(f"CREATE VIEW v AS {view}")
    names = [name for name, *_ in connection.execute(f"DESCRIBE {query}").fetchall()]
    assert bool(differences(connection, "v", truth_of(query, names))) == wrong


def test_order_over_what_is_not_shown_is_left_alone() -> None:
    query = "SELECT id FROM t ORDER BY x LIMIT 2"
    assert truth_of(query, ["id"]) == Truth(query)


def test_order_over_expressions_of_the_output() -> None:
    query = "SELECT x, count(*) FROM t GROUP BY x ORDER BY count(*) DESC NULLS FIRST, -x, 1 LIMIT 2"
    assert truth_of(query, ["x", "count_star()"]).order == '"count_star()" DESC NULLS FIRST, -"x", "x"'

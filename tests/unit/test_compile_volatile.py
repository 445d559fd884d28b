"""What changes without a change of data is found wherever it hides, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.golden.compiled import compiled
from tests.unit.compiling import database

SET_UP = [
    "CREATE TABLE t (k INTEGER, x INTEGER, d DATE, at TIMESTAMP)".replace("at ", "seen "),
    "CREATE SEQUENCE seq",
    "CREATE VIEW direct AS SELECT k, random() AS r FROM t",
    "CREATE VIEW above AS SELECT k FROM direct",
    "CREATE VIEW far_above AS SELECT count(*) AS n FROM above",
    "CREATE MACRO age_of(d) AS date_diff('day', d, current_date)",
    "CREATE MACRO noise(d) AS d + random()::INTEGER",
    "CREATE MACRO old(d) AS age_of(d) > 10",
    "CREATE MACRO noisy() AS TABLE SELECT k + random() AS r FROM t",
    "CREATE VIEW with_macro AS SELECT old(d) AS o FROM t",
]

VOLATILE = [
    "SELECT random() AS r FROM t",
    "SELECT k FROM t WHERE random() < 0.5",
    "SELECT uuid() AS u FROM t",
    "SELECT gen_random_uuid() AS u FROM t",
    "SELECT nextval('seq') AS n FROM t",
    "SELECT now() AS n FROM t",
    "SELECT CURRENT_TIMESTAMP AS c FROM t",
    "SELECT current_time AS c FROM t",
    "SELECT localtimestamp AS c FROM t",
    "SELECT get_current_timestamp() AS c FROM t",
    "SELECT transaction_timestamp() AS c FROM t",
    "SELECT age(seen) AS a FROM t",
    "SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > random()",
    "SELECT k FROM t JOIN (SELECT random() AS r) AS q ON t.x > q.r",
    "WITH c AS (SELECT random() AS r FROM t) SELECT count(*) AS n FROM c",
    "SELECT k FROM t UNION ALL SELECT random()::INTEGER FROM t",
    "SELECT k FROM t WHERE k IN (SELECT random()::INTEGER)",
    "SELECT sum(x) FILTER (WHERE random() > 0.5) AS s FROM t",
    "SELECT k FROM direct",
    "SELECT k FROM above",
    "SELECT n FROM far_above",
    "SELECT r FROM noisy()",
    "SELECT k FROM t USING SAMPLE 3",
    "SELECT k FROM t TABLESAMPLE 50%",
    "SELECT txid_current() AS x FROM t",
]

STABLE = [
    "SELECT date_trunc('month', seen) AS m, year(d) AS y, d + 1 AS n FROM t",
    "SELECT age(seen, TIMESTAMP '2024-01-01') AS a FROM t",
    "SELECT strftime(seen, '%Y') AS s, strptime('2024', '%Y') AS p FROM t",
    "SELECT hash(k) AS h, md5(k::VARCHAR) AS m FROM t",
    "SELECT 'now()' AS text, k AS random FROM t",
    "SELECT time_bucket(INTERVAL 1 DAY, seen) AS b, count(*) AS n FROM t GROUP BY b",
    "SELECT date_diff('day', d, DATE '2024-01-01') AS days FROM t",
    "SELECT CASE WHEN k < 0 THEN error('below zero') ELSE k END AS k FROM t",
]


#: They read the clock where the rows that time moves can be told.
MOVING = [
    "SELECT k FROM t WHERE seen > now()::TIMESTAMP - INTERVAL 1 HOUR",
    "SELECT k FROM t WHERE d = current_date",
    "SELECT k FROM t WHERE d = today()",
    "SELECT age_of(d) AS a FROM t",
    "SELECT k FROM t WHERE old(d)",
    "SELECT o FROM with_macro",
    "SELECT count(*) FILTER (WHERE seen > localtimestamp) AS n FROM t",
    "WITH p AS (SELECT today() AS day) SELECT k FROM t, p WHERE d < p.day",
]


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with database(SET_UP) as opened:
        yield opened


@pytest.mark.parametrize("query", VOLATILE)
def test_volatile(connection: Any, query: str) -> None:
    plan = compiled(connection, query).plan
    assert plan.refresh_type == "FULL_REFRESH"
    assert plan.volatile
    assert plan.reason


@pytest.mark.parametrize("query", STABLE)
def test_stable(connection: Any, query: str) -> None:
    plan = compiled(connection, query).plan
    assert not plan.volatile
    assert plan.reason is None


@pytest.mark.parametrize("query", MOVING)
def test_moving(connection: Any, query: str) -> None:
    plan = compiled(connection, query).plan
    assert plan.reason is None
    assert plan.clock
    assert not plan.volatile


def test_the_reason_names_construct_and_place(connection: Any) -> None:
    plan = compiled(connection, "SELECT\n  k,\n  random() AS r\nFROM t").plan
    assert plan.reason is not None
    assert plan.reason.startswith("random() at line 3 ")


def test_the_reason_tells_a_line_of_the_query_from_one_of_a_view_or_macro(connection: Any) -> None:
    for query, words in (
        ("SELECT\n k FROM above", "random() at line 1 of the view memory.main.direct "),
        ("SELECT\n noise(d) AS a FROM t", "random() at line 1 of the macro noise "),
    ):
        reason = compiled(connection, query).plan.reason
        assert reason is not None
        assert reason.startswith(words)


def test_what_the_compiler_cannot_read_is_never_taken_for_unchanged(connection: Any) -> None:
    """Nothing is known of what such a query reads, so it is refreshed every time."""
    query = "SELECT apply([{'x': k}], lambda s: s.x) AS l FROM t"
    connection.execute(query)
    plan = compiled(connection, query).plan
    assert plan.reason is None or plan.volatile

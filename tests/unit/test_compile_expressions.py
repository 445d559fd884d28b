"""Expressions mean after the compiler what they meant before: each is compiled in a view, and its values compared.

sqlglot reads and writes every expression of a view. Whatever it gets wrong would be a wrong view, so all kinds are
tried: the files in expressions/ have one a line. `as_written` has what sqlglot alone would read or write as something
else, and calls with a dot before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.golden.compiled import assert_state_is_exact

FOLDER = Path(__file__).parent / "expressions"

TABLE = """
CREATE TABLE t (
  i INTEGER, j INTEGER, b BIGINT, d DOUBLE, c DECIMAL(10, 3), s VARCHAR, r VARCHAR, dt DATE, ts TIMESTAMP,
  tz TIMESTAMPTZ, tm TIME, iv INTERVAL, l INTEGER[], ls VARCHAR[], st STRUCT(a INTEGER, b VARCHAR), m MAP(VARCHAR, INT),
  bo BOOLEAN, js JSON, bl BLOB, bi BIT, u UUID, ut UTINYINT
);
INSERT INTO t VALUES
  (7, 2, 10000000000, 2.5, 1.125, 'Hello World', 'l', '2024-02-29', '2024-03-31 23:59:58.123456',
   '2024-03-31 23:59:58+02', '12:34:56.789', '1 month 2 days 03:00:00', [3, 1, NULL, 2], ['b', 'a'], {'a': 1, 'b': 'x'},
   MAP {'k': 1, 'z': NULL}, true, '{"a": [1, {"b": "c"}], "n": null}', '\\xAA\\x41', '10110',
   'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 200),
  (-7, 3, -1, -2.5, -1.125, 'ünï''cödé%_', '%', '1999-12-31', '1969-12-31 00:00:00', '2000-01-01 00:00:00Z', '00:00:00',
   '-5 days', [], [NULL], {'a': NULL, 'b': NULL}, MAP {}, false, '[1, 2]', '', '0', NULL, 0),
  (0, 1, 0, 0.0, 0, '', 'a', '2023-01-01', '2023-01-01 10:10:10', '2023-01-01 10:10:10Z', '23:59:59', '0 days', [5],
   ['x', 'y', 'z'], {'a': 2, 'b': 'q'}, MAP {'k': 5}, NULL, '"x"', 'abc', '1', NULL, 255);
INSERT INTO t (i) VALUES (NULL);
"""


def lines(*names: str) -> list[str]:
    """The expressions of some files."""
    texts = [(FOLDER / f"{name}.txt").read_text(encoding="utf-8") for name in names]
    return [line for text in texts for line in text.splitlines() if line]


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        opened.execute(TABLE)
        yield opened


@pytest.mark.parametrize("expression", lines("numbers", "text", "time", "nested", "json", "as_written"))
def test_expressions(connection: Any, expression: str) -> None:
    made = assert_state_is_exact(connection, f"SELECT {expression} AS v FROM t")
    assert made.plan.reason is None


@pytest.mark.parametrize("expression", ["i + j", "upper(s)", "dt + 1", "l[1]", "st.a", "CASE WHEN bo THEN i END"])
def test_expressions_as_keys_and_arguments(connection: Any, expression: str) -> None:
    made = assert_state_is_exact(
        connection, f"SELECT {expression} AS v, count({expression}) AS n, min({expression}) AS m FROM t GROUP BY 1"
    )
    assert made.plan.refresh_type == "AGGREGATE_GROUP"

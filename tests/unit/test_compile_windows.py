"""How window calls are read: which share an operator, what named windows say, what NULLS LAST becomes."""

from __future__ import annotations

import pytest
from sqlglot import exp

from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.limits import explicit
from dbt_openivm.compiler.lower.reading import read
from dbt_openivm.compiler.lower.windows import Windows, settle_windows, windows_of
from dbt_openivm.compiler.sql import text


def grouped(*partitions: str) -> list[tuple[list[str], list[int]]]:
    """(keys, calls) of the operators for calls with these PARTITION BY clauses."""
    calls = []
    for number, partition in enumerate(partitions):
        query = read(f"SELECT sum(x) OVER ({partition and 'PARTITION BY ' + partition})")
        [call] = query.find_all(exp.Window)
        calls.append((str(number), call))
    return [([text(key) for key in group.keys], [int(n) for n, _ in group.calls]) for group in Windows(calls).shared()]


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        (("a", "a, b"), [(["a"], [1, 0])]),
        (("a", "b"), [(["a"], [0]), (["b"], [1])]),
        (("", "1", "a"), [(["a"], [2]), ([], [0, 1])]),
        (("a, b", "b, c"), [(["b"], [0, 1])]),
        (("(a, b)", "b"), [(["b"], [0, 1])]),
        (("a + 1", "(a + 1)"), [(["a + 1"], [0, 1])]),
    ],
)
def test_calls_with_common_keys_share_an_operator(
    partitions: tuple[str, ...], expected: list[tuple[list[str], list[int]]]
) -> None:
    """A constant is no key, a row is its parts."""
    assert grouped(*partitions) == expected


def test_named_windows_are_written_out() -> None:
    query = read(
        "SELECT sum(x) OVER v, rank() OVER (w ORDER BY y) FROM t "
        "WINDOW w AS (PARTITION BY a), v AS (w ORDER BY x ROWS 2 PRECEDING)"
    )
    assert isinstance(query, exp.Select)
    settle_windows(query)
    assert sorted(map(text, windows_of(query))) == [
        "RANK() OVER (PARTITION BY a ORDER BY y)",
        "SUM(x) OVER (PARTITION BY a ORDER BY x ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    ]


@pytest.mark.parametrize(
    ("written", "settings", "expected"),
    [
        ("x", (), "x ASC NULLS LAST"),
        ("x NULLS LAST", ("default_null_order = NULLS_FIRST",), "x ASC NULLS LAST"),
        ("x DESC", ("default_null_order = NULLS_FIRST",), "x DESC NULLS FIRST"),
        ("x", ("default_order = DESC",), "x DESC NULLS LAST"),
        ("x DESC", ("default_null_order = NULLS_FIRST_ON_ASC_LAST_ON_DESC",), "x DESC NULLS LAST"),
        ("x DESC", ("default_null_order = NULLS_LAST_ON_ASC_FIRST_ON_DESC",), "x DESC NULLS FIRST"),
    ],
)
def test_what_a_setting_decides_is_written_into_a_boundary(
    written: str, settings: tuple[str, ...], expected: str
) -> None:
    [item] = read(f"SELECT x FROM t ORDER BY {written}").find_all(exp.Ordered)
    assert text(explicit(item, CompileFacts({}, settings=settings).settings)) == expected

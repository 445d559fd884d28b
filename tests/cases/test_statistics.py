"""Statistical aggregates, products and bits by additive state: extremes that come and go, groups of few rows."""

from __future__ import annotations

import pytest

from tests.helpers import World

TABLE = "CREATE TABLE t (g INTEGER, x DOUBLE, y DOUBLE, i INTEGER)"
ROWS = (
    "INSERT INTO t VALUES (1, 1.5, 2, 3), (1, 2.25, 7, 6), (1, 4, 1, 12), (1, 9.5, 3, 7), "
    "(2, 1, 1, 1), (3, NULL, 2, NULL), (3, 2, NULL, 5), (4, 7, 1, 8), (4, 7, 2, 8), (4, 7, 4, 8)"
)
PAIRS = ("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept")
PAIRS += ("regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy")
CALLS = (
    *(f"{name}(y, x)" for name in PAIRS),
    *(f"{name}(i)" for name in ("skewness", "kurtosis", "kurtosis_pop", "bit_and", "bit_or", "bit_xor")),
    *(f"{name}(x)" for name in ("sem", "fsum", "favg", "product")),
    "geomean(abs(x) + 1)",
    "product(i - 6)",
    "corr(y, x) FILTER (WHERE i > 3)",
    "bit_xor(DISTINCT i)",
)


@pytest.mark.parametrize("call", CALLS)
def test_statistics(world: World, call: str) -> None:
    """Groups of one, two, equal and no values; 1e300, infinity and NaN leave nothing behind."""
    world.run(TABLE, ROWS)
    world.create("grouped", f"SELECT g, {call} AS v FROM t GROUP BY g", "AGGREGATE_GROUP")
    world.create("total", f"SELECT {call} AS v FROM t", "SIMPLE_AGGREGATE")
    for statements in (
        ("INSERT INTO t VALUES (2, 3, 9, 2), (5, 2, 2, 2)",),
        ("DELETE FROM t WHERE g = 1 AND i = 6", "UPDATE t SET x = 8 WHERE g = 4 AND y = 1"),
        ("INSERT INTO t VALUES (1, 1e300, 1e20, 1), (2, 5, 5, 5)", "DELETE FROM t WHERE x = 1e300"),
        ("INSERT INTO t VALUES (1, 1e150, 2, 1), (3, 'inf', 1, 0)",),
        ("DELETE FROM t WHERE x = 1e150 OR NOT isfinite(x)", "INSERT INTO t VALUES (1, 1, 'nan', 9)"),
        ("DELETE FROM t WHERE NOT isfinite(y)",),
        ("DELETE FROM t WHERE g IN (2, 4)",),
        ("DELETE FROM t",),
        (ROWS,),
    ):
        world.run(*statements)
        world.refresh("grouped")
        world.refresh("total")


def test_nothing_is_recomputed_that_adds_up(world: World) -> None:
    """An ordinary change reads no row of the source but its own: a source that is gone from its table shows it."""
    world.run("CREATE TABLE t (g INTEGER, x DOUBLE, y DOUBLE)")
    world.run("INSERT INTO t SELECT i % 3, i % 17, i % 13 + i % 17 FROM range(500) AS r(i)")
    query = "SELECT g, corr(y, x) AS c, regr_slope(y, x) AS s, skewness(x) AS k FROM t GROUP BY g"
    world.create("mv", query, "AGGREGATE_GROUP")
    assert world.change("mv", "INSERT INTO t VALUES (1, 4, 5), (2, 6, 1)").strategy == "incremental"
    assert world.change("mv", "DELETE FROM t WHERE x = 4 AND y = 5").strategy == "incremental"

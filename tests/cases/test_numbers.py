"""Cases 11 to 13: numbers."""

from __future__ import annotations

import math

import duckdb
import pytest

from tests.helpers import World, assert_view_is_exact

FLOATS = "SELECT g, SUM(x) AS s, AVG(x) AS a, COUNT(x) AS n FROM t GROUP BY g"


@pytest.mark.parametrize("huge", ["1e20", "1e300", "-1e300"])
def test_case_11_small_values_survive_a_huge_one(world: World, huge: str) -> None:
    """SUM and AVG of DOUBLE after many inserts and deletes, a huge value among them, are within 1e-9."""
    world.run("CREATE TABLE t (g INTEGER, x DOUBLE)", "INSERT INTO t SELECT i % 3, i * 0.1 FROM range(300) AS r(i)")
    world.create("mv", FLOATS, "AGGREGATE_GROUP")
    world.create("total", "SELECT SUM(x) AS s, AVG(x) AS a FROM t", "SIMPLE_AGGREGATE")
    for statement in (
        f"INSERT INTO t VALUES (1, {huge})",
        "DELETE FROM t WHERE x BETWEEN 3 AND 7",
        f"DELETE FROM t WHERE x = {huge}",
        f"INSERT INTO t VALUES (2, {huge}), (1, 0.7)",
        f"UPDATE t SET x = 0.3 WHERE x = {huge}",
        "DELETE FROM t WHERE x > 1",
    ):
        world.run(statement)
        world.refresh("mv")
        world.refresh("total")


def test_case_11_many_rounds_do_not_drift(world: World) -> None:
    """Rounding errors of a hundred small batches do not add up."""
    world.run("CREATE TABLE t (g INTEGER, x DOUBLE)", "INSERT INTO t VALUES (1, 0.1)")
    world.create("mv", FLOATS, "AGGREGATE_GROUP")
    for i in range(100):
        world.run(f"INSERT INTO t VALUES (1, {i * 1e3} + 0.1)", f"DELETE FROM t WHERE x = {(i - 1) * 1e3} + 0.1")
        world.ivm.refresh("mv")
    world.run("DELETE FROM t WHERE x > 1")
    world.ivm.refresh("mv")
    assert_view_is_exact(world.connection, "mv", FLOATS)


@pytest.mark.parametrize("type_", ["DOUBLE", "DECIMAL(9, 2)", "INTEGER"])
def test_case_12_deviations_of_groups_of_one(world: World, type_: str) -> None:
    """One row, two, one again: NULL, a value, NULL for the sample; 0, a value, 0 for the population."""
    world.run(f"CREATE TABLE t (g INTEGER, x {type_})", "INSERT INTO t VALUES (1, 3)")
    world.create(
        "mv",
        "SELECT g, STDDEV_SAMP(x) AS ss, VAR_SAMP(x) AS vs, STDDEV_POP(x) AS sp, VAR_POP(x) AS vp FROM t GROUP BY g",
        "AGGREGATE_GROUP",
    )
    world.assert_rows("mv", (1, None, None, 0.0, 0.0))
    world.change("mv", "INSERT INTO t VALUES (1, 5)")
    world.assert_rows("mv", (1, math.sqrt(2), 2.0, 1.0, 1.0))
    world.change("mv", "DELETE FROM t WHERE x = 5")
    world.assert_rows("mv", (1, None, None, 0.0, 0.0))


@pytest.mark.parametrize("value", ["0.1", "1e8 + 0.1", "3", "-7.25"])
def test_case_12_equal_values_have_no_deviation(world: World, value: str) -> None:
    """Where all values are equal the deviation is exactly 0, never the root of a negative number."""
    world.run("CREATE TABLE t (g INTEGER, x DOUBLE)", f"INSERT INTO t SELECT 1, {value} FROM range(7)")
    world.create("mv", "SELECT g, STDDEV(x) AS s, VARIANCE(x) AS v, STDDEV_POP(x) AS p FROM t GROUP BY g")
    world.change("mv", f"INSERT INTO t SELECT 1, {value} FROM range(3)", "INSERT INTO t VALUES (1, 99)")
    world.change("mv", "DELETE FROM t WHERE x = 99")
    assert world.query("SELECT s, v, p FROM mv") == [(0.0, 0.0, 0.0)]


@pytest.mark.parametrize("special", ["'NaN'", "'Infinity'", "'-Infinity'"])
def test_case_13_a_special_value_goes_without_trace(world: World, special: str) -> None:
    """SUM, AVG and the deviations are finite again once NaN or an infinity is deleted."""
    world.run("CREATE TABLE t (g INTEGER, x DOUBLE)", "INSERT INTO t VALUES (1, 1.5), (1, 2), (2, 4)")
    world.create("mv", FLOATS, "AGGREGATE_GROUP")
    world.create("extremes", "SELECT g, MIN(x) AS lo, MAX(x) AS hi FROM t GROUP BY g", "AGGREGATE_GROUP")
    for statement in (
        f"INSERT INTO t VALUES (1, {special}::DOUBLE), (3, {special}::DOUBLE)",
        "INSERT INTO t VALUES (1, 3), (3, 1)",
        f"DELETE FROM t WHERE x = {special}::DOUBLE",
    ):
        world.run(statement)
        world.refresh("mv")
        world.refresh("extremes")
    assert all(math.isfinite(row[1]) for row in world.rows("mv"))


def test_case_13_both_infinities(world: World) -> None:
    """+Inf and -Inf together are NaN, each alone is itself again."""
    world.run("CREATE TABLE t (g INTEGER, x DOUBLE)", "INSERT INTO t VALUES (1, 1)")
    world.create("mv", FLOATS, "AGGREGATE_GROUP")
    world.change("mv", "INSERT INTO t VALUES (1, 'inf'), (1, '-inf')")
    assert math.isnan(world.query("SELECT s FROM mv")[0][0])
    world.change("mv", "DELETE FROM t WHERE x = 'inf'::DOUBLE")
    assert world.query("SELECT s FROM mv") == [(-math.inf,)]
    world.change("mv", "DELETE FROM t WHERE x = '-inf'::DOUBLE")
    assert world.query("SELECT s FROM mv") == [(1.0,)]


@pytest.mark.parametrize(
    ("type_", "top"), [("HUGEINT", str(2**127 - 1)), ("DECIMAL(38,0)", "9" * 38), ("DECIMAL(38,2)", "9" * 36 + ".99")]
)
def test_an_overflow_fails_as_the_recompute_would(world: World, type_: str, top: str) -> None:
    """A sum that no longer fits is an error, the old state stays, and the view carries on once the row is gone."""
    world.run(f"CREATE TABLE t (g INTEGER, x {type_})", f"INSERT INTO t VALUES (1, {top}::{type_}), (2, 1)")
    sql = "SELECT g, SUM(x) AS s FROM t GROUP BY g"
    world.create("mv", sql)
    before = world.rows("mv")
    world.run("INSERT INTO t VALUES (1, 5), (2, 5)")
    with pytest.raises(duckdb.Error):
        world.query(sql)
    with pytest.raises(Exception, match=r"(?i)overflow|range"):
        world.ivm.refresh("mv")
    assert world.rows("mv") == before
    world.change("mv", "DELETE FROM t WHERE g = 1 AND x = 5")

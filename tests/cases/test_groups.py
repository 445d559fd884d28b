"""Cases 1 to 10: groups and NULLs."""

from __future__ import annotations

import pytest

from dbt_openivm.errors import OpenIvmError
from tests.helpers import World


def test_case_01_an_emptied_group_comes_back(world: World) -> None:
    """A group loses its two rows one refresh at a time, and a later row starts it anew at one."""
    world.run("CREATE TABLE t (g VARCHAR, x INTEGER)", "INSERT INTO t VALUES ('a', 1), ('a', 2), ('b', 3)")
    world.create("mv", "SELECT g, COUNT(*) AS n FROM t GROUP BY g", "AGGREGATE_GROUP")
    world.change("mv", "DELETE FROM t WHERE x = 1")
    world.assert_rows("mv", ("a", 1), ("b", 1))
    world.change("mv", "DELETE FROM t WHERE x = 2")
    world.assert_rows("mv", ("b", 1))
    result = world.change("mv", "INSERT INTO t VALUES ('a', 9)")
    assert result.strategy == "incremental"
    world.assert_rows("mv", ("a", 1), ("b", 1))


@pytest.mark.parametrize("emptying", ["DELETE FROM t", "DELETE FROM t WHERE x = 5", "TRUNCATE t"])
def test_case_02_an_ungrouped_aggregate_always_has_its_row(world: World, emptying: str) -> None:
    """Over no rows COUNT is 0 and SUM is NULL, before the first row and after the last one."""
    world.run("CREATE TABLE t (x INTEGER)")
    world.create("mv", "SELECT COUNT(*), SUM(x) FROM t", "SIMPLE_AGGREGATE")
    world.assert_rows("mv", (0, None))
    world.change("mv", "INSERT INTO t VALUES (5)")
    world.assert_rows("mv", (1, 5))
    world.change("mv", emptying)
    world.assert_rows("mv", (0, None))
    world.change("mv", "INSERT INTO t VALUES (NULL)")
    world.assert_rows("mv", (1, None))


def test_case_03_sum_and_avg_of_nulls_alone(world: World) -> None:
    """Where only NULLs are left, SUM and AVG are NULL; SUM of integers stays an integer."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, NULL), (1, 4), (2, 7)")
    world.create("mv", "SELECT g, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY g", "AGGREGATE_GROUP")
    world.create("total", "SELECT SUM(x) AS s, AVG(x) AS a FROM t", "SIMPLE_AGGREGATE")
    world.run("DELETE FROM t WHERE x IS NOT NULL")
    world.refresh("mv")
    world.refresh("total")
    world.assert_rows("mv", (1, None, None))
    world.assert_rows("total", (None, None))
    assert (
        dict(world.query("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'mv'"))["s"]
        == "HUGEINT"
    )


def test_case_04_counts_when_a_value_turns_null_and_back(world: World) -> None:
    """COUNT(x) follows x from NULL to 5 to NULL; COUNT(*) does not; a deleted NULL counts for COUNT(*) only."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, NULL), (1, 2)")
    world.create("mv", "SELECT g, COUNT(x) AS cx, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g", "AGGREGATE_GROUP")
    world.change("mv", "UPDATE t SET x = 5 WHERE x IS NULL")
    world.assert_rows("mv", (1, 2, 2, 7))
    world.change("mv", "UPDATE t SET x = NULL WHERE x = 5")
    world.assert_rows("mv", (1, 1, 2, 2))
    world.change("mv", "DELETE FROM t WHERE x IS NULL")
    world.assert_rows("mv", (1, 1, 1, 2))


def test_case_05_the_null_group(world: World) -> None:
    """Rows without a key make one group, and rows without a measure leave its sum as it is."""
    world.run("CREATE TABLE t (g VARCHAR, x INTEGER)", "INSERT INTO t VALUES (NULL, 1), ('a', 1)")
    world.create("mv", "SELECT g, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY g", "AGGREGATE_GROUP")
    world.change("mv", "INSERT INTO t VALUES (NULL, 10), (NULL, NULL)")
    world.assert_rows("mv", ("a", 1, 1), (None, 11, 3))
    world.change("mv", "DELETE FROM t WHERE g IS NULL")
    world.assert_rows("mv", ("a", 1, 1))


def test_case_06_a_sum_of_zero_is_no_empty_group(world: World) -> None:
    """+5 and -5 leave a group with 0; only when its rows are gone the group goes, though no COUNT is selected."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 5)")
    world.create("mv", "SELECT g, SUM(x) AS s FROM t GROUP BY g", "AGGREGATE_GROUP")
    world.change("mv", "INSERT INTO t VALUES (1, -5)")
    world.assert_rows("mv", (1, 0))
    world.change("mv", "DELETE FROM t")
    world.assert_rows("mv")


def test_case_07_partly_null_composite_keys(world: World) -> None:
    """(1, NULL), (NULL, NULL) and (NULL, 1) are three groups through inserts, updates and deletes."""
    world.run("CREATE TABLE t (a INTEGER, b INTEGER, x INTEGER)")
    world.create("mv", "SELECT a, b, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY a, b", "AGGREGATE_GROUP")
    world.change("mv", "INSERT INTO t VALUES (1, NULL, 1), (NULL, NULL, 2), (NULL, 1, 3), (1, NULL, 4)")
    world.assert_rows("mv", (1, None, 2, 5), (None, 1, 1, 3), (None, None, 1, 2))
    world.change("mv", "UPDATE t SET a = NULL WHERE x = 1", "UPDATE t SET b = 1 WHERE x = 2")
    world.assert_rows("mv", (1, None, 1, 4), (None, 1, 2, 5), (None, None, 1, 1))
    world.change("mv", "DELETE FROM t WHERE a IS NULL AND b IS NULL", "INSERT INTO t VALUES (NULL, 1, 7)")
    world.assert_rows("mv", (1, None, 1, 4), (None, 1, 3, 12))


def test_case_08_an_insert_that_moves_one_extremum_only(world: World) -> None:
    """A row with x NULL and y set keeps MIN(x) and sets a MAX(y) that was NULL."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER, y INTEGER)", "INSERT INTO t VALUES (1, 3, NULL)")
    world.create("mv", "SELECT g, MIN(x) AS lo, MAX(y) AS hi FROM t GROUP BY g", "AGGREGATE_GROUP")
    world.change("mv", "INSERT INTO t VALUES (1, NULL, 8)")
    world.assert_rows("mv", (1, 3, 8))
    world.change("mv", "DELETE FROM t WHERE y = 8")
    world.assert_rows("mv", (1, 3, None))


def test_case_09_one_update_moves_everything(world: World) -> None:
    """Key, filter column and measure change in one statement, so that the row leaves the view, and come back."""
    world.run("CREATE TABLE t (id INTEGER, g VARCHAR, live BOOLEAN, x INTEGER)")
    world.run("INSERT INTO t VALUES (1, 'a', true, 1), (2, 'a', true, 2), (3, 'b', false, 4)")
    world.create("mv", "SELECT g, SUM(x) AS s FROM t WHERE live GROUP BY g", "AGGREGATE_GROUP")
    world.change("mv", "UPDATE t SET g = 'b', live = false, x = 100 WHERE id = 1")
    world.assert_rows("mv", ("a", 2))
    world.change("mv", "UPDATE t SET g = 'a', live = true, x = 1 WHERE id = 1")
    world.assert_rows("mv", ("a", 3))
    world.change("mv", "UPDATE t SET g = 'c', x = x + 1, live = NOT live")
    world.assert_rows("mv", ("c", 5))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT g, SUM(openivm_count_star) AS s FROM t GROUP BY g",
        "SELECT g, openivm_count_star FROM t",
        "SELECT g, SUM(x) AS openivm_count_star FROM t GROUP BY g",
        "SELECT openivm_count_star, COUNT(*) AS n FROM t GROUP BY openivm_count_star",
        "SELECT g AS OpenIVM_Multiplicity, COUNT(*) AS n FROM t GROUP BY g",
    ],
)
def test_case_10_a_user_column_named_like_a_hidden_one(world: World, sql: str) -> None:
    """Either a clear error, or the right rows; never a wrong value."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER, openivm_count_star INTEGER)")
    world.run("INSERT INTO t VALUES (1, 2, 30), (1, 3, 40), (2, 4, 50)")
    refused = None
    try:
        world.create("mv", sql)
    except OpenIvmError as error:
        refused = str(error)
    if refused is not None:
        assert "openivm_" in refused.lower()
        return
    world.change("mv", "INSERT INTO t VALUES (1, 7, 60), (3, 1, 1)", "DELETE FROM t WHERE g = 2")


def test_macros_that_aggregate_under_a_grouping_set_without_keys(world: World) -> None:
    """DuckDB gives no FILTER to an aggregate that is a macro (the fuzzer's seed 42011)."""
    world.run("CREATE TABLE t (g INTEGER, x INTEGER)", "INSERT INTO t VALUES (1, 2), (1, 8), (2, NULL)")
    world.create("mv", "SELECT g, geomean(x) AS m, wavg(x, g) AS w FROM t GROUP BY ROLLUP (g)")
    world.change("mv", "INSERT INTO t VALUES (2, 4), (NULL, 1)")
    world.change("mv", "DELETE FROM t WHERE g = 1")
    world.change("mv", "DELETE FROM t")

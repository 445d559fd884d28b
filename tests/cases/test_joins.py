"""Cases 23 to 30: joins."""

from __future__ import annotations

import pytest

from tests.helpers import World

TWO_TABLES = ("CREATE TABLE t (k INTEGER, x INTEGER)", "CREATE TABLE u (k INTEGER, y INTEGER)")


def test_case_23_a_self_join_after_several_statements(world: World) -> None:
    """Inserts, updates and deletes of one table in one batch reach both sides of its self-join."""
    world.run("CREATE TABLE t (id INTEGER, boss INTEGER, x INTEGER)")
    world.run("INSERT INTO t VALUES (1, NULL, 10), (2, 1, 20), (3, 1, 30)")
    world.create("mv", "SELECT w.id, b.id AS boss, w.x + b.x AS s FROM t AS w JOIN t AS b ON w.boss = b.id")
    world.create("n", "SELECT b.id, COUNT(*) AS n, SUM(w.x) AS s FROM t w, t b WHERE w.boss = b.id GROUP BY b.id")
    world.run(
        "INSERT INTO t VALUES (4, 2, 40), (5, 4, 50)",
        "UPDATE t SET boss = 4 WHERE id = 3",
        "UPDATE t SET x = x + 1",
        "DELETE FROM t WHERE id = 2",
        "INSERT INTO t VALUES (2, 5, 7)",
    )
    assert world.refresh("mv").strategy == "incremental"
    world.refresh("n")
    world.assert_rows("mv", (2, 5, 58), (3, 4, 72), (4, 2, 48), (5, 4, 92))


def test_case_24_no_phantom(world: World) -> None:
    """A left row goes and the right row of its key comes in the same batch: they never met."""
    world.run(*TWO_TABLES, "INSERT INTO t VALUES (1, 10), (2, 20)")
    world.create("mv", "SELECT t.k, x, y FROM t JOIN u ON t.k = u.k", "SIMPLE_PROJECTION")
    world.change("mv", "DELETE FROM t WHERE k = 1", "INSERT INTO u VALUES (1, 5), (2, 6)")
    world.assert_rows("mv", (2, 20, 6))


def test_case_25_the_second_side_of_a_deleted_pair(world: World) -> None:
    """A key is deleted on the left, then on the right: the second refresh has nothing to do."""
    world.run(*TWO_TABLES, "INSERT INTO t VALUES (1, 10), (1, 11)", "INSERT INTO u VALUES (1, 5), (1, 6)")
    world.create("mv", "SELECT t.k, x, y FROM t JOIN u USING (k)", "SIMPLE_PROJECTION")
    world.create("n", "SELECT COUNT(*) AS n, SUM(x * y) AS s FROM t JOIN u USING (k)", "SIMPLE_AGGREGATE")
    world.run("DELETE FROM t")
    world.refresh("mv")
    world.refresh("n")
    world.run("DELETE FROM u")
    assert not world.refresh("mv").changed_rows
    world.refresh("n")
    world.assert_rows("mv")
    world.assert_rows("n", (0, None))


def test_case_26_left_join_new_rows_on_both_sides(world: World) -> None:
    """An unmatched left row comes together with right rows of other keys: padded once."""
    world.run(*TWO_TABLES, "INSERT INTO t VALUES (1, 10)")
    world.create("mv", "SELECT t.k, x, y FROM t LEFT JOIN u ON t.k = u.k")
    world.change("mv", "INSERT INTO t VALUES (2, 20)", "INSERT INTO u VALUES (1, 5), (3, 6)")
    world.assert_rows("mv", (1, 10, 5), (2, 20, None))


def test_case_27_left_join_loses_all_matches(world: World) -> None:
    """SUM, COUNT(u.x) and COUNT(*) over a key whose matches are gone: NULL, 0, 1."""
    world.run(*TWO_TABLES, "INSERT INTO t VALUES (1, 10), (2, 20)", "INSERT INTO u VALUES (1, 5), (1, 6)")
    world.create(
        "mv", "SELECT t.k, SUM(u.y) AS s, COUNT(u.y) AS cy, COUNT(*) AS n FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k"
    )
    world.assert_rows("mv", (1, 11, 2, 2), (2, None, 0, 1))
    world.change("mv", "DELETE FROM u")
    world.assert_rows("mv", (1, None, 0, 1), (2, None, 0, 1))


def test_case_28_coalesce_around_a_left_join(world: World) -> None:
    """COALESCE inside and outside of SUM: a match, no match, and an update of the left row beside the point."""
    world.run(*TWO_TABLES, "INSERT INTO t VALUES (1, 10)", "INSERT INTO u VALUES (1, 5)")
    world.create(
        "mv",
        "SELECT t.k, SUM(COALESCE(u.y, 0)) AS a, COALESCE(SUM(u.y), 0) AS b, MAX(x) AS x "
        "FROM t LEFT JOIN u ON t.k = u.k GROUP BY t.k",
    )
    world.change("mv", "DELETE FROM u")
    world.assert_rows("mv", (1, 0, 0, 10))
    world.change("mv", "UPDATE t SET x = 11")
    world.assert_rows("mv", (1, 0, 0, 11))
    world.change("mv", "INSERT INTO u VALUES (1, 7)")
    world.assert_rows("mv", (1, 7, 7, 11))


def test_case_29_full_join(world: World) -> None:
    """A right row comes and goes, then a left row comes: the left row alone, padded."""
    world.run(*TWO_TABLES)
    world.create("mv", "SELECT t.k, u.k AS r FROM t FULL JOIN u ON t.k = u.k")
    world.change("mv", "INSERT INTO u VALUES (1, 5)")
    world.assert_rows("mv", (None, 1))
    world.change("mv", "DELETE FROM u")
    world.assert_rows("mv")
    world.change("mv", "INSERT INTO t VALUES (1, 10)")
    world.assert_rows("mv", (1, None))


@pytest.mark.parametrize(
    "join",
    [
        "u ON CAST(t.k AS VARCHAR) = CAST(u.k AS VARCHAR)",
        "u ON EXTRACT(month FROM t.d) = u.k",
        "u ON t.k < u.k AND t.x <> u.y",
        "(VALUES (1, 7), (3, 8)) AS u(k, y) ON t.k = u.k",
        "(SELECT i AS k, i * 10 AS y FROM generate_series(1, 3) AS g(i)) AS u ON t.k = u.k",
    ],
)
@pytest.mark.parametrize("kind", ["LEFT", "INNER"])
def test_case_30_joins_on_expressions(world: World, kind: str, join: str) -> None:
    """Casts, EXTRACT, an inequality, VALUES and generate_series as the other side, outer and inner."""
    world.run(
        "CREATE TABLE t (k INTEGER, x INTEGER, d DATE)",
        "CREATE TABLE u (k INTEGER, y INTEGER)",
        "INSERT INTO t VALUES (1, 1, '2024-02-01'), (3, 3, '2024-03-01'), (9, 9, NULL)",
        "INSERT INTO u VALUES (1, 4), (2, 3)",
    )
    world.create("mv", f"SELECT t.k, t.x, u.y FROM t {kind} JOIN {join}")
    for statement in (
        "INSERT INTO u VALUES (3, 5), (3, 5)",
        "INSERT INTO t VALUES (2, 2, '2024-01-31'), (NULL, 0, NULL)",
        "UPDATE u SET k = 1, y = 2 WHERE k = 3",
        "DELETE FROM u WHERE k = 2",
        "DELETE FROM t WHERE k IS NULL OR k = 1",
    ):
        world.change("mv", statement)


@pytest.mark.parametrize("inputs", [6, 12, 20])
def test_a_join_of_many_inputs(world: World, inputs: int) -> None:
    """Up to twenty inputs, the same table several times among them, changed on several sides at once."""
    world.run(*(f"CREATE TABLE t{i} (k INTEGER, x{i} INTEGER)" for i in range(inputs)))
    world.run(*(f"INSERT INTO t{i} VALUES (1, {i}), (2, {i})" for i in range(inputs)))
    joins = " ".join(f"JOIN t{i} ON t{i}.k = t0.k" for i in range(1, inputs))
    total = " + ".join(f"x{i}" for i in range(inputs))
    world.create("mv", f"SELECT t0.k, {total} AS s FROM t0 {joins}")
    changes = [
        "INSERT INTO t0 VALUES (1, 100)",
        "DELETE FROM t1 WHERE k = 2",
        f"UPDATE t{inputs - 1} SET x{inputs - 1} = 7",
    ]
    assert world.change("mv", *changes).strategy == "incremental"
    world.change("mv", "INSERT INTO t1 VALUES (2, 50)")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.x, u.y FROM t LEFT JOIN u ON t.k = u.k AND u.y = 77",
        "SELECT t.k, count(*) AS n, sum(t.x) AS s FROM t LEFT JOIN u ON t.k = u.k AND u.y = 77 GROUP BY t.k",
        "SELECT v.k FROM v WHERE EXISTS (SELECT 1 FROM t LEFT JOIN u ON t.k = u.k AND u.y = 77 WHERE t.k = v.k)",
        "SELECT v.k, q.x FROM v LEFT JOIN (SELECT t.k, x FROM t LEFT JOIN u ON t.k = u.k AND u.y = 77) q ON q.k = v.k",
    ],
)
@pytest.mark.parametrize("rows", ["", "INSERT INTO u VALUES (1, 5), (2, 6)"])
def test_an_outer_join_whose_other_side_is_empty_for_sure(world: World, query: str, rows: str) -> None:
    """DuckDB's statistics take such a join for empty: what is added up over it must not be compared as zero."""
    world.run(
        "CREATE TABLE t (k INTEGER, x INTEGER)", "CREATE TABLE u (k INTEGER, y INTEGER)", "CREATE TABLE v (k INTEGER)"
    )
    world.run(
        "INSERT INTO t VALUES (1, -1), (1, 3), (2, NULL)", "INSERT INTO v VALUES (1), (2), (3)", rows or "SELECT 1"
    )
    world.create("mv", query)
    world.change("mv", "UPDATE t SET x = x + 1")
    world.change("mv", "INSERT INTO t VALUES (3, 3)", "DELETE FROM t WHERE k = 1")
    world.change("mv", "UPDATE t SET k = 1", "DELETE FROM v WHERE k = 2")


def test_rows_that_are_equal_but_not_the_same_match_apart(world: World) -> None:
    """30 days equal 1 month, but from the 31st of January on they lead to other days."""
    world.run(
        "CREATE TABLE t (d DATE, i INTERVAL)",
        "CREATE TABLE u (d DATE)",
        "INSERT INTO t VALUES ('2024-01-31', INTERVAL '30 days'), ('2024-01-31', INTERVAL '1 month')",
    )
    world.create("mv", "SELECT CAST(i AS VARCHAR) AS i FROM t SEMI JOIN u ON t.d + t.i > u.d")
    world.change("mv", "INSERT INTO u VALUES ('2024-02-29')")
    world.assert_rows("mv", ("30 days",))
    world.change("mv", "DELETE FROM u")
    world.assert_rows("mv")


@pytest.mark.parametrize(
    "join", ["RIGHT JOIN u AS w ON w.y = t.k AND v.k <= w.k", "FULL JOIN u AS w ON w.y = v.k AND v.k = t.k"]
)
def test_an_outer_join_that_refers_to_an_earlier_item_of_from(world: World, join: str) -> None:
    """It is another join for each row of the earlier item (the fuzzer's seed 610005)."""
    world.run("CREATE TABLE t (k INTEGER)", "CREATE TABLE u (k INTEGER, y INTEGER)")
    world.run("INSERT INTO t VALUES (1), (2), (2), (NULL)", "INSERT INTO u VALUES (1, 1), (2, 3), (3, 2)")
    world.create("mv", f"SELECT t.k, v.y, w.y AS z FROM t, u AS v {join}")
    world.change("mv", "INSERT INTO u VALUES (2, 1), (NULL, NULL)", "DELETE FROM t WHERE k = 1")
    world.change("mv", "UPDATE u SET y = k", "INSERT INTO t VALUES (3), (1)")

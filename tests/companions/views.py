"""Views of every refresh type over two small tables, and rounds of changes that empty, revive and double groups."""

from __future__ import annotations

from typing import Any

TABLES = (
    "CREATE TABLE t (g INTEGER, h VARCHAR, x INTEGER, y DECIMAL(10, 2), z DOUBLE)",
    "CREATE TABLE u (g INTEGER, w INTEGER)",
    "INSERT INTO t VALUES (1, 'a', 1, 1.5, 0.5), (1, 'a', 1, 1.5, 0.5), (2, 'b', 7, NULL, 2)",
    "INSERT INTO t VALUES (NULL, 'a', 3, 0.1, 1e9), (3, NULL, NULL, 2.0, NULL), (3, NULL, NULL, 2.0, NULL)",
    "INSERT INTO t VALUES (4, 'c', 5, 5.0, -1)",
    "INSERT INTO u VALUES (1, 10), (1, 10), (2, 20), (NULL, 30), (5, 50)",
)

ROUNDS: tuple[tuple[str, ...], ...] = (
    ("INSERT INTO t VALUES (1, 'a', 1, 1.5, 0.5), (5, 'd', 4, 4.5, 4), (NULL, NULL, NULL, NULL, NULL)",),
    ("DELETE FROM t WHERE g = 4", "DELETE FROM u WHERE w = 20", "INSERT INTO u VALUES (3, 31)"),
    ("INSERT INTO t VALUES (4, 'c', 6, 6.0, 6), (4, 'c', 6, 6.0, 6)", "UPDATE t SET x = x + 1, z = -z WHERE g = 1"),
    ("UPDATE t SET g = NULL WHERE g = 5", "UPDATE u SET g = 2 WHERE w = 30", "DELETE FROM t WHERE x IS NULL"),
    ("INSERT INTO t VALUES (1, 'e', 0, 5, 5), (1, 'e', 0, -5, -5), (2, 'b', 0, 0, 0)",),  # a sum that stays the same
    ("INSERT INTO t SELECT * FROM t", "INSERT INTO u SELECT * FROM u"),
    ("DELETE FROM t", "DELETE FROM u WHERE g IS NULL"),
    ("INSERT INTO t VALUES (1, 'a', 9, 9, 9), (NULL, 'b', 8, 8, 8), (NULL, 'b', 8, 8, 8)", "UPDATE u SET w = w + 1"),
)

#: title -> (refresh type, query)
VIEWS: dict[str, tuple[str, str]] = {
    "sums": ("AGGREGATE_GROUP", "SELECT g, SUM(x) AS s, COUNT(*) AS n, COUNT(y) AS c, SUM(y) AS d FROM t GROUP BY g"),
    "two_keys": ("AGGREGATE_GROUP", "SELECT h, g, COUNT(*) AS n FROM t GROUP BY g, h"),
    "averages": ("AGGREGATE_GROUP", "SELECT g, AVG(x) AS a, SUM(x) * 2 + 1 AS s FROM t GROUP BY g"),
    "floats": ("AGGREGATE_GROUP", "SELECT g, SUM(z) AS s FROM t GROUP BY g"),
    "extremes": ("AGGREGATE_GROUP", "SELECT g, MIN(x) AS low, MAX(y) AS high FROM t GROUP BY g"),
    "hidden_key": ("AGGREGATE_GROUP", "SELECT COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g"),
    "expression_key": ("AGGREGATE_GROUP", "SELECT g % 2 AS odd, g % 2 + 1 AS p, SUM(x) AS s FROM t GROUP BY g % 2"),
    "filtered": ("AGGREGATE_GROUP", "SELECT g, COUNT(*) FILTER (WHERE x > 1) AS n, SUM(x) AS s FROM t GROUP BY g"),
    "joined": ("AGGREGATE_GROUP", "SELECT t.g, SUM(w) AS w, COUNT(*) AS n FROM t JOIN u ON t.g = u.g GROUP BY t.g"),
    "outer_joined": (
        "AGGREGATE_GROUP",
        "SELECT t.g, COUNT(w) AS w, COUNT(*) AS n FROM t LEFT JOIN u ON t.g = u.g AND w > 5 GROUP BY t.g",
    ),
    "keys_only": ("AGGREGATE_GROUP", "SELECT g FROM t GROUP BY g"),
    "shown_groups": ("AGGREGATE_HAVING", "SELECT g, SUM(x) AS s FROM t GROUP BY g HAVING COUNT(*) > 1"),
    "total": ("SIMPLE_AGGREGATE", "SELECT SUM(x) AS s, COUNT(*) AS n, AVG(y) AS a FROM t"),
    "extreme": ("SIMPLE_AGGREGATE", "SELECT MAX(x) AS s, MIN(z) AS z FROM t"),
    "median": ("GROUP_RECOMPUTE", "SELECT g, median(x) AS m FROM t GROUP BY g"),
    "distinct_rows": ("DISTINCT_INCREMENTAL", "SELECT DISTINCT g, h FROM t"),
    "ranked": (
        "WINDOW_PARTITION",
        "SELECT g, x, h, row_number() OVER (PARTITION BY g ORDER BY x, h, y, z) AS r FROM t",
    ),
    "matched": ("SEMI_ANTI_RECOMPUTE", "SELECT g, x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.g)"),
    "unmatched": ("SEMI_ANTI_RECOMPUTE", "SELECT g, x FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.g = t.g)"),
    "left_joined": ("OUTER_JOIN", "SELECT t.g, t.x, u.w FROM t LEFT JOIN u ON t.g = u.g"),
    "nearest": (
        "ASOF_JOIN",
        "SELECT t.g, x, w FROM t ASOF JOIN (SELECT DISTINCT g, w FROM u) AS u ON t.g = u.g AND x <= w",
    ),
    "first_rows": ("TOP_K", "SELECT g, x, h FROM t ORDER BY x DESC NULLS LAST, g, h LIMIT 3"),
    "reached": (
        "RECURSIVE",
        "WITH RECURSIVE r AS (SELECT g FROM t WHERE x > 0 UNION SELECT w % 7 FROM r JOIN u ON u.g = r.g) FROM r",
    ),
    "counted": (
        "RECURSIVE_RECOMPUTE",
        "WITH RECURSIVE r AS (SELECT g, 0 AS i FROM t UNION ALL SELECT g, i + 1 FROM r WHERE i < 1) SELECT g, i FROM r",
    ),
    "projected": ("SIMPLE_PROJECTION", "SELECT g, x * 2 AS x2 FROM t WHERE x > 0"),
    "nested": ("SIMPLE_AGGREGATE", "SELECT COUNT(*) AS n, SUM(s) AS s FROM (SELECT g, SUM(x) AS s FROM t GROUP BY g)"),
    "any_rows": ("FULL_REFRESH", "SELECT g, x FROM t LIMIT 4"),
}  # fmt: skip


def create_tables(connection: Any) -> None:
    for statement in TABLES:
        connection.execute(statement)

"""Refreshes on PostgreSQL by the statements of `compile_with_facts`, beside its own REFRESH MATERIALIZED VIEW.

    python -m benchmarks.postgres [--rows 1000000]

Starts a server in a temporary directory. For each view and size of change: the median time of a refresh of ours, with
the time that its triggers add to the change, and of REFRESH MATERIALIZED VIEW; both results are compared.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

import psycopg

from benchmarks.measure import middle, milliseconds
from dbt_openivm import compile_with_facts
from tests.postgres import server
from tests.postgres.world import run

SCHEMAS: Mapping[str, Mapping[str, str]] = {
    "sales": {
        "id": "integer",
        "product": "integer",
        "region": "text",
        "amount": "numeric(10,2)",
        "quantity": "integer",
    },
    "products": {"product": "integer", "category": "text"},
}
FILL = (
    "INSERT INTO products SELECT i, 'category ' || i % 50 FROM generate_series(0, 9999) AS i",
    (
        "INSERT INTO sales SELECT i, i::bigint * 7919 % 10000, 'region ' || i % 20, "
        "(i % 100000 * 31 % 100000) / 100.0, i % 10 FROM generate_series(1, {rows}) AS i"
    ),
)
VIEWS = {
    "sums by product and region": (
        "SELECT product, region, sum(amount) AS total, count(*) AS n, avg(quantity) AS mean FROM sales "
        "GROUP BY product, region"
    ),
    "join, sums by category": (
        "SELECT category, sum(amount) AS total, max(amount) AS most, count(*) AS n FROM sales JOIN products "
        "USING (product) GROUP BY category"
    ),
    "filtered rows": "SELECT id, product, amount FROM sales WHERE quantity = 3 AND amount > 500",
    "deviation by product (recomputed groups)": (
        "SELECT product, stddev(amount) AS deviation FROM sales GROUP BY product"
    ),
    "rank within a product": (
        "SELECT id, product, rank() OVER (PARTITION BY product ORDER BY amount) AS place FROM sales"
    ),
}
TABLES = {name: [table for table in SCHEMAS if table in query] for name, query in VIEWS.items()}
CHANGES = (100, 10_000)
REPEATS = 3


def change(con: psycopg.Connection, rows: int, step: int, size: int) -> None:
    """A third each of inserted, updated and deleted rows, spread over the table."""
    part = max(size // 3, 1)
    stride = max(rows // part, 1)
    new = f"SELECT {rows} + {step * part} + i, (i * 13) % 10000, 'region ' || i % 20, i % 1000, i % 10"
    con.execute(f"INSERT INTO sales {new} FROM generate_series(1, {part}) AS i")
    con.execute(f"UPDATE sales SET amount = amount + 1 WHERE id % {stride} = {step} AND id <= {rows}")
    con.execute(f"DELETE FROM sales WHERE id % {stride} = {step + stride // 2} AND id <= {rows}")


def measure(where: str, name: str, rows: int, size: int) -> tuple[list[float], list[float], bool]:
    """Milliseconds of our refreshes and of PostgreSQL's, and whether the results are equal."""
    query = VIEWS[name]
    schemas = {table: SCHEMAS[table] for table in TABLES[name]}
    answer = compile_with_facts(query, {"target_dialect": "postgres", "schemas": schemas, "view": "ours"})
    ours, theirs = [], []
    with psycopg.connect(where, autocommit=True) as con:
        con.execute("SET client_min_messages = warning; DROP SCHEMA IF EXISTS bench CASCADE; CREATE SCHEMA bench")
        con.execute("SET search_path = bench")
        for table, columns in SCHEMAS.items():
            con.execute(f"CREATE TABLE {table} ({', '.join(f'{column} {type_}' for column, type_ in columns.items())})")
        for statement in FILL:
            con.execute(statement.format(rows=rows))
        con.execute("CREATE INDEX ON sales (product); CREATE INDEX ON sales (id); ANALYZE")
        con.execute(f"CREATE MATERIALIZED VIEW theirs AS {query}")
        run(con, answer["setup"])
        for step in range(REPEATS + 1):
            change(con, rows, step, size)

            def refresh() -> None:
                with con.transaction():
                    con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    run(con, answer["statements"])

            ours.append(milliseconds(refresh))
            theirs.append(milliseconds(lambda: con.execute("REFRESH MATERIALIZED VIEW theirs")))
        both = "(SELECT * FROM {0} EXCEPT ALL SELECT * FROM {1})"
        found = con.execute(f"{both.format('ours', 'theirs')} UNION ALL {both.format('theirs', 'ours')}").fetchall()
    return ours[1:], theirs[1:], not found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    folder = server.binaries()
    if folder is None:
        sys.exit("There are no programs of a PostgreSQL server (Debian: apt-get install postgresql).")
    print(f"PostgreSQL {server.version(folder)}, {rows:,} sales, medians of {REPEATS}, milliseconds\n")
    print("| view | changed rows | refresh | REFRESH MATERIALIZED VIEW | factor | equal |")
    print("| --- | --: | --: | --: | --: | --- |")
    right = True
    with server.running(folder) as where:
        for name in VIEWS:
            for size in CHANGES:
                ours, theirs, equal = measure(where, name, rows, size)
                factor = middle(theirs) / middle(ours)
                shown = f"{middle(ours):,.0f} | {middle(theirs):,.0f} | {factor:.1f} | {'yes' if equal else 'NO'}"
                print(f"| {name} | {size:,} | {shown} |", flush=True)
                right = right and equal
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

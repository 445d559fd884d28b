"""What capturing a base costs, as ratios measured in one run.

    python benchmarks/bench_capture.py [--rows 10000000]

`diff`: finding out that nothing changed against the bare fingerprint query, and 1,000 scattered changes against
EXCEPT ALL both ways. `trigger`: a writer's statement with triggers against the same one without, and the collect after.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import duckdb

from dbt_openivm.compiler.facts import Column
from dbt_openivm.engine.capture.base import Base
from dbt_openivm.engine.capture.diff import DiffCapture
from dbt_openivm.engine.capture.trigger import TriggerCapture
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.names import RelationName

COLUMNS = {
    "sale_id": "BIGINT",
    "product_id": "INTEGER",
    "customer_id": "INTEGER",
    "quantity": "INTEGER",
    "price": "DECIMAL(10,2)",
    "sold_on": "DATE",
}
ROW = """i AS sale_id, CAST(hash(i) % 100000 AS INTEGER) AS product_id,
    CAST(hash(i + 1) % 1000000 AS INTEGER) AS customer_id,
    CAST(hash(i + 2) % 10 AS INTEGER) AS quantity, CAST(hash(i + 3) % 100000 AS DECIMAL(12, 2)) / 100 AS price,
    DATE '2024-01-01' + CAST(hash(i + 4) % 365 AS INTEGER) AS sold_on"""


def milliseconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def best(action: Callable[[], object], runs: int = 5) -> float:
    return min(milliseconds(action) for _ in range(runs))


def make_base(connection: duckdb.DuckDBPyConnection, table: str) -> Base:
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    roles = {
        role: RelationName("memory", "openivm_main", f"openivm_{role}_{table}") for role in ("delta", "copy", "buckets")
    }
    return Base(
        key=f"memory.main.{table}",
        from_sql=f'"memory"."main"."{table}"',
        columns=tuple(Column(name, type_name) for name, type_name, *_ in described),
        schema=RelationName("memory", "openivm_main", ""),
        objects=roles,
        version=0,
        relation=RelationName("memory", "main", table),
    )


def make_sales(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE sales AS SELECT {casts} FROM (SELECT {ROW} FROM range({rows}) AS r(i))")
    connection.execute("CREATE SCHEMA openivm_main")


def scatter(connection: duckdb.DuckDBPyConnection, rows: int, changes: int) -> None:
    """Half inserts, a quarter updates, a quarter deletes."""
    step = max(1, rows // (changes // 2))
    connection.execute(f"UPDATE sales SET quantity = quantity + 1 WHERE sale_id % {2 * step} = 7")
    connection.execute(f"DELETE FROM sales WHERE sale_id % {2 * step} = 11")
    casts = ", ".join(f"CAST({name} AS {kind})" for name, kind in COLUMNS.items())
    high = "(SELECT max(sale_id) + 1 FROM sales)"
    connection.execute(
        f"INSERT INTO sales SELECT {casts} FROM (SELECT {ROW} FROM range({high}, {high} + {changes // 2}) AS r(i))"
    )


def report(what: str, figure: float, against: str, reference: float) -> None:
    print(f"{what:<42}{figure:>10.1f} ms   {against:<34}{reference:>10.1f} ms   ratio {figure / reference:>6.2f}")


def bench_diff(connection: duckdb.DuckDBPyConnection, rows: int, changes: int) -> None:
    base = make_base(connection, "sales")
    capture = DiffCapture(DuckDBSession(connection), render)
    print(f"install: {milliseconds(lambda: capture.install(base)):.0f} ms")
    names = ", ".join(COLUMNS)
    bare = best(lambda: connection.execute(f"SELECT count(*), sum(hash({names})) FROM sales").fetchall())
    report("diff, nothing changed", best(lambda: capture.collect(base, 1)), "bare fingerprint query", bare)
    copy = base.objects["copy"].sql
    compare = "SELECT count(*) FROM ((FROM {}) EXCEPT ALL (FROM {}))"
    found = []
    for batch in range(2, 5):
        scatter(connection, rows, changes)
        if batch == 2:
            both = sum(
                milliseconds(lambda pair=pair: connection.execute(compare.format(*pair)).fetchall())
                for pair in (("sales", copy), (copy, "sales"))
            )
        found.append(milliseconds(lambda batch=batch: capture.collect(base, batch)))
    report(f"diff, {changes:,} scattered changes (median)", sorted(found)[1], "EXCEPT ALL both ways", both)
    report("  the check for tampering (broken)", best(lambda: capture.probe(base)), "bare fingerprint query", bare)
    capture.uninstall(base)


def bench_trigger(connection: duckdb.DuckDBPyConnection) -> None:
    base = make_base(connection, "sales")
    capture = TriggerCapture(DuckDBSession(connection), render)
    if capture.refusal(base):
        print(capture.refusal(base))
        return
    for size in (1, 1_000, 1_000_000):
        insert = f"INSERT INTO sales SELECT * FROM (FROM sales LIMIT {size})"
        plain = best(lambda insert=insert: connection.execute(insert), 3)
        capture.install(base)
        fired = best(lambda insert=insert: connection.execute(insert), 3)
        report(f"trigger, INSERT of {size:,} rows", fired, "without triggers", plain)
        print(f"  collect afterwards: {milliseconds(lambda: capture.collect(base, 1)):.1f} ms")
        capture.uninstall(base)
    capture.install(base)
    idle = best(lambda: (capture.probe(base), capture.collect(base, 2)), 20)
    print(f"trigger, nothing changed (broken, collect): {idle:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--changes", type=int, default=1_000)
    arguments = parser.parse_args()
    connection = duckdb.connect()
    make_sales(connection, arguments.rows)
    print(f"DuckDB {duckdb.__version__}, {arguments.rows:,} rows, {len(COLUMNS)} columns")
    bench_diff(connection, arguments.rows, arguments.changes)
    bench_trigger(connection)


if __name__ == "__main__":
    main()

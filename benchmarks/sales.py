"""The data: a shop's sales with products and customers, and batches of changes to it. Everything follows from numbers.

`batch_new` holds the inserted rows and the new image of updated ones, `batch_old` the deleted rows and the old image of
updated ones. So a hand-written refresh is handed its change, as from a perfect change feed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import duckdb

# Keep the log in one piece, so that no checkpoint falls into a measurement.
NO_CHECKPOINT = "SET checkpoint_threshold = '4GB'"


@dataclass(frozen=True)
class Size:
    """Rows of the three tables."""

    sales: int
    products: int
    customers: int

    @property
    def file_name(self) -> str:
        return f"sales_{self.sales}_{self.products}_{self.customers}.duckdb"


@dataclass(frozen=True)
class Change:
    """How many sales a batch inserts, updates and deletes."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    @property
    def title(self) -> str:
        parts = ((self.inserts, "inserts"), (self.updates, "updates"), (self.deletes, "deletes"))
        return " + ".join(f"{rows:,} {name}" for rows, name in parts if rows) or "nothing"

    @property
    def key(self) -> str:
        return f"{self.inserts}_{self.updates}_{self.deletes}"


FEW = Change(inserts=100)
"""With as many products, each touches a group or partition of its own."""


def base_file(folder: Path, size: Size) -> Path:
    """The database with the data of this size: made on first use, then kept."""
    path = folder / size.file_name
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        with duckdb.connect(str(unfinished)) as con:
            create(con, size)
        unfinished.rename(path)
    return path


def create(con: duckdb.DuckDBPyConnection, size: Size) -> None:
    """Create sales, products, customers and the empty batches."""
    con.execute(
        f"CREATE TABLE products AS SELECT i::INTEGER AS product_id, 'product ' || i AS name, "
        f"'category ' || hash(i, 11) % 50 AS category FROM range({size.products}) AS numbers(i)"
    )
    con.execute(
        f"CREATE TABLE customers AS SELECT i::INTEGER AS customer_id, 'country ' || hash(i, 12) % 100 AS country, "
        f"'segment ' || hash(i, 13) % 5 AS segment FROM range({size.customers}) AS numbers(i)"
    )
    con.execute(f"CREATE TABLE sales AS {_sales(0, size.sales, size)}")
    for batch in ("batch_new", "batch_old"):
        con.execute(f"CREATE TABLE {batch} AS FROM sales LIMIT 0")


def change(con: duckdb.DuckDBPyConnection, size: Size, what: Change, step: int) -> float:
    """Fill the batches of a step and apply them to `sales`; return the milliseconds that writing to `sales` took.

    The same step on the same data always makes the same change.
    """
    [(first,)] = con.execute("SELECT max(sale_id) + 1 FROM sales").fetchall()
    con.execute("DELETE FROM batch_old")
    con.execute("DELETE FROM batch_new")
    if what.updates or what.deletes:
        con.execute(
            f"INSERT INTO batch_old FROM sales ORDER BY hash(sale_id, {step}) LIMIT {what.updates + what.deletes}"
        )
        con.execute(
            "INSERT INTO batch_new SELECT "
            "* REPLACE ((amount * 0.9)::DECIMAL(12, 2) AS amount, quantity % 10 + 1 AS quantity) "
            f"FROM batch_old ORDER BY sale_id LIMIT {what.updates}"
        )
    con.execute(f"INSERT INTO batch_new {_sales(first, first + what.inserts, size)}")
    start = time.perf_counter()
    _apply(con, what)
    took = (time.perf_counter() - start) * 1000
    con.execute("CHECKPOINT")
    return took


def _apply(con: duckdb.DuckDBPyConnection, what: Change) -> None:
    con.execute("BEGIN")
    if what.deletes:
        con.execute(
            "DELETE FROM sales WHERE sale_id IN "
            "(FROM (SELECT sale_id FROM batch_old) ANTI JOIN batch_new USING (sale_id))"
        )
    if what.updates:
        con.execute(
            "UPDATE sales SET amount = b.amount, quantity = b.quantity "
            "FROM batch_new AS b WHERE sales.sale_id = b.sale_id"
        )
    if what.inserts:
        con.execute("INSERT INTO sales FROM batch_new ANTI JOIN batch_old USING (sale_id)")
    con.execute("COMMIT")


def _sales(first: int, end: int, size: Size) -> str:
    """The sales with these numbers."""
    return (
        "SELECT i AS sale_id, "
        f"(hash(i, 1) % {size.products})::INTEGER AS product_id, "
        f"(hash(i, 2) % {size.customers})::INTEGER AS customer_id, "
        "(hash(i, 3) % 10 + 1)::INTEGER AS quantity, "
        "((hash(i, 4) % 100000)::BIGINT * 0.01)::DECIMAL(12, 2) AS amount, "
        f"DATE '2025-01-01' + (i * 365 // {size.sales})::INTEGER AS sold_on "
        f"FROM range({first}, {end}) AS numbers(i)"
    )

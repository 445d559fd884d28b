"""The views: their query, the best SQL we know to maintain each by hand, and that as a dbt incremental model."""

from __future__ import annotations

from dataclasses import dataclass

WEIGHTED = (
    "SELECT product_id, customer_id, amount, 1 AS weight FROM batch_new "
    "UNION ALL SELECT product_id, customer_id, -amount, -1 FROM batch_old"
)


@dataclass(frozen=True)
class View:
    """A view under measurement.

    Args:
        name: A to H.
        title: what it is, for the report.
        sql: its query.
        by_hand: statements that bring table `by_hand` up to date with the batches.
        incremental: a dbt incremental model that does it with a merge on `unique_key`.
        unique_key: the view's key.
        exact: columns that must be equal to the bit.
        floats: columns that may differ by 1e-9, relative.
        speed_up: how many times faster than the recompute 1,000 inserts should be.
        few_speed_up: the same for `FEW` inserts; None where these are not measured.
    """

    name: str
    title: str
    sql: str
    by_hand: tuple[str, ...]
    incremental: str
    unique_key: tuple[str, ...]
    exact: tuple[str, ...]
    speed_up: float
    floats: tuple[str, ...] = ()
    few_speed_up: float | None = None


A_SQL = "SELECT product_id, sum(amount) AS total, count(*) AS sales, avg(amount) AS mean FROM sales GROUP BY product_id"
A_CHANGE = (
    "SELECT product_id, sum(amount)::DECIMAL(38, 2) AS total, sum(weight)::BIGINT AS sales "
    f"FROM ({WEIGHTED}) GROUP BY product_id"
)
A = View(
    name="A",
    title="sum, count and avg by product",
    sql=A_SQL,
    by_hand=(
        f"""
        MERGE INTO by_hand AS v USING ({A_CHANGE}) AS d ON v.product_id = d.product_id
        WHEN MATCHED AND v.sales + d.sales = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET total = v.total + d.total, sales = v.sales + d.sales,
            mean = (v.total + d.total)::DOUBLE / (v.sales + d.sales)
        WHEN NOT MATCHED AND d.sales > 0 THEN INSERT (product_id, total, sales, mean)
            VALUES (d.product_id, d.total, d.sales, d.total::DOUBLE / d.sales)
        """,
    ),
    incremental=f"""
        {{% if is_incremental() %}}
        SELECT d.product_id, coalesce(v.total, 0) + d.total AS total, coalesce(v.sales, 0) + d.sales AS sales,
            (coalesce(v.total, 0) + d.total)::DOUBLE / (coalesce(v.sales, 0) + d.sales) AS mean
        FROM ({A_CHANGE}) AS d LEFT JOIN {{{{ this }}}} AS v ON v.product_id = d.product_id
        {{% else %}}
        {A_SQL}
        {{% endif %}}
    """,
    unique_key=("product_id",),
    exact=("product_id", "total", "sales"),
    floats=("mean",),
    speed_up=8,
)

B_SQL = (
    "SELECT p.category, c.country, sum(s.amount) AS total, count(*) AS sales "
    "FROM sales AS s JOIN products AS p ON s.product_id = p.product_id "
    "JOIN customers AS c ON s.customer_id = c.customer_id "
    "GROUP BY p.category, c.country"
)
B_CHANGE = (
    "SELECT p.category, c.country, sum(b.amount)::DECIMAL(38, 2) AS total, sum(b.weight)::BIGINT AS sales "
    f"FROM ({WEIGHTED}) AS b JOIN products AS p ON b.product_id = p.product_id "
    "JOIN customers AS c ON b.customer_id = c.customer_id GROUP BY p.category, c.country"
)
B = View(
    name="B",
    title="three-way join, sum and count by category and country",
    sql=B_SQL,
    by_hand=(
        f"""
        MERGE INTO by_hand AS v USING ({B_CHANGE}) AS d ON v.category = d.category AND v.country = d.country
        WHEN MATCHED AND v.sales + d.sales = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET total = v.total + d.total, sales = v.sales + d.sales
        WHEN NOT MATCHED AND d.sales > 0 THEN INSERT (category, country, total, sales)
            VALUES (d.category, d.country, d.total, d.sales)
        """,
    ),
    incremental=f"""
        {{% if is_incremental() %}}
        SELECT d.category, d.country, coalesce(v.total, 0) + d.total AS total, coalesce(v.sales, 0) + d.sales AS sales
        FROM ({B_CHANGE}) AS d LEFT JOIN {{{{ this }}}} AS v ON v.category = d.category AND v.country = d.country
        {{% else %}}
        {B_SQL}
        {{% endif %}}
    """,
    unique_key=("category", "country"),
    exact=("category", "country", "total", "sales"),
    speed_up=15,
)

C_ROWS = (
    "SELECT s.sale_id, s.amount, p.name, c.country FROM {sales} AS s JOIN products AS p ON s.product_id = p.product_id "
    "JOIN customers AS c ON s.customer_id = c.customer_id WHERE p.category = 'category 7' AND s.quantity >= 9"
)
C_SQL = C_ROWS.format(sales="sales")
C_CHANGE = C_ROWS.format(sales="batch_new")
C_OLD_ROWS_GO = (
    "{% if is_incremental() %}DELETE FROM {{ this }} WHERE sale_id IN (SELECT sale_id FROM batch_old){% endif %}"
)
C = View(
    name="C",
    title="three-way join, projected, one row in 250 kept",
    sql=C_SQL,
    by_hand=(
        "DELETE FROM by_hand WHERE sale_id IN (SELECT sale_id FROM batch_old)",
        f"INSERT INTO by_hand {C_CHANGE}",
    ),
    incremental=f"""
        {{{{ config(pre_hook="{C_OLD_ROWS_GO}") }}}}
        {{% if is_incremental() %}}
        {C_CHANGE}
        {{% else %}}
        {C_SQL}
        {{% endif %}}
    """,
    unique_key=("sale_id",),
    exact=("sale_id", "amount", "name", "country"),
    speed_up=3,
)

D_ROWS = "SELECT product_id, min(amount) AS lowest, max(amount) AS highest FROM {sales} GROUP BY product_id"
D_SQL = D_ROWS.format(sales="sales")
D_CHANGE = D_ROWS.format(sales="batch_new")
D_LOST = (
    "SELECT DISTINCT b.product_id FROM batch_old AS b JOIN {view} AS v ON v.product_id = b.product_id "
    "WHERE b.amount <= v.lowest OR b.amount >= v.highest"
)
D = View(
    name="D",
    title="min and max by product",
    sql=D_SQL,
    by_hand=(
        # Groups that lost an extremum are computed anew; the others only grow.
        f"CREATE OR REPLACE TEMP TABLE lost AS {D_LOST.format(view='by_hand')}",
        "DELETE FROM by_hand WHERE product_id IN (FROM lost)",
        f"INSERT INTO by_hand {D_ROWS.format(sales='sales WHERE product_id IN (FROM lost)')}",
        f"""
        MERGE INTO by_hand AS v USING ({D_CHANGE}) AS d ON v.product_id = d.product_id
        WHEN MATCHED AND (d.lowest < v.lowest OR d.highest > v.highest)
            THEN UPDATE SET lowest = least(v.lowest, d.lowest), highest = greatest(v.highest, d.highest)
        WHEN NOT MATCHED THEN INSERT (product_id, lowest, highest) VALUES (d.product_id, d.lowest, d.highest)
        """,
    ),
    incremental=f"""
        {D_SQL.replace(" GROUP BY product_id", "")}
        {{% if is_incremental() %}}
        WHERE product_id IN (SELECT product_id FROM batch_new UNION SELECT product_id FROM batch_old)
        {{% endif %}}
        GROUP BY product_id
    """,
    unique_key=("product_id",),
    exact=("product_id", "lowest", "highest"),
    speed_up=5,
)


def touched(column: str) -> str:
    """The values of a column in the batches."""
    return f"SELECT {column} FROM batch_new UNION SELECT {column} FROM batch_old"


E_ROWS = (
    "SELECT sale_id, product_id, amount, "
    "row_number() OVER (PARTITION BY product_id ORDER BY amount DESC, sale_id) AS place FROM {sales}"
)
E_SQL = E_ROWS.format(sales="sales")
E_TOUCHED = E_ROWS.format(sales=f"sales WHERE product_id IN ({touched('product_id')})")
E = View(
    name="E",
    title="row_number by product",
    sql=E_SQL,
    by_hand=(
        f"DELETE FROM by_hand WHERE product_id IN ({touched('product_id')})",
        f"INSERT INTO by_hand {E_TOUCHED}",
    ),
    incremental=f"""
        {{{{ config(pre_hook="{C_OLD_ROWS_GO}") }}}}
        {{% if is_incremental() %}}
        {E_TOUCHED}
        {{% else %}}
        {E_SQL}
        {{% endif %}}
    """,
    unique_key=("sale_id",),
    exact=("sale_id", "product_id", "amount", "place"),
    speed_up=5,
    few_speed_up=10,
)

F_ROWS = "SELECT customer_id, count(DISTINCT product_id) AS products FROM {sales} GROUP BY customer_id"
F_SQL = F_ROWS.format(sales="sales")
F_TOUCHED = F_ROWS.format(sales=f"sales WHERE customer_id IN ({touched('customer_id')})")
F = View(
    name="F",
    title="count of distinct products by customer",
    sql=F_SQL,
    by_hand=(
        f"DELETE FROM by_hand WHERE customer_id IN ({touched('customer_id')})",
        f"INSERT INTO by_hand {F_TOUCHED}",
    ),
    incremental=f"""
        {{% if is_incremental() %}}
        {F_TOUCHED}
        {{% else %}}
        {F_SQL}
        {{% endif %}}
    """,
    unique_key=("customer_id",),
    exact=("customer_id", "products"),
    speed_up=5,
)

G_SQL = (
    "SELECT c.country, count(s.sale_id) AS sales FROM customers AS c "
    "LEFT JOIN sales AS s ON s.customer_id = c.customer_id GROUP BY c.country"
)
G_CHANGE = (
    f"SELECT c.country, sum(b.weight)::BIGINT AS sales FROM ({WEIGHTED}) AS b "
    "JOIN customers AS c ON b.customer_id = c.customer_id GROUP BY c.country"
)
G = View(
    name="G",
    title="left join, count by country",
    sql=G_SQL,
    by_hand=(
        f"""
        MERGE INTO by_hand AS v USING ({G_CHANGE}) AS d ON v.country = d.country
        WHEN MATCHED THEN UPDATE SET sales = v.sales + d.sales
        """,
    ),
    incremental=f"""
        {{% if is_incremental() %}}
        SELECT v.country, v.sales + d.sales AS sales FROM ({G_CHANGE}) AS d JOIN {{{{ this }}}} AS v USING (country)
        {{% else %}}
        {G_SQL}
        {{% endif %}}
    """,
    unique_key=("country",),
    exact=("country", "sales"),
    speed_up=6,
)

H_ROWS = (
    "SELECT c.customer_id, c.country FROM customers AS c "
    "WHERE EXISTS (SELECT 1 FROM sales AS s WHERE s.customer_id = c.customer_id AND s.quantity >= 9)"
)
H_TOUCHED = f"{H_ROWS} AND c.customer_id IN ({touched('customer_id')})"
H_TOUCHED_ROWS_GO = (
    "{% if is_incremental() %}DELETE FROM {{ this }} "
    f"WHERE customer_id IN ({touched('customer_id')})"
    "{% endif %}"
)
H = View(
    name="H",
    title="customers for whom a large sale exists",
    sql=H_ROWS,
    by_hand=(
        f"DELETE FROM by_hand WHERE customer_id IN ({touched('customer_id')})",
        f"INSERT INTO by_hand {H_TOUCHED}",
    ),
    incremental=f"""
        {{{{ config(pre_hook="{H_TOUCHED_ROWS_GO}") }}}}
        {{% if is_incremental() %}}
        {H_TOUCHED}
        {{% else %}}
        {H_ROWS}
        {{% endif %}}
    """,
    unique_key=("customer_id",),
    exact=("customer_id", "country"),
    speed_up=6,
)

VIEWS = {view.name: view for view in (A, B, C, D, E, F, G, H)}

-- name: cte
-- construct: CTE
-- cost: delta
WITH big AS (SELECT id, product, amount FROM sales WHERE amount > 2)
SELECT product, amount * 2 AS twice FROM big

-- name: cte_used_twice
-- construct: CTE that is used twice
-- cost: delta, matches
-- about: A linear CTE used twice is two reads of one delta.
WITH big AS (SELECT id, product, amount FROM sales WHERE quantity > 1)
SELECT a.id AS first, b.id AS second FROM big AS a JOIN big AS b ON a.product = b.product AND a.id < b.id

-- name: grouped_cte_used_twice
-- construct: CTE that is used twice
-- cost: delta, matches
-- about: A grouped CTE used twice is one internal view, read twice.
WITH totals AS (SELECT product, sum(quantity) AS total FROM sales GROUP BY product)
SELECT a.product AS product, b.product AS richer FROM totals AS a JOIN totals AS b ON a.total < b.total

-- name: cte_with_column_names
-- construct: CTE
-- cost: delta
WITH t(k, n) AS (SELECT product, name FROM products)
SELECT k, n FROM t WHERE k IS NOT NULL

-- name: cte_hides_a_table
-- construct: CTE
-- cost: delta
WITH sales AS (SELECT product AS p FROM products)
SELECT p FROM sales

-- name: view_over_view
-- construct: plain view
-- cost: delta, matches
-- about: Plain views are inlined, views over views too; the grouping in the inner one becomes an internal view.
SELECT p.name, v.total FROM paid_by_product AS v JOIN products AS p USING (product)

-- name: view
-- construct: plain view
-- cost: delta
SELECT customer, amount FROM paid_sales WHERE amount > 1

-- name: scalar_macro
-- construct: macro
-- cost: delta
SELECT id, gross(amount, 19) AS gross_amount FROM sales

-- name: aggregate_macro
-- construct: macro
-- cost: delta
SELECT product, total(quantity) AS n FROM sales GROUP BY product

-- name: table_macro
-- construct: macro
-- cost: delta
SELECT product, amount FROM sales_of(1)

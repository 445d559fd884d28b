-- name: union_all
SELECT product FROM sales UNION ALL SELECT product FROM products

-- name: union_all_of_different_types
-- about: DuckDB gives the union one type a column; a delta that comes from one branch alone must have it too.
SELECT id, amount, note FROM sales UNION ALL SELECT id, amount, reason FROM refunds

-- name: union_all_of_one_table
SELECT product, 1 AS side FROM sales UNION ALL SELECT product, 2 FROM sales WHERE paid

-- name: union_of_three
SELECT product FROM sales UNION ALL SELECT product FROM products UNION ALL SELECT product FROM refunds

-- name: union_then_group
SELECT product, sum(amount) AS total
FROM (SELECT product, amount FROM sales UNION ALL SELECT product, -amount FROM refunds) AS flows
GROUP BY product

-- name: union_of_aggregates
-- about: Each grouping is an internal view; the model adds their deltas.
SELECT 'sold' AS kind, product, sum(quantity) AS n FROM sales GROUP BY product
UNION ALL
SELECT 'back', product, count(*) FROM refunds GROUP BY product

-- name: distinct
-- about: SELECT DISTINCT is a grouping by all columns that counts its rows.
SELECT DISTINCT product, paid FROM sales

-- name: distinct_of_join
SELECT DISTINCT p.category FROM sales AS s JOIN products AS p ON s.product = p.product

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

-- name: union_distinct
-- about: UNION groups the rows of both branches; its own DISTINCT is the only one.
SELECT product FROM sales UNION SELECT product FROM products UNION SELECT DISTINCT product FROM refunds

-- name: union_by_name
-- about: Columns go by name; a branch without a name has NULL there.
SELECT id, amount, note FROM sales UNION ALL BY NAME SELECT reason AS note, id FROM refunds

-- name: intersect
-- about: Each row's copies on both sides are counted.
SELECT product FROM sales INTERSECT SELECT product FROM products

-- name: intersect_all
-- about: A row is repeated by unnesting a list as long as the smaller count.
SELECT product FROM sales INTERSECT ALL SELECT product FROM refunds

-- name: except
SELECT product, paid FROM sales EXCEPT SELECT product, true FROM products

-- name: except_all
SELECT product FROM sales EXCEPT ALL SELECT product FROM products

-- name: except_of_aggregates
-- about: Branches that are internal views; the types are those of the set operation.
SELECT product, count(*) AS n FROM sales GROUP BY product EXCEPT ALL SELECT product, count(*) FROM refunds GROUP BY product

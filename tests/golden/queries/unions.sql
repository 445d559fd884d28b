-- name: union_all
-- construct: `UNION ALL`
-- cost: delta
SELECT product FROM sales UNION ALL SELECT product FROM products

-- name: union_all_of_different_types
-- construct: `UNION ALL`
-- cost: delta
-- about: DuckDB gives the union one type a column; a delta that comes from one branch alone must have it too.
SELECT id, amount, note FROM sales UNION ALL SELECT id, amount, reason FROM refunds

-- name: union_all_of_one_table
-- construct: `UNION ALL`
-- cost: delta
SELECT product, 1 AS side FROM sales UNION ALL SELECT product, 2 FROM sales WHERE paid

-- name: union_of_three
-- construct: `UNION ALL`
-- cost: delta
SELECT product FROM sales UNION ALL SELECT product FROM products UNION ALL SELECT product FROM refunds

-- name: union_then_group
-- construct: aggregates over `UNION ALL`
-- cost: delta
SELECT product, sum(amount) AS total
FROM (SELECT product, amount FROM sales UNION ALL SELECT product, -amount FROM refunds) AS flows
GROUP BY product

-- name: union_of_aggregates
-- construct: `UNION ALL` of aggregates
-- cost: delta
-- about: Each grouping is an internal view; the model adds their deltas.
SELECT 'sold' AS kind, product, sum(quantity) AS n FROM sales GROUP BY product
UNION ALL
SELECT 'back', product, count(*) FROM refunds GROUP BY product

-- name: distinct
-- construct: `SELECT DISTINCT`
-- cost: delta
-- about: SELECT DISTINCT is a grouping by all columns that counts its rows.
SELECT DISTINCT product, paid FROM sales

-- name: distinct_of_join
-- construct: `SELECT DISTINCT`
-- cost: delta, matches
SELECT DISTINCT p.category FROM sales AS s JOIN products AS p ON s.product = p.product

-- name: union_distinct
-- construct: `UNION`
-- cost: delta
-- about: UNION groups the rows of both branches; its own DISTINCT is the only one.
SELECT product FROM sales UNION SELECT product FROM products UNION SELECT DISTINCT product FROM refunds

-- name: union_by_name
-- construct: `UNION BY NAME`
-- cost: delta
-- about: Columns go by name; a branch without a name has NULL there.
SELECT id, amount, note FROM sales UNION ALL BY NAME SELECT reason AS note, id FROM refunds

-- name: intersect
-- construct: `INTERSECT`
-- cost: delta
-- about: Each row's copies on both sides are counted.
SELECT product FROM sales INTERSECT SELECT product FROM products

-- name: intersect_all
-- construct: `INTERSECT ALL`
-- cost: delta
-- about: A row is repeated by unnesting a list as long as the smaller count.
SELECT product FROM sales INTERSECT ALL SELECT product FROM refunds

-- name: except
-- construct: `EXCEPT`
-- cost: delta
SELECT product, paid FROM sales EXCEPT SELECT product, true FROM products

-- name: except_all
-- construct: `EXCEPT ALL`
-- cost: delta
SELECT product FROM sales EXCEPT ALL SELECT product FROM products

-- name: except_of_aggregates
-- construct: `EXCEPT ALL`
-- cost: delta
-- about: Branches that are internal views; the types are those of the set operation.
SELECT product, count(*) AS n FROM sales GROUP BY product EXCEPT ALL SELECT product, count(*) FROM refunds GROUP BY product

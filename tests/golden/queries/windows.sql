-- name: row_number
-- construct: window function
-- cost: delta, partitions
SELECT id, row_number() OVER (PARTITION BY product ORDER BY day, id) AS n FROM sales

-- name: frames
-- construct: window function
-- cost: delta, partitions
-- about: Both calls partition by the product: one state, and what a change touches are products.
SELECT id, product,
  sum(quantity) OVER (PARTITION BY product, customer ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week,
  avg(amount) FILTER (WHERE paid) OVER (PARTITION BY product) AS mean
FROM sales

-- name: several_partitions
-- construct: window function
-- cost: delta, partitions
-- about: Nothing in common: the first is an internal view, over which the second is computed.
SELECT id, count(*) OVER (PARTITION BY product) AS of_product, count(*) OVER (PARTITION BY customer) AS of_customer
FROM sales

-- name: no_partition
-- construct: window function without `PARTITION BY`
-- cost: delta, partitions
SELECT id, sum(amount) OVER (ORDER BY day, id) AS running FROM sales

-- name: qualify
-- construct: `QUALIFY`
-- cost: delta, partitions
-- about: The state holds the visible rows only, beside the keys of their partitions.
SELECT id, amount FROM sales QUALIFY row_number() OVER (PARTITION BY product ORDER BY amount DESC, id) = 1

-- name: over_groups
-- construct: window function over an aggregate
-- cost: delta, partitions
SELECT product, sum(amount) AS total, rank() OVER w AS place FROM sales GROUP BY product
WINDOW w AS (ORDER BY sum(amount) DESC)

-- name: distinct_on
-- construct: `DISTINCT ON`
-- cost: delta, partitions
SELECT DISTINCT ON (product) product, id FROM sales ORDER BY product, id

-- name: limit
-- construct: `ORDER BY` with `LIMIT`
-- cost: delta, first rows
-- about: The state holds all rows; the boundary shows the first ones. Ties go by the other columns.
SELECT id FROM sales ORDER BY day DESC, id LIMIT 3

-- name: limit_of_groups
-- construct: `ORDER BY` with `LIMIT`
-- cost: delta, first rows
SELECT product, sum(amount) AS total FROM sales GROUP BY product ORDER BY total DESC NULLS LAST, product LIMIT 10 OFFSET 2

-- name: limit_below
-- construct: `ORDER BY` with `LIMIT`
-- cost: delta, matches, first rows
SELECT c.country, s.amount FROM (SELECT * FROM sales ORDER BY amount DESC, customer LIMIT 10) AS s
JOIN customers AS c ON s.customer = c.customer

-- name: lateral_limit
-- construct: `LATERAL` with `LIMIT`
-- cost: delta, matches, partitions
-- about: The first rows of each outer row: numbered by a window.
SELECT p.name, s.amount
FROM products AS p, LATERAL (SELECT amount FROM sales WHERE sales.product = p.product ORDER BY amount DESC LIMIT 2) AS s

-- name: limit_by_a_subquery
-- construct: `LIMIT` by a subquery
-- cost: delta, matches, partitions
-- about: The rows are numbered and joined with the limit.
SELECT id, amount FROM sales ORDER BY amount DESC, id LIMIT (SELECT count(*) FROM products)

-- name: now
-- construct: `now()`
-- cost: delta, crossing rows
SELECT id FROM sales WHERE day < now()

-- name: random
-- construct: volatile function
-- cost: recompute
SELECT id, random() AS r FROM sales

-- name: nextval
-- construct: volatile function
-- cost: recompute
SELECT id, nextval('numbers') AS n FROM sales

-- name: volatile_view
-- construct: volatile function
-- cost: recompute
-- about: Found through the view.
SELECT product FROM sampled_sales

-- name: unnest
-- construct: `UNNEST`
-- cost: delta
SELECT who.id AS id, unnest(who.tags) AS tag FROM events

-- name: recursive_cte
-- construct: recursive CTE
-- cost: recompute
WITH RECURSIVE chain AS (
  SELECT customer, boss FROM customers WHERE boss = 1
  UNION
  SELECT c.customer, c.boss FROM customers AS c JOIN chain ON c.boss = chain.customer
)
SELECT * FROM chain

-- name: table_function
-- construct: table function
-- cost: delta, matches
SELECT s.id, r.i FROM sales AS s, range(3) AS r(i) WHERE s.quantity = r.i

-- name: columns_star
-- construct: `COLUMNS(*)`
-- cost: delta, lost groups
SELECT max(COLUMNS(*)) FROM refunds

-- name: pivot
-- construct: `PIVOT`
-- cost: recompute
PIVOT (SELECT product, paid, quantity FROM sales WHERE paid IS NOT NULL) ON paid IN (true, false) USING sum(quantity)

-- name: sample
-- construct: sampling
-- cost: recompute
SELECT id FROM sales USING SAMPLE 50%

-- name: limit_without_order
-- construct: `LIMIT` without `ORDER BY`
-- cost: recompute
-- about: Any rows would do, so the rows that DuckDB takes are kept to.
SELECT id FROM sales LIMIT 3

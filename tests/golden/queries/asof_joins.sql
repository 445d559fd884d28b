-- name: asof
-- construct: `ASOF JOIN`
-- cost: delta, keys
-- about: Rows of other products cannot meet: the touched products are joined anew, by DuckDB's own join.
SELECT s.id, r.amount FROM sales AS s ASOF JOIN refunds AS r ON s.product = r.product AND s.id >= r.id

-- name: left_asof
-- construct: `ASOF LEFT JOIN`
-- cost: delta, keys
SELECT s.id, s.product, r.amount FROM sales AS s ASOF LEFT JOIN refunds AS r USING (product, id)

-- name: full_asof
-- construct: `ASOF FULL JOIN`
-- cost: delta, keys
-- about: A row without a partner has the key of its own side.
SELECT s.id, r.id AS refund FROM sales AS s ASOF FULL JOIN refunds AS r ON s.product = r.product AND s.id > r.id

-- name: asof_without_key
-- construct: `ASOF JOIN` without an equality
-- cost: delta, keys
-- about: Everything is one key, which every change touches.
SELECT s.id, r.amount FROM sales AS s ASOF JOIN refunds AS r ON s.id >= r.id

-- name: counted_asof
-- construct: `ASOF LEFT JOIN`
-- cost: delta, keys
-- about: Below the groups the join is an internal view.
SELECT s.product, count(r.amount) AS n FROM sales AS s ASOF LEFT JOIN refunds AS r USING (product, id) GROUP BY s.product

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

-- name: sample
-- construct: sampling
-- cost: recompute
SELECT id FROM sales USING SAMPLE 50%

-- name: limit_without_order
-- construct: `LIMIT` without `ORDER BY`
-- cost: recompute
-- about: Any rows would do, so the rows that DuckDB takes are kept to.
SELECT id FROM sales LIMIT 3

-- name: seeded_sample
-- construct: sampling
-- cost: recompute
-- about: The seed fixes the choice among the same rows, not among others.
SELECT id FROM sales TABLESAMPLE reservoir(10 ROWS) REPEATABLE (42)

-- name: positional_join
-- construct: `POSITIONAL JOIN`
-- cost: recompute
-- about: The order of rows is no part of what is captured.
SELECT s.id, p.name FROM sales AS s POSITIONAL JOIN products AS p

-- name: json_each
-- construct: table function
-- cost: recompute
SELECT s.id, j.value FROM sales AS s, json_each('[1, 2]') AS j

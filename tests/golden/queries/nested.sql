-- name: aggregate_of_aggregate
-- construct: aggregate over an aggregate
-- cost: delta
-- about: The inner grouping is an internal view; the outer one reads its published delta.
SELECT total, count(*) AS products FROM (SELECT product, sum(quantity) AS total FROM sales GROUP BY product) AS t GROUP BY total

-- name: aggregate_over_join_over_aggregate
-- construct: aggregate over an aggregate
-- cost: delta, matches, lost groups
SELECT p.category, max(t.total) AS best, count(*) AS n
FROM (SELECT product, sum(amount) AS total FROM sales GROUP BY product) AS t
JOIN products AS p ON p.product = t.product
GROUP BY p.category

-- name: having_in_cte
-- construct: join with an aggregate
-- cost: delta, matches
WITH many AS (SELECT product, count(*) AS n FROM sales GROUP BY product HAVING count(*) > 2)
SELECT p.name, m.n FROM many AS m JOIN products AS p ON p.product = m.product

-- name: distinct_then_count
-- construct: aggregate over an aggregate
-- cost: delta
SELECT count(*) AS n FROM (SELECT DISTINCT product, customer FROM sales) AS d

-- name: group_joined_with_total
-- construct: join with an aggregate
-- cost: delta, matches
SELECT t.product, t.total, g.everything
FROM (SELECT product, sum(quantity) AS total FROM sales GROUP BY product) AS t
CROSS JOIN (SELECT sum(quantity) AS everything FROM sales) AS g

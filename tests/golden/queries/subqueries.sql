-- name: exists
-- construct: `EXISTS`
-- cost: delta, matches
SELECT id FROM sales AS s WHERE EXISTS (SELECT 1 FROM products AS p WHERE p.product = s.product)

-- name: not_exists
-- construct: `NOT EXISTS`
-- cost: delta, matches
SELECT id FROM sales AS s WHERE NOT EXISTS (SELECT 1 FROM refunds AS r WHERE r.product = s.product AND r.amount > s.amount)

-- name: exists_over_groups
-- construct: `EXISTS`
-- cost: delta, matches
SELECT id FROM sales AS s
WHERE EXISTS (SELECT 1 FROM refunds AS r WHERE r.product = s.product GROUP BY r.product HAVING count(*) > 1)

-- name: exists_or
-- construct: `EXISTS` under `OR`, `NOT`, `CASE`
-- cost: delta, matches
SELECT id FROM sales AS s
WHERE s.quantity > 3 OR EXISTS (SELECT 1 FROM refunds AS r WHERE r.product = s.product)

-- name: in_subquery
-- construct: `IN` with a subquery
-- cost: delta, matches
SELECT id FROM sales WHERE product IN (SELECT product FROM products)

-- name: not_in
-- construct: `NOT IN` with a subquery
-- cost: delta, matches
-- about: No value is equal, and either there is none at all or no NULL on either side.
SELECT id FROM sales WHERE product NOT IN (SELECT product FROM refunds)

-- name: in_as_value
-- construct: `IN` with a subquery as a value
-- cost: delta, matches
SELECT id, product IN (SELECT product FROM refunds) AS refunded FROM sales

-- name: row_in
-- construct: row value `IN` with a subquery
-- cost: delta, matches
SELECT id FROM sales WHERE (product, amount) IN (SELECT product, amount FROM refunds)

-- name: any_and_all
-- construct: `ANY`, `ALL`
-- cost: delta, matches
SELECT id FROM sales AS s
WHERE amount > ANY (SELECT amount FROM refunds) AND amount >= ALL (SELECT amount FROM refunds AS r WHERE r.product = s.product)

-- name: scalar_subquery
-- construct: scalar subquery
-- cost: delta, matches
SELECT id FROM sales WHERE quantity > (SELECT avg(quantity) FROM sales)

-- name: correlated_scalar
-- construct: correlated scalar subquery
-- cost: delta, matches
-- about: Grouped by the inner side of the equality, and joined on the left.
SELECT p.name, (SELECT count(*) FROM sales AS s WHERE s.product = p.product) AS sold FROM products AS p

-- name: array_of_a_query
-- construct: `ARRAY(SELECT ..)`
-- cost: delta, matches, groups
-- about: A correlated scalar subquery of a list.
SELECT p.name, ARRAY(SELECT s.quantity FROM sales AS s WHERE s.product = p.product ORDER BY s.id) AS sold FROM products AS p

-- name: correlated_by_inequality
-- construct: correlated scalar subquery
-- cost: delta, matches, lost groups
-- about: No equality gives the outer value: the distinct outer values are joined at the leaves.
SELECT s.id, (SELECT max(r.amount) FROM refunds AS r WHERE r.amount < s.amount) AS below FROM sales AS s

-- name: scalar_of_one_row
-- construct: scalar subquery that is no aggregate
-- cost: delta, matches, groups
-- about: A second row is the error that DuckDB gives.
SELECT s.id, (SELECT t.n FROM (SELECT product, count(*) AS n FROM refunds GROUP BY product) AS t WHERE t.product = s.product) AS n
FROM sales AS s

-- name: having_subquery
-- construct: subquery in `HAVING`
-- cost: delta, matches
SELECT product, sum(quantity) AS pieces FROM sales AS s GROUP BY product
HAVING sum(quantity) > (SELECT count(*) FROM refunds AS r WHERE r.product = s.product)

-- name: lateral
-- construct: `LATERAL`
-- cost: delta, matches
SELECT s.id, r.amount FROM sales AS s, LATERAL (SELECT amount FROM refunds WHERE refunds.product = s.product) AS r

-- name: left_join_lateral
-- construct: `LATERAL`
-- cost: delta, matches
SELECT p.name, t.n, t.total
FROM products AS p
LEFT JOIN LATERAL (SELECT count(*) AS n, sum(amount) AS total FROM sales AS s WHERE s.product = p.product) AS t ON true

-- name: in_on_of_one_side
-- construct: subquery in the `ON` of an outer join
-- cost: delta, matches
-- about: It reads the right side only, whose unmatched rows go: a semi join of that side.
SELECT p.name, s.id FROM products AS p
LEFT JOIN sales AS s ON s.product = p.product AND s.customer IN (SELECT customer FROM customers WHERE country = 'NO')

-- name: in_on_of_both_sides
-- construct: subquery in the `ON` of an outer join
-- cost: delta, matches
-- about: Decided for the pairs that meet by the other conditions; their values are put beside the right side.
SELECT p.name, s.id FROM products AS p
LEFT JOIN sales AS s ON s.product = p.product
  AND EXISTS (SELECT 1 FROM refunds AS r WHERE r.product = p.product AND r.amount > s.quantity)

-- name: grouped_by_subquery
-- construct: subquery as a grouping key
-- cost: delta, matches
-- about: What repeats the key is the key.
SELECT (SELECT count(*) FROM refunds AS r WHERE r.product = s.product) AS refunds, count(*) AS n
FROM sales AS s GROUP BY (SELECT count(*) FROM refunds AS r WHERE r.product = s.product)
HAVING (SELECT count(*) FROM refunds AS r WHERE r.product = s.product) > 0

-- name: aggregate_of_the_query_around
-- construct: aggregate of the query around in a subquery
-- cost: delta, matches
-- about: All columns of the sum are of the query around: it is computed over its groups.
SELECT s.product, (SELECT count(*) FROM refunds AS r WHERE r.amount > sum(s.quantity)) AS n FROM sales AS s GROUP BY s.product

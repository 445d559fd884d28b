-- name: left_join
-- construct: `LEFT JOIN`
-- cost: delta, matches
-- about: New rows with their matches; old rows that gained the first match or lost the last.
SELECT s.id, p.name FROM sales AS s LEFT JOIN products AS p ON s.product = p.product

-- name: left_join_any_condition
-- construct: `LEFT JOIN` on any predicate
-- cost: delta, matches
SELECT s.id, r.amount FROM sales AS s LEFT JOIN refunds AS r ON s.product = r.product AND r.amount < s.amount

-- name: left_join_then_group
-- construct: aggregate over an outer join
-- cost: delta, matches
SELECT c.country, count(*) AS n, count(s.id) AS sold, sum(s.amount) AS total, sum(coalesce(s.quantity, 0)) AS pieces
FROM customers AS c LEFT JOIN sales AS s ON s.customer = c.customer
GROUP BY c.country

-- name: full_join_using
-- construct: `FULL JOIN`
-- cost: delta, matches
-- about: USING after a full join means whichever side is there.
SELECT * FROM products FULL JOIN refunds USING (product)

-- name: right_join
-- construct: `RIGHT JOIN`
-- cost: delta, matches
SELECT p.name, s.id FROM sales AS s RIGHT JOIN products AS p USING (product)

-- name: several_outer_joins
-- construct: outer joins in a row
-- cost: delta, matches
SELECT s.id, p.category, c.country, r.amount
FROM sales AS s
LEFT JOIN products AS p ON s.product = p.product
JOIN customers AS c ON s.customer = c.customer
LEFT JOIN refunds AS r ON r.product = p.product

-- name: semi_join
-- construct: `SEMI JOIN`
-- cost: delta, matches
SELECT id FROM sales SEMI JOIN products USING (product)

-- name: anti_join
-- construct: `ANTI JOIN`
-- cost: delta, matches
SELECT id FROM sales AS s ANTI JOIN refunds AS r ON s.product = r.product AND r.amount > s.amount

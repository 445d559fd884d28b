-- name: inner_join
-- construct: `JOIN`
-- cost: delta, matches
-- about: Two inputs, two terms.
SELECT s.id, p.name FROM sales AS s JOIN products AS p ON s.product = p.product

-- name: three_way_join
-- construct: `JOIN`
-- cost: delta, matches
-- about: Three inputs, three terms: each delta with the new rows of the inputs before it and the old rows of those after it.
SELECT s.id, p.category, c.country, s.amount
FROM sales AS s
JOIN products AS p ON s.product = p.product
JOIN customers AS c ON s.customer = c.customer
WHERE s.quantity > 1

-- name: self_join
-- construct: self-join
-- cost: delta, matches
SELECT e.name AS employee, b.name AS boss FROM customers AS e JOIN customers AS b ON e.boss = b.customer

-- name: cross_join
-- construct: `CROSS JOIN`, commas
-- cost: delta, matches
SELECT p.name, c.country FROM products AS p, customers AS c WHERE p.price > 2

-- name: theta_join
-- construct: `JOIN` on any predicate
-- cost: delta, matches
SELECT a.id AS a, b.id AS b FROM sales AS a JOIN refunds AS b ON a.amount < b.amount AND a.day IS NOT NULL

-- name: using
-- construct: `USING`, `NATURAL`
-- cost: delta, matches
-- about: USING merges the columns: the left one stands for both, and a star shows it once.
SELECT * FROM products JOIN refunds USING (product)

-- name: using_qualified
-- construct: `USING`, `NATURAL`
-- cost: delta, matches
SELECT product, products.product AS l, refunds.product AS r FROM products JOIN refunds USING (product)

-- name: natural_join
-- construct: `USING`, `NATURAL`
-- cost: delta, matches
SELECT * FROM (SELECT customer, product FROM sales) AS s NATURAL JOIN (SELECT product, category FROM products) AS p

-- name: nested_join
-- construct: `JOIN`
-- cost: delta, matches
SELECT s.id, p.name, r.reason
FROM sales AS s JOIN (products AS p JOIN refunds AS r ON p.product = r.product) ON s.product = p.product

-- name: join_then_group
-- construct: aggregates over joins
-- cost: delta, matches
SELECT p.category, c.country, sum(s.amount) AS total, count(*) AS n
FROM sales AS s
JOIN products AS p ON s.product = p.product
JOIN customers AS c ON s.customer = c.customer
GROUP BY p.category, c.country

-- name: reachable
-- construct: recursive CTE with `UNION`
-- cost: delta, matches, what follows
WITH RECURSIVE chain AS (
  SELECT customer, boss FROM customers WHERE boss = 1
  UNION
  SELECT c.customer, c.boss FROM customers AS c JOIN chain ON c.boss = chain.customer
)
SELECT * FROM chain

-- name: closure_counted
-- construct: aggregate over a recursive CTE
-- cost: delta, matches, what follows
WITH RECURSIVE above AS (
  SELECT customer, boss FROM customers
  UNION
  SELECT a.customer, c.boss FROM above AS a JOIN customers AS c ON a.boss = c.customer WHERE c.boss IS NOT NULL
)
SELECT customer, count(*) AS bosses FROM above GROUP BY customer

-- name: not_through
-- construct: recursive CTE over anti joins and groups
-- cost: delta, matches, lost groups, what follows
WITH RECURSIVE best AS (
  SELECT boss, max(customer) AS customer FROM customers GROUP BY boss
), line AS (
  SELECT customer FROM customers WHERE boss IS NULL
  UNION
  SELECT best.customer FROM line JOIN best ON best.boss = line.customer
  WHERE NOT EXISTS (SELECT 1 FROM refunds AS r WHERE r.product = best.customer)
)
SELECT * FROM line

-- name: numbers_up_to_a_count
-- construct: recursive CTE with a subquery
-- cost: delta, matches, what follows
WITH RECURSIVE up(n) AS (SELECT 1 UNION SELECT n + 1 FROM up WHERE n < (SELECT count(*) FROM products)) SELECT n FROM up

-- name: paths
-- construct: recursive CTE with `UNION ALL`
-- cost: delta, matches, the node
-- about: A loop in the data has no end as a bag, so the node is recomputed; what is above it follows by its difference.
WITH RECURSIVE path AS (
  SELECT customer, 1 AS depth FROM customers WHERE boss IS NULL
  UNION ALL
  SELECT c.customer, p.depth + 1 FROM path AS p JOIN customers AS c ON c.boss = p.customer WHERE p.depth < 4
)
SELECT depth, count(*) AS n FROM path GROUP BY depth

-- name: reads_itself_twice
-- construct: recursive CTE that joins itself
-- cost: delta, matches, the node
WITH RECURSIVE above AS (
  SELECT customer, boss FROM customers
  UNION
  SELECT a.customer, b.boss FROM above AS a JOIN above AS b ON a.boss = b.customer
)
SELECT * FROM above

-- name: using_key
-- construct: recursive CTE `USING KEY`
-- cost: delta, the node
WITH RECURSIVE level(customer, depth) USING KEY (customer) AS (
  SELECT customer, 0 FROM customers
  UNION
  SELECT level.customer, level.depth + 1 FROM level WHERE level.depth < 3
)
SELECT * FROM level

-- name: correlated
-- construct: recursive CTE that refers to the query around it
-- cost: delta, matches, what follows
-- about: One recursion for each of the distinct values around, side by side.
SELECT c.name, (
  WITH RECURSIVE below AS (
    SELECT c.customer AS customer
    UNION
    SELECT d.customer FROM below AS b JOIN customers AS d ON d.boss = b.customer AND d.country = c.country
  ) SELECT count(*) FROM below
) AS n
FROM customers AS c

-- name: last_days
-- construct: filter on `current_date`
-- cost: delta, crossing rows
-- about: The days between the two positions of the bound are a range on the column.
SELECT id, amount FROM sales WHERE day >= current_date - 30

-- name: between_bounds
-- construct: filter between two moving bounds
-- cost: delta, crossing rows
SELECT seen FROM events WHERE seen BETWEEN localtimestamp - INTERVAL 1 DAY AND localtimestamp

-- name: this_month
-- construct: filter on a truncated `now()`
-- cost: delta, lost groups, crossing rows
-- about: As long as the month is the same, nothing is looked for.
SELECT product, sum(weight) AS weight, max(amount) AS best FROM sales WHERE day >= date_trunc('month', now()) GROUP BY product

-- name: any_predicate
-- construct: filter on the clock with `OR`, `CASE`, `NOT`
-- cost: delta, crossing rows
SELECT id FROM sales WHERE paid OR NOT CASE WHEN quantity > 2 THEN day > current_date ELSE day < current_date - 7 END

-- name: join_on_the_clock
-- construct: moving bound in `ON`
-- cost: delta, matches, crossing rows
SELECT s.id, p.name FROM sales AS s JOIN products AS p ON s.product = p.product AND s.day > current_date - 7

-- name: left_join_on_the_clock
-- construct: moving bound in `ON` of an outer join
-- cost: delta, matches, crossing rows
SELECT c.name, count(s.id) AS n FROM customers AS c LEFT JOIN sales AS s ON s.customer = c.customer AND s.day > current_date - 7 GROUP BY c.name

-- name: counted_where
-- construct: moving bound in `FILTER` and `CASE`
-- cost: delta, crossing rows
SELECT customer, count(*) FILTER (WHERE day > current_date - 7) AS week, sum(CASE WHEN day > current_date - 30 THEN quantity ELSE 0 END) AS month FROM sales GROUP BY customer

-- name: having_recent
-- construct: moving bound in `HAVING`
-- cost: delta, lost groups, crossing rows
SELECT customer, max(day) AS last FROM sales GROUP BY customer HAVING max(day) > current_date - 30

-- name: age_in_days
-- construct: value of `current_date`
-- cost: delta, crossing rows
-- about: It changes once a day, for every row.
SELECT id, current_date - day AS age FROM sales

-- name: bounds_of_a_cte
-- construct: moving bound from a CTE
-- cost: delta, crossing rows
WITH bounds AS (SELECT current_date - 30 AS first, current_date AS last)
SELECT s.id FROM sales AS s, bounds AS b WHERE s.day BETWEEN b.first AND b.last

-- name: now_in_the_result
-- construct: `now()` in the select list
-- cost: recompute
-- about: Another value in every row at every refresh.
SELECT id, now() AS at FROM sales

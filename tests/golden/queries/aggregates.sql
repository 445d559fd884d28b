-- name: sum_integer
-- about: Exact types add up without a guard.
SELECT product, sum(quantity) AS s FROM sales GROUP BY product

-- name: sum_decimal
SELECT product, sum(amount) AS s FROM sales GROUP BY product

-- name: sum_double
-- about: A floating sum keeps the magnitude that went through it, and is recomputed once digits may have cancelled.
SELECT product, sum(weight) AS s FROM sales GROUP BY product

-- name: count_and_filter
SELECT product, count(*) AS n, count(quantity) AS q, count(*) FILTER (WHERE paid) AS p, sum(amount) FILTER (WHERE quantity > 1) AS a
FROM sales GROUP BY product

-- name: avg
SELECT product, avg(quantity) AS i, avg(amount) AS d, avg(weight) AS f FROM sales GROUP BY product

-- name: variance_of_integers
-- about: Exact sums of squares of small integers.
SELECT product, var_samp(quantity) AS v, stddev_pop(quantity) AS s FROM sales GROUP BY product

-- name: variance_of_doubles
SELECT product, var_pop(weight) AS v, stddev(weight) AS s FROM sales GROUP BY product

-- name: min_max
-- about: An insert moves the extremum; only a group whose extremum was deleted is recomputed.
SELECT product, min(day) AS first, max(day) AS last FROM sales GROUP BY product

-- name: min_max_ungrouped
SELECT min(amount) AS lo, max(amount) AS hi FROM sales

-- name: bool_and_or
SELECT product, bool_and(paid) AS every, bool_or(paid) AS any FROM sales GROUP BY product

-- name: median
-- about: No additive form: the touched groups are recomputed.
SELECT product, median(quantity) AS m FROM sales GROUP BY product

-- name: median_ungrouped
SELECT median(quantity) AS m, count(*) AS n FROM sales

-- name: list_and_string_agg
SELECT product, list(quantity ORDER BY quantity, id) AS l, string_agg(note, ',' ORDER BY note, id) AS s
FROM sales GROUP BY product

-- name: count_distinct
-- about: An internal view counts the rows of each value; a change costs its values, not its group.
SELECT product, count(DISTINCT quantity) AS d FROM sales GROUP BY product

-- name: count_distinct_of_several
-- about: One internal view for each argument and one for the rest, joined by the keys; min(DISTINCT) is min.
SELECT product, count(DISTINCT quantity) AS q, avg(DISTINCT amount) FILTER (WHERE paid) AS a, min(DISTINCT day) AS d, count(*) AS n
FROM sales GROUP BY product HAVING count(DISTINCT customer) > 1

-- name: count_distinct_ungrouped
SELECT count(DISTINCT customer) AS customers, count(*) AS n FROM sales

-- name: distinct_beside_median
-- about: The touched groups' rows are read anyway.
SELECT product, count(DISTINCT quantity) AS d, median(quantity) AS m FROM sales GROUP BY product

-- name: quantile_and_mode
SELECT product, quantile_cont(quantity, 0.9) AS q, arg_min(id, quantity * 1000 + id) AS a FROM sales GROUP BY product

-- name: median_with_having
SELECT product, median(quantity) AS m FROM sales GROUP BY product HAVING median(quantity) > 1

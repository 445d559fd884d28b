-- name: sum_integer
-- construct: `sum` of exact numbers
-- cost: delta
-- about: Exact types add up without a guard.
SELECT product, sum(quantity) AS s FROM sales GROUP BY product

-- name: sum_decimal
-- construct: `sum` of exact numbers
-- cost: delta
SELECT product, sum(amount) AS s FROM sales GROUP BY product

-- name: sum_double
-- construct: `sum` of floating numbers
-- cost: delta, lost groups
-- about: A floating sum keeps the magnitude that went through it, and is recomputed once digits may have cancelled.
SELECT product, sum(weight) AS s FROM sales GROUP BY product

-- name: count_and_filter
-- construct: `count`, `FILTER`
-- cost: delta
SELECT product, count(*) AS n, count(quantity) AS q, count(*) FILTER (WHERE paid) AS p, sum(amount) FILTER (WHERE quantity > 1) AS a
FROM sales GROUP BY product

-- name: avg
-- construct: `avg`
-- cost: delta, lost groups
SELECT product, avg(quantity) AS i, avg(amount) AS d, avg(weight) AS f FROM sales GROUP BY product

-- name: variance_of_integers
-- construct: `variance`, `stddev` of small integers
-- cost: delta
-- about: Exact sums of squares of small integers.
SELECT product, var_samp(quantity) AS v, stddev_pop(quantity) AS s FROM sales GROUP BY product

-- name: variance_of_doubles
-- construct: `variance`, `stddev` of other numbers
-- cost: delta, lost groups
SELECT product, var_pop(weight) AS v, stddev(weight) AS s FROM sales GROUP BY product

-- name: min_max
-- construct: `min`, `max`
-- cost: delta, lost groups
-- about: An insert moves the extremum; only a group whose extremum was deleted is recomputed.
SELECT product, min(day) AS first, max(day) AS last FROM sales GROUP BY product

-- name: min_max_ungrouped
-- construct: `min`, `max`
-- cost: delta, lost groups
SELECT min(amount) AS lo, max(amount) AS hi FROM sales

-- name: bool_and_or
-- construct: `bool_and`, `bool_or`
-- cost: delta
SELECT product, bool_and(paid) AS every, bool_or(paid) AS any FROM sales GROUP BY product

-- name: median
-- construct: any other aggregate: `median`, quantiles, `arg_min`
-- cost: delta, groups
-- about: No additive form: the touched groups are recomputed.
SELECT product, median(quantity) AS m FROM sales GROUP BY product

-- name: median_ungrouped
-- construct: any other aggregate: `median`, quantiles, `arg_min`
-- cost: delta, groups
SELECT median(quantity) AS m, count(*) AS n FROM sales

-- name: list_and_string_agg
-- construct: `list`, `string_agg`, ordered aggregates
-- cost: delta, groups
SELECT product, list(quantity ORDER BY quantity, id) AS l, string_agg(note, ',' ORDER BY note, id) AS s
FROM sales GROUP BY product

-- name: count_distinct
-- construct: aggregates with `DISTINCT`
-- cost: delta
-- about: An internal view counts the rows of each value; a change costs its values, not its group.
SELECT product, count(DISTINCT quantity) AS d FROM sales GROUP BY product

-- name: count_distinct_of_several
-- construct: aggregates with `DISTINCT`
-- cost: delta, matches, lost groups
-- about: One internal view for each argument and one for the rest, joined by the keys; min(DISTINCT) is min.
SELECT product, count(DISTINCT quantity) AS q, avg(DISTINCT amount) FILTER (WHERE paid) AS a, min(DISTINCT day) AS d, count(*) AS n
FROM sales GROUP BY product HAVING count(DISTINCT customer) > 1

-- name: count_distinct_ungrouped
-- construct: aggregates with `DISTINCT`
-- cost: delta, matches
SELECT count(DISTINCT customer) AS customers, count(*) AS n FROM sales

-- name: distinct_beside_median
-- construct: aggregates with `DISTINCT`
-- cost: delta, groups
-- about: The touched groups' rows are read anyway.
SELECT product, count(DISTINCT quantity) AS d, median(quantity) AS m FROM sales GROUP BY product

-- name: quantile_and_mode
-- construct: any other aggregate: `median`, quantiles, `arg_min`
-- cost: delta, groups
SELECT product, quantile_cont(quantity, 0.9) AS q, arg_min(id, quantity * 1000 + id) AS a FROM sales GROUP BY product

-- name: median_with_having
-- construct: any other aggregate: `median`, quantiles, `arg_min`
-- cost: delta, groups
SELECT product, median(quantity) AS m FROM sales GROUP BY product HAVING median(quantity) > 1

-- name: covariance
-- construct: `corr`, `covar_*`, `regr_*`
-- cost: delta, lost groups
-- about: Sums, squares and products over the rows that have both values, each with the magnitude that went through it.
SELECT product, corr(weight, quantity) AS c, regr_slope(weight, quantity) AS s FROM sales GROUP BY product

-- name: kurtosis
-- construct: `skewness`, `kurtosis`
-- cost: delta, lost groups
SELECT product, kurtosis(quantity) AS k FROM sales GROUP BY product

-- name: product
-- construct: `product`, `geomean`, `fsum`
-- cost: delta, lost groups
-- about: Zeros are counted, everything else is multiplied, and divided by where it goes.
SELECT product, product(quantity) AS p FROM sales GROUP BY product

-- name: bits
-- construct: `bit_and`, `bit_or`, `bit_xor`
-- cost: delta, lost groups
SELECT product, bit_or(quantity) AS o, bit_xor(quantity) AS x FROM sales GROUP BY product

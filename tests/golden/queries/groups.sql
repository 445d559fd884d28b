-- name: by_column
-- construct: `GROUP BY`
-- cost: delta
SELECT product, count(*) AS n FROM sales GROUP BY product

-- name: by_ordinal
-- construct: `GROUP BY`
-- cost: delta
SELECT product, paid, count(*) AS n FROM sales GROUP BY 1, 2

-- name: by_alias
-- construct: `GROUP BY`
-- cost: delta
SELECT quantity % 2 AS odd, count(*) AS n FROM sales GROUP BY odd

-- name: by_all
-- construct: `GROUP BY`
-- cost: delta
SELECT product, quantity % 2 AS odd, count(*) AS n FROM sales GROUP BY ALL

-- name: by_expression
-- construct: `GROUP BY`
-- cost: delta
SELECT date_trunc('month', day) AS month, count(*) AS n FROM sales GROUP BY date_trunc('month', day)

-- name: expression_over_key
-- construct: `GROUP BY` a key that is not shown
-- cost: delta
-- about: The select list shows an expression over a key: the key itself is kept in a hidden column.
SELECT product + 1 AS next, count(*) AS n FROM sales GROUP BY product

-- name: key_not_shown
-- construct: `GROUP BY` a key that is not shown
-- cost: delta
SELECT count(*) AS n, sum(quantity) AS q FROM sales GROUP BY product, paid

-- name: constant_key
-- construct: `GROUP BY` a key that is not shown
-- cost: delta
SELECT 'all' AS which, count(*) AS n FROM sales GROUP BY 'all'

-- name: no_aggregate
-- construct: `GROUP BY` without aggregates
-- cost: delta
SELECT product FROM sales GROUP BY product

-- name: ungrouped
-- construct: aggregates without `GROUP BY`
-- cost: delta, lost groups
-- about: One row, always, updated in place.
SELECT count(*) AS n, sum(amount) AS total, max(day) AS latest FROM sales

-- name: having
-- construct: `HAVING`
-- cost: delta
-- about: The state keeps all groups; the boundary shows those for which the predicate is true.
SELECT product, sum(quantity) AS q FROM sales GROUP BY product HAVING count(*) > 2 AND sum(quantity) > 5

-- name: having_alias
-- construct: `HAVING`
-- cost: delta
SELECT product, sum(quantity) AS q FROM sales GROUP BY product HAVING q > 5

-- name: having_without_group
-- construct: `HAVING`
-- cost: delta
SELECT count(*) AS n FROM sales HAVING count(*) > 3

-- name: expression_over_aggregates
-- construct: expressions over aggregates
-- cost: delta, lost groups
SELECT product, sum(amount) / nullif(count(*), 0) AS mean, max(quantity) - min(quantity) AS spread
FROM sales GROUP BY product

-- name: filter_above_group
-- construct: a filter above a grouping
-- cost: delta
SELECT * FROM (SELECT product, sum(quantity) AS q FROM sales GROUP BY product) AS t WHERE q > 5

-- name: group_by_nothing
-- construct: `GROUPING SETS`, `ROLLUP`, `CUBE`
-- cost: delta
-- about: The empty grouping set is one row, always.
SELECT count(*) AS n, sum(quantity) AS q FROM sales GROUP BY ()

-- name: rollup
-- construct: `GROUPING SETS`, `ROLLUP`, `CUBE`
-- cost: delta
-- about: One grouping by set and keys; a row of no source keeps the group of the empty set alive, and no call counts it.
SELECT product, paid, count(*) AS n, sum(quantity) AS q, grouping(product, paid) AS level
FROM sales GROUP BY ROLLUP (product, paid)

-- name: cube_with_having
-- construct: `GROUPING SETS`, `ROLLUP`, `CUBE`
-- cost: delta, lost groups
SELECT product, paid, max(day) AS latest FROM sales GROUP BY CUBE (product, paid) HAVING count(*) > 1 OR grouping(paid) = 1

-- name: grouping_sets
-- construct: `GROUPING SETS`, `ROLLUP`, `CUBE`
-- cost: delta
-- about: A key outside of all sets stands in each of them; equal sets count twice.
SELECT customer, product, paid, count(*) AS n FROM sales GROUP BY customer, GROUPING SETS ((product), (paid), (paid))

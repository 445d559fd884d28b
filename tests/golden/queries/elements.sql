-- name: unnest
-- construct: `UNNEST` in a select list
-- cost: delta
-- about: Each row of the delta is taken apart, with its weight.
SELECT who.id AS id, unnest(who.tags) AS tag FROM events

-- name: unnest_grouped
-- construct: `UNNEST` in a select list
-- cost: delta
-- about: Grouped by the elements, so the list is taken apart below the groups.
SELECT unnest(who.tags) AS tag, count(*) AS n FROM events GROUP BY tag

-- name: unnest_of_groups
-- construct: `UNNEST` over an aggregate
-- cost: delta, groups
-- about: The list is an aggregate's: it is taken apart above the groups, which are an internal view.
SELECT product, unnest(list(customer ORDER BY id)) AS customer FROM sales GROUP BY product

-- name: unnest_struct
-- construct: `UNNEST` of a struct
-- cost: delta
-- about: Makes columns, not rows. DuckDB tells which fields there are.
SELECT unnest(who), seen FROM events

-- name: lateral_unnest
-- construct: `UNNEST` in `FROM`
-- cost: delta
-- about: Over columns of an earlier item it is no join at all: the elements go beside the rows.
SELECT e.who.id AS id, t.tag FROM events AS e, unnest(e.who.tags) AS t(tag)

-- name: left_lateral_unnest
-- construct: `UNNEST` in `FROM`
-- cost: delta
-- about: A row without such an element stays, with NULL.
SELECT e.who.id AS id, t.tag FROM events AS e LEFT JOIN unnest(e.who.tags) AS t(tag) ON t.tag <> 'old'

-- name: series
-- construct: `generate_series`, `range` over columns
-- cost: delta
SELECT s.id, g.i FROM sales AS s, generate_series(1, s.quantity) AS g(i)

-- name: constant_series
-- construct: `generate_series`, `range` over constants
-- cost: delta
SELECT s.id, r.i FROM sales AS s, range(3) AS r(i) WHERE s.quantity = r.i

-- name: pivot
-- construct: `PIVOT .. IN (..)`
-- cost: delta
-- about: One filtered aggregate for each value. The columns are called what DuckDB calls them.
PIVOT (SELECT product, paid, quantity FROM sales WHERE paid IS NOT NULL) ON paid IN (true, false) USING sum(quantity)

-- name: pivot_clause
-- construct: `PIVOT .. IN (..)`
-- cost: delta
SELECT * FROM sales PIVOT (sum(quantity) AS pieces, count(*) AS n FOR product IN (1, 2) GROUP BY customer)

-- name: unpivot
-- construct: `UNPIVOT`
-- cost: delta
UNPIVOT (SELECT id, quantity, product FROM sales) ON quantity, product INTO NAME what VALUE number

-- name: columns
-- construct: `COLUMNS()`, stars with patterns
-- cost: delta
-- about: DuckDB tells which columns a pattern picks.
SELECT id, COLUMNS('p.*|quantity') FROM sales

-- name: columns_star
-- construct: `COLUMNS()`, stars with patterns
-- cost: delta, lost groups
SELECT max(COLUMNS(*)) FROM refunds

-- name: whole_row
-- construct: row of a table as a value
-- cost: delta, matches
SELECT p, s.id FROM sales AS s JOIN products AS p USING (product)

-- name: lambda_of_groups
-- construct: lambda functions, list comprehensions
-- cost: delta, groups
SELECT product, [n * 2 FOR n IN list(quantity ORDER BY id) IF n > 1] AS twice FROM sales GROUP BY product

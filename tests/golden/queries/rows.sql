-- name: scan
-- construct: `SELECT`, `WHERE`
-- cost: delta
-- about: A star over one table: the state holds the rows themselves.
SELECT * FROM products

-- name: filter_and_project
-- construct: `SELECT`, `WHERE`
-- cost: delta
-- about: Linear operators work on the delta alone.
SELECT id, quantity * 2 AS twice, upper(note) AS note
FROM sales
WHERE quantity > 1 AND paid

-- name: duplicate_rows
-- construct: `SELECT`, `WHERE`
-- cost: delta
-- about: A projection without a key is a bag: deleting one of two equal rows leaves one.
SELECT product, paid FROM sales

-- name: equal_column_names
-- construct: `SELECT`, `WHERE`
-- cost: delta
-- about: A table cannot have two columns of one name; they get the names that CREATE TABLE AS would give them.
SELECT quantity, quantity, quantity + 1 FROM sales

-- name: lateral_alias
-- construct: `SELECT`, `WHERE`
-- cost: delta
-- about: An item of the select list may use an earlier one.
SELECT quantity * 2 AS q, q + 1 AS more FROM sales WHERE q > 2

-- name: star_exclude_replace_rename
-- construct: `*` with `EXCLUDE`, `REPLACE`, `RENAME`
-- cost: delta
SELECT * EXCLUDE (note, weight) REPLACE (quantity + 1 AS quantity) RENAME (amount AS euros) FROM sales

-- name: subquery_in_from
-- construct: subquery in `FROM`
-- cost: delta
SELECT s.n, s.k + 1 AS k FROM (SELECT upper(name) AS n, product AS k FROM products WHERE price > 1) AS s WHERE s.k > 1

-- name: derived_column_aliases
-- construct: subquery in `FROM`
-- cost: delta
SELECT a, b FROM (SELECT product, category FROM products) AS t(a, b) WHERE a > 1

-- name: struct_fields
-- construct: structs, list comprehensions
-- cost: delta
-- about: A dotted name is a table's column where there is such a table, else a field of a struct.
SELECT who.id AS who_id, events.who.tags AS tags, date_trunc('hour', seen) AS hour FROM events

-- name: list_comprehension
-- construct: structs, list comprehensions
-- cost: delta
SELECT [t || '!' FOR t IN who.tags IF t <> 'x'] AS loud FROM events

-- name: order_by_alone
-- construct: `ORDER BY` without `LIMIT`
-- cost: delta
-- about: ORDER BY without LIMIT changes no bag.
SELECT id, amount FROM sales ORDER BY amount DESC, id

-- name: values
-- construct: `VALUES`
-- cost: delta
-- about: Constant rows never change.
SELECT p.name, v.label FROM products AS p JOIN (VALUES (1, 'one'), (2, 'two')) AS v(product, label) ON p.product = v.product

-- name: without_from
-- construct: `SELECT` without `FROM`
-- cost: nothing
SELECT 1 AS one, 'x' AS letter

-- name: only_the_number_of_rows
-- construct: `SELECT`, `WHERE`
-- cost: delta
-- about: No column of the source is used, so none is captured but the number of rows.
SELECT 'x' AS x FROM sales

-- name: merge
-- construct: `GROUP BY`, `apply_strategy: merge`
-- cost: delta
-- apply: merge
SELECT product, paid, count(*) AS n, sum(quantity) AS q FROM sales GROUP BY product, paid HAVING count(*) > 1

-- name: update_insert_delete
-- construct: `GROUP BY`, `apply_strategy: update_insert_delete`
-- cost: delta
-- apply: update_insert_delete
SELECT product, paid, count(*) AS n, sum(quantity) AS q FROM sales GROUP BY product, paid HAVING count(*) > 1

-- name: delete_insert
-- construct: `GROUP BY`, `apply_strategy: delete_insert`
-- cost: delta
-- apply: delete_insert
SELECT product, paid, count(*) AS n, sum(quantity) AS q FROM sales GROUP BY product, paid HAVING count(*) > 1

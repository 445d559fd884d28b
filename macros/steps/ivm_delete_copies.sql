{%- macro ivm_delete_copies(step) -%}
{#- Delete as many copies of each row from a bag as its negative weight says.

    Arguments (attributes of step):
        target: the state table
        delta: temporary table of consolidated rows
        same: conditions over t and d under which a row of the state is a row of the delta
        weight: the weight column
-#}
{{ return(adapter.dispatch('ivm_delete_copies', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_delete_copies(step) -%}
DELETE FROM {{ step.target }}
WHERE rowid IN (
  SELECT openivm_rowid FROM (
    SELECT t.rowid AS openivm_rowid, d.{{ step.weight }} AS openivm_weight,
      row_number() OVER (PARTITION BY d.openivm_tuple) AS openivm_copy
    FROM {{ step.target }} AS t
    JOIN (SELECT * FROM {{ step.delta }} WHERE {{ step.weight }} < 0) AS d
    ON {{ step.same | join(' AND ') }}
  ) AS openivm_copies
  WHERE openivm_copy <= -openivm_weight
)
{%- endmacro -%}

{%- macro postgres__ivm_delete_copies(step) -%}
DELETE FROM {{ step.target }}
WHERE ctid IN (
  SELECT openivm_place FROM (
    SELECT t.ctid AS openivm_place, d.{{ step.weight }} AS openivm_weight,
      row_number() OVER (PARTITION BY d.openivm_tuple) AS openivm_copy
    FROM {{ step.target }} AS t
    JOIN (SELECT * FROM {{ step.delta }} WHERE {{ step.weight }} < 0) AS d
    ON {{ step.same | join(' AND ') }}
  ) AS openivm_copies
  WHERE openivm_copy <= -openivm_weight
)
{%- endmacro -%}

{%- macro ivm_insert_copies(step) -%}
{#- Insert as many copies of each row into a bag as its positive weight says.

    Arguments (attributes of step):
        target: the state table
        delta: temporary table of consolidated rows
        columns: visible columns
        weight: the weight column
-#}
{{ return(adapter.dispatch('ivm_insert_copies', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_insert_copies(step) -%}
INSERT INTO {{ step.target }} ({{ step.columns | join(', ') }})
SELECT {{ step.columns | join(', ') }}
FROM (
  SELECT {{ step.columns | join(', ') }}, unnest(range({{ step.weight }})) AS openivm_copy
  FROM {{ step.delta }}
  WHERE {{ step.weight }} > 0
) AS openivm_copies
{%- endmacro -%}

{%- macro postgres__ivm_insert_copies(step) -%}
INSERT INTO {{ step.target }} ({{ step.columns | join(', ') }})
SELECT {{ step.columns | join(', ') }}
FROM {{ step.delta }}, generate_series(1, {{ step.weight }})
{%- endmacro -%}

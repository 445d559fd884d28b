{%- macro ivm_publish(step) -%}
{#- Append the net difference of old and new visible rows to the change log of the boundary.

    Arguments (attributes of step):
        log: the change log
        version: batch number
        columns: visible columns
        rows: how rows are told apart: `outputs`, one expression a visible column, and `keys`, what they are grouped by
        old: temporary table of the old rows
        source, affected, keys, having: the new rows, see ivm_affected_rows
-#}
{{ return(adapter.dispatch('ivm_publish', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_publish(step) -%}
INSERT INTO {{ step.log }} ({{ step.columns | join(', ') }}, openivm_multiplicity, openivm_timestamp, openivm_batch)
SELECT {{ step.rows['outputs'] | join(', ') }}, sum(openivm_multiplicity), now()::TIMESTAMP, {{ step.version }}
FROM (
  SELECT {{ step.columns | join(', ') }}, -1 AS openivm_multiplicity FROM {{ step.old }}
  UNION ALL
  SELECT t.{{ step.columns | join(', t.') }}, 1
  {{ ivm_affected_rows(step) }}
) AS openivm_difference
GROUP BY {{ step.rows['keys'] | join(', ') }}
HAVING sum(openivm_multiplicity) <> 0
{%- endmacro -%}

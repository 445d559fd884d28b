{%- macro ivm_consolidate(step) -%}
{#- Consolidate the weights of a delta per row; rows whose weights cancel vanish.

    Arguments (attributes of step):
        delta: the temporary table
        columns: visible columns
        weight: the weight column
        query: the weighted rows
-#}
{{ return(adapter.dispatch('ivm_consolidate', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_consolidate(step) -%}
CREATE OR REPLACE TEMPORARY TABLE {{ step.delta }} AS
SELECT {{ step.columns | join(', ') }}, CAST(sum({{ step.weight }}) AS BIGINT) AS {{ step.weight }}, row_number() OVER () AS openivm_tuple
FROM (
  {{ step.query }}
) AS openivm_changes
GROUP BY {{ step.columns | join(', ') }}
HAVING sum({{ step.weight }}) <> 0
{%- endmacro -%}

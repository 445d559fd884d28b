{%- macro ivm_consolidate(step) -%}
{#- Consolidate the weights of a delta per row; rows whose weights cancel vanish.

    Arguments (attributes of step):
        delta: the temporary table
        outputs: what stands for a group of equal rows, one expression a visible column
        keys: what rows are grouped by
        weight: the weight column
        query: the weighted rows
-#}
{{ return(adapter.dispatch('ivm_consolidate', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_consolidate(step) -%}
{{ ivm_temporary(step.delta) }}
SELECT {{ step.outputs | join(', ') }}, CAST(sum({{ step.weight }}) AS BIGINT) AS {{ step.weight }}, row_number() OVER () AS openivm_tuple
FROM (
  {{ step.query }}
) AS openivm_changes
GROUP BY {{ step['keys'] | join(', ') }}
HAVING sum({{ step.weight }}) <> 0
{%- endmacro -%}

{%- macro ivm_find_stale(step) -%}
{#- Keep the keys of the groups that a merge marked as stale.

    Arguments (attributes of step):
        name: the temporary table
        target: the state table
        keys: pairs (column of the state, column of the table)
        stale: the hidden boolean column
-#}
{{ return(adapter.dispatch('ivm_find_stale', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_find_stale(step) -%}
{{ ivm_temporary(step.name) }}
SELECT {% for held, key in step['keys'] %}{{ held }} AS {{ key }}{{ ', ' if not loop.last }}{% endfor %}

FROM {{ step.target }}
WHERE {{ step.stale }}
{%- endmacro -%}

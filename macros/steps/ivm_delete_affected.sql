{%- macro ivm_delete_affected(step) -%}
{#- Delete the rows of affected keys from a state, or all rows where there are no keys.

    Arguments (attributes of step):
        target: the state table
        affected: relation of keys, or none for all rows
        keys: pairs (column of the state, column of affected)
-#}
{{ return(adapter.dispatch('ivm_delete_affected', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_delete_affected(step) -%}
DELETE FROM {{ step.target }} AS t
{%- if step.affected %}

USING {{ step.affected }} AS a
WHERE {{ ivm_same_keys('t', 'a', step['keys'], true) }}
{%- endif %}
{%- endmacro -%}

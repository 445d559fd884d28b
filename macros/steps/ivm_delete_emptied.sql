{%- macro ivm_delete_emptied(step) -%}
{#- Delete the groups that a delta leaves without rows.

    Arguments (attributes of step):
        target: the state table
        source: the delta, one row a group
        keys: pairs (column of the state, column of the delta)
        count: pair (column of the state, column of the delta) of the number of rows
-#}
{{ return(adapter.dispatch('ivm_delete_emptied', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_delete_emptied(step) -%}
DELETE FROM {{ step.target }} AS t
USING {{ step.source }} AS d
WHERE {% for held, key in step['keys'] %}t.{{ held }} IS NOT DISTINCT FROM d.{{ key }} AND {% endfor %}t.{{ step['count'][0] }} + d.{{ step['count'][1] }} = 0
{%- endmacro -%}

{%- macro ivm_insert_groups(step) -%}
{#- Insert the groups of a delta that are new. One that the delta emptied has a negative number of rows in it.

    Arguments (attributes of step):
        target: the state table
        source: the delta, one row a group
        held: relation with the groups that are not new
        keys: pairs (column of the state, column of the delta)
        count: pair (column of the state, column of the delta) of the number of rows, or none if nothing was deleted
        inserts: pairs (column, expression over d)
-#}
{{ return(adapter.dispatch('ivm_insert_groups', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_insert_groups(step) -%}
INSERT INTO {{ step.target }} ({% for column, _ in step.inserts %}{{ column }}{{ ', ' if not loop.last }}{% endfor %})
SELECT {% for _, value in step.inserts %}{{ value }}{{ ', ' if not loop.last }}{% endfor %}

FROM {{ step.source }} AS d
ANTI JOIN {{ step.held }} AS t
ON ({% for held, key in step['keys'] %}{{ ' AND ' if not loop.first }}t.{{ held }} IS NOT DISTINCT FROM d.{{ key }}{% endfor %})
{%- if step.count %}

WHERE d.{{ step['count'][1] }} > 0
{%- endif %}
{%- endmacro -%}

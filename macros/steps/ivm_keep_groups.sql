{%- macro ivm_keep_groups(step) -%}
{#- Keep, in a temporary table, the new rows of the groups that a state holds and a delta does not empty.

    Arguments (attributes of step):
        name: the temporary table
        target: the state table
        source: the delta, one row a group
        keys: pairs (column of the state, column of the delta)
        count: pair (column of the state, column of the delta) of the number of rows, or none if nothing was deleted
        values: pairs (column, expression over t and d) of every column of the state
-#}
{{ return(adapter.dispatch('ivm_keep_groups', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_keep_groups(step) -%}
CREATE OR REPLACE TEMPORARY TABLE {{ step.name }} AS
SELECT {% for column, value in step['values'] %}{{ value }} AS {{ column }}{{ ',
  ' if not loop.last }}{% endfor %}

FROM {{ step.target }} AS t
JOIN {{ step.source }} AS d
ON ({% for held, key in step['keys'] %}{{ ' AND ' if not loop.first }}t.{{ held }} IS NOT DISTINCT FROM d.{{ key }}{% endfor %})
{%- if step.count %}

WHERE t.{{ step['count'][0] }} + d.{{ step['count'][1] }} <> 0
{%- endif %}
{%- endmacro -%}

{%- macro ivm_merge(step) -%}
{#- Add a consolidated delta to the groups of a state: delete emptied groups, then update, then insert.

    Arguments (attributes of step):
        target: the state table
        source: the delta, one row a group
        keys: pairs (column of the state, column of the delta)
        count: pair (column of the state, column of the delta) of the number of rows, or none if nothing was deleted
        updates: pairs (column, expression over t and d)
        inserts: pairs (column, expression over d)
-#}
{{ return(adapter.dispatch('ivm_merge', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_merge(step) -%}
MERGE INTO {{ step.target }} AS t
USING {{ step.source }} AS d
ON ({{ ivm_same_keys('t', 'd', step['keys']) }})
{% if step.count %}
WHEN MATCHED AND t.{{ step['count'][0] }} + d.{{ step['count'][1] }} = 0 THEN DELETE
{% endif %}
WHEN MATCHED THEN UPDATE SET
  {% for column, value in step.updates %}{{ column }} = {{ value }}{{ ',
  ' if not loop.last }}{% endfor %}

WHEN NOT MATCHED{% if step.count %} AND d.{{ step['count'][1] }} <> 0{% endif %} THEN INSERT ({% for column, _ in step.inserts %}{{ column }}{{ ', ' if not loop.last }}{% endfor %})
  VALUES ({% for _, value in step.inserts %}{{ value }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}

{%- macro ivm_update_groups(step) -%}
{#- Add a delta to the groups that a state holds; those that it empties are gone already.

    Arguments (attributes of step):
        target: the state table
        source: the delta, one row a group
        keys: pairs (column of the state, column of the delta)
        updates: pairs (column, expression over t and d)
-#}
{{ return(adapter.dispatch('ivm_update_groups', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_update_groups(step) -%}
UPDATE {{ step.target }} AS t SET
  {% for column, value in step.updates %}{{ column }} = {{ value }}{{ ',
  ' if not loop.last }}{% endfor %}

FROM {{ step.source }} AS d
WHERE {% for held, key in step['keys'] %}{{ ' AND ' if not loop.first }}t.{{ held }} IS NOT DISTINCT FROM d.{{ key }}{% endfor %}
{%- endmacro -%}

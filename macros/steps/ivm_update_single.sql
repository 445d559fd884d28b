{%- macro ivm_update_single(step) -%}
{#- Add a delta to the one row of an ungrouped aggregate.

    Arguments (attributes of step):
        target: the state table
        source: the delta, one row
        updates: pairs (column, expression over t and d)
-#}
{{ return(adapter.dispatch('ivm_update_single', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_update_single(step) -%}
UPDATE {{ step.target }} AS t SET
  {% for column, value in step.updates %}{{ column }} = {{ value }}{{ ',
  ' if not loop.last }}{% endfor %}

FROM {{ step.source }} AS d
{%- endmacro -%}

{%- macro ivm_replace_single(step) -%}
{#- Replace the one row of an ungrouped aggregate by its recomputation.

    Arguments (attributes of step):
        target: the state table
        query: the SELECT of the whole state
        columns: all columns of the state
-#}
{{ return(adapter.dispatch('ivm_replace_single', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_replace_single(step) -%}
UPDATE {{ step.target }} AS t SET
  {% for column in step.columns %}{{ column }} = r.{{ column }}{{ ',
  ' if not loop.last }}{% endfor %}

FROM (
  {{ step.query }}
) AS r
{%- endmacro -%}

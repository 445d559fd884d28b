{%- macro ivm_affected_rows(step) -%}
{#- FROM and WHERE of the visible rows of a state, all or only those of affected keys.

    Arguments (attributes of step):
        source: state table or boundary
        affected: temporary table of keys, or none for all rows
        keys: pairs (column of the state, column of affected)
        having: boolean column that says which rows are visible, or none
-#}
{{ return(adapter.dispatch('ivm_affected_rows', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_affected_rows(step) -%}
FROM {{ step.source }} AS t
{%- if step.affected and step.keys %}

WHERE EXISTS (
  SELECT 1 FROM {{ step.affected }} AS a
  WHERE {{ ivm_same_keys('t', 'a', step['keys'], true) -}}
)
{%- else %}

WHERE true
{%- endif %}
{%- if step.having %} AND t.{{ step.having }}{% endif %}
{%- endmacro -%}

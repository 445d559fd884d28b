{%- macro ivm_count_copies(step) -%}
{#- Count the copies that a consolidated delta deletes and inserts.

    Arguments (attributes of step):
        delta: temporary table of consolidated rows
        weight: the weight column
-#}
{{ return(adapter.dispatch('ivm_count_copies', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_count_copies(step) -%}
SELECT
  coalesce(-sum({{ step.weight }}) FILTER (WHERE {{ step.weight }} < 0), 0)::BIGINT,
  coalesce(sum({{ step.weight }}) FILTER (WHERE {{ step.weight }} > 0), 0)::BIGINT
FROM {{ step.delta }}
{%- endmacro -%}

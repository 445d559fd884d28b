{%- macro ivm_keep_query(step) -%}
{#- Keep the result of a query in a temporary table.

    Arguments (attributes of step):
        name: the temporary table
        query: the SELECT
-#}
{{ return(adapter.dispatch('ivm_keep_query', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_keep_query(step) -%}
{{ ivm_temporary(step.name) }}
{{ step.query }}
{%- endmacro -%}

{%- macro ivm_analyze(step) -%}
{#- Have the engine look at a table, so that it plans well with it.

    Arguments (attributes of step):
        target: the table
-#}
{{ return(adapter.dispatch('ivm_analyze', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro default__ivm_analyze(step) -%}
ANALYZE {{ step.target }}
{%- endmacro -%}

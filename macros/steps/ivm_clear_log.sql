{%- macro ivm_clear_log(step) -%}
{#- Empty a change log.

    Arguments (attributes of step):
        log: the change log
-#}
{{ return(adapter.dispatch('ivm_clear_log', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_clear_log(step) -%}
DELETE FROM {{ step.log }}
{%- endmacro -%}

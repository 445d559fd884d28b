{%- macro ivm_drop_temporary(step) -%}
{#- Drop a temporary table.

    Arguments (attributes of step):
        name: the temporary table
-#}
{{ return(adapter.dispatch('ivm_drop_temporary', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_drop_temporary(step) -%}
DROP TABLE temp.{{ step.name }}
{%- endmacro -%}

{%- macro postgres__ivm_drop_temporary(step) -%}
DROP TABLE pg_temp.{{ step.name }}
{%- endmacro -%}

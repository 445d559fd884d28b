{%- macro ivm_temporary(name) -%}
{#- How a statement begins that keeps the result of the SELECT after it in a temporary table.

    Arguments: the temporary table
-#}
{{ return(adapter.dispatch('ivm_temporary', 'dbt')(name)) }}
{%- endmacro -%}

{%- macro openivm__ivm_temporary(name) -%}
CREATE OR REPLACE TEMPORARY TABLE {{ name }} AS
{%- endmacro -%}

{%- macro postgres__ivm_temporary(name) -%}
CREATE TEMPORARY TABLE {{ name }} AS
{%- endmacro -%}

{%- macro ivm_keep_rows(step) -%}
{#- Keep visible rows of a state in a temporary table, before they change.

    Arguments (attributes of step):
        name: the temporary table
        columns: visible columns
        source, affected, keys, having: see ivm_affected_rows
-#}
{{ return(adapter.dispatch('ivm_keep_rows', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_keep_rows(step) -%}
{{ ivm_temporary(step.name) }}
SELECT t.{{ step.columns | join(', t.') }}
{{ ivm_affected_rows(step) }}
{%- endmacro -%}

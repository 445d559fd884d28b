{%- macro ivm_check_isolation(step) -%}
{#- Count what shows that the statements of a transaction see more than one state of the database: 0 if nothing does. -#}
{{ return(adapter.dispatch('ivm_check_isolation', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro default__ivm_check_isolation(_step) -%}
SELECT CASE WHEN current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN 0 ELSE 1 END
{%- endmacro -%}

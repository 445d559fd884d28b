{%- macro ivm_companion_rows(step) -%}
{#- Write visible rows of a view to its companion table, all with one sign: old rows with -1, new rows with 1.

    Arguments (attributes of step):
        companion: the companion table
        columns: visible columns
        weight: -1 or 1
        version: batch number
        source, affected, keys, having: see ivm_affected_rows
-#}
{{ return(adapter.dispatch('ivm_companion_rows', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_companion_rows(step) -%}
INSERT INTO {{ step.companion }} ({{ step.columns | join(', ') }}, openivm_multiplicity, openivm_timestamp, openivm_batch)
SELECT t.{{ step.columns | join(', t.') }}, {{ step.weight }}, now()::TIMESTAMP, {{ step.version }}
{{ ivm_affected_rows(step) }}
{%- endmacro -%}

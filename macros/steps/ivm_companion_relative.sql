{%- macro ivm_companion_relative(step) -%}
{#- Write the relative delta of a grouped view to its companion table: what inserted rows alone, and deleted rows alone,
    would make of each group.

    Arguments (attributes of step):
        companion: the companion table
        columns: visible columns
        values: the value of each over d
        source: the delta, one row a group and sign (openivm_sign)
        version: batch number
-#}
{{ return(adapter.dispatch('ivm_companion_relative', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_companion_relative(step) -%}
INSERT INTO {{ step.companion }} ({{ step.columns | join(', ') }}, openivm_multiplicity, openivm_timestamp, openivm_batch)
SELECT {{ step['values'] | join(', ') }}, d.openivm_sign, now()::TIMESTAMP, {{ step.version }}
FROM {{ step.source }} AS d
{%- endmacro -%}

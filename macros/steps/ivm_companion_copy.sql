{%- macro ivm_companion_copy(step) -%}
{#- Write what a refresh published of the boundary to the companion table, too.

    Arguments (attributes of step):
        companion: the companion table
        log: the boundary's change log
        columns: visible columns
        version: batch number
-#}
{{ return(adapter.dispatch('ivm_companion_copy', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_companion_copy(step) -%}
INSERT INTO {{ step.companion }} ({{ step.columns | join(', ') }}, openivm_multiplicity, openivm_timestamp, openivm_batch)
SELECT {{ step.columns | join(', ') }}, openivm_multiplicity, openivm_timestamp, openivm_batch
FROM {{ step.log }}
WHERE openivm_batch = {{ step.version }}
{%- endmacro -%}

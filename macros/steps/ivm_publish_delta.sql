{%- macro ivm_publish_delta(step) -%}
{#- Append a consolidated delta to the change log of the boundary.

    Arguments (attributes of step):
        log: the change log
        delta: temporary table of consolidated rows
        columns: visible columns
        weight: the weight column
        version: batch number
-#}
{{ return(adapter.dispatch('ivm_publish_delta', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_publish_delta(step) -%}
INSERT INTO {{ step.log }} ({{ step.columns | join(', ') }}, openivm_multiplicity, openivm_timestamp, openivm_batch)
SELECT {{ step.columns | join(', ') }}, {{ step.weight }}, now()::TIMESTAMP, {{ step.version }}
FROM {{ step.delta }}
{%- endmacro -%}

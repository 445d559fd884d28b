{%- macro ivm_create_log(step) -%}
{#- Create the empty change log of a boundary.

    Arguments (attributes of step):
        log: the change log
        source: the boundary
-#}
{{ return(adapter.dispatch('ivm_create_log', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_create_log(step) -%}
CREATE OR REPLACE TABLE {{ step.log }} AS
SELECT *, 0::BIGINT AS openivm_multiplicity, now()::TIMESTAMP AS openivm_timestamp, 0::BIGINT AS openivm_batch
FROM {{ step.source }}
LIMIT 0
{%- endmacro -%}

{%- macro postgres__ivm_create_log(step) -%}
CREATE TABLE {{ step.log }} AS
SELECT *, 0::BIGINT AS openivm_multiplicity, now()::TIMESTAMP AS openivm_timestamp, 0::BIGINT AS openivm_batch
FROM {{ step.source }}
LIMIT 0
{%- endmacro -%}

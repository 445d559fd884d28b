{# The change log of a base: its captured columns, empty, with the types and collations of the relation it is made from. #}
{% macro ivm_capture_log(step) %}{{ return(adapter.dispatch('ivm_capture_log', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_log(step) %}
CREATE TABLE {{ step.log }} AS
SELECT
{% for column in step.columns %}
  {{ column }},
{% endfor %}
  CAST(NULL AS BIGINT) AS openivm_multiplicity,
  CAST(NULL AS TIMESTAMP) AS openivm_timestamp,
  CAST(NULL AS BIGINT) AS openivm_batch
FROM {{ step.source }}
LIMIT 0
{% endmacro %}

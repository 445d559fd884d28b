{# A change log with more columns, NULL in the rows it has. Made anew, since ADD COLUMN loses a collation. #}
{% macro ivm_capture_log_widen(step) %}{{ return(adapter.dispatch('ivm_capture_log_widen', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_log_widen(step) %}
CREATE OR REPLACE TABLE {{ step.log }} AS
SELECT
{% for column in step.columns %}
  {{ "openivm_new" if column in step.added else "openivm_old" }}.{{ column }},
{% endfor %}
  openivm_old.openivm_multiplicity,
  openivm_old.openivm_timestamp,
  openivm_old.openivm_batch
FROM {{ step.log }} AS openivm_old
LEFT JOIN (
  SELECT {% for column in step.added %}{{ column }}, {% endfor %}0 AS openivm_row FROM {{ step.source }} LIMIT 0
) AS openivm_new ON false
{% endmacro %}

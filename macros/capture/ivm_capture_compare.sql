{# One row: is the base what the total fingerprint says; do the fingerprints hold for this DuckDB; buckets; rows now. #}
{% macro ivm_capture_compare(step) %}{{ return(adapter.dispatch('ivm_capture_compare', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_compare(step) %}
SELECT
  live.openivm_rows = kept.openivm_rows AND live.openivm_fingerprint = kept.openivm_fingerprint,
  kept.openivm_version = version(),
  kept.openivm_buckets,
  live.openivm_rows
FROM (
  SELECT count(*) AS openivm_rows, coalesce(sum({{ step.hash }}), 0) AS openivm_fingerprint
  FROM {{ step.source }} AS openivm_source
) AS live
CROSS JOIN (SELECT * FROM {{ step.fingerprints }} WHERE openivm_bucket = -1) AS kept
{% endmacro %}

{# Fingerprints of the kept copy: one row a bucket (none where one bucket holds all), and the total as bucket -1. #}
{% macro ivm_capture_fingerprints(step) %}{{ return(adapter.dispatch('ivm_capture_fingerprints', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_fingerprints(step) %}
CREATE OR REPLACE TABLE {{ step.fingerprints }} AS
WITH grouped AS MATERIALIZED (
  SELECT
    CAST(openivm_hash % {{ step.buckets }} AS BIGINT) AS openivm_bucket,
    count(*) AS openivm_rows,
    sum(openivm_hash) AS openivm_fingerprint
  FROM (SELECT {{ step.hash }} AS openivm_hash FROM {{ step.copy }} AS openivm_source)
  GROUP BY 1
)
SELECT
  CAST(-1 AS BIGINT) AS openivm_bucket,
  CAST(coalesce(sum(openivm_rows), 0) AS BIGINT) AS openivm_rows,
  CAST(coalesce(sum(openivm_fingerprint), 0) AS HUGEINT) AS openivm_fingerprint,
  CAST({{ step.buckets }} AS BIGINT) AS openivm_buckets,
  version() AS openivm_version
FROM grouped
{% if step.buckets > 1 %}
UNION ALL
SELECT
  buckets.range,
  coalesce(grouped.openivm_rows, 0),
  coalesce(grouped.openivm_fingerprint, 0),
  NULL,
  NULL
FROM range({{ step.buckets }}) AS buckets
LEFT JOIN grouped ON grouped.openivm_bucket = buckets.range
{% endif %}
{% endmacro %}

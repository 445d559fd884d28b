{# The fingerprints of the kept copy after the difference was applied to it: hashes add up, so nothing is read again. #}
{% macro ivm_capture_advance(step) %}{{ return(adapter.dispatch('ivm_capture_advance', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_advance(step) %}
UPDATE {{ step.fingerprints }} AS stored
SET
  openivm_rows = stored.openivm_rows + moved.openivm_rows,
  openivm_fingerprint = stored.openivm_fingerprint + moved.openivm_fingerprint
FROM (
  SELECT
    openivm_bucket,
    CAST(sum(openivm_multiplicity) AS BIGINT) AS openivm_rows,
    sum(CAST(openivm_hash AS HUGEINT) * openivm_multiplicity) AS openivm_fingerprint
  FROM (
    SELECT -1 AS openivm_bucket, openivm_hash, openivm_multiplicity FROM {{ step.difference }}
    UNION ALL
    SELECT CAST(openivm_hash % {{ step.buckets }} AS BIGINT), openivm_hash, openivm_multiplicity FROM {{ step.difference }}
  )
  GROUP BY openivm_bucket
) AS moved
WHERE stored.openivm_bucket = moved.openivm_bucket
{% endmacro %}

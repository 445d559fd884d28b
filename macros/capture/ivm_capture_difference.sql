{#
  The signed difference between a base and its kept copy, one row a distinct tuple, into a temporary table. Three nets, each
  finer than the one before: changed buckets, then changed hashes in them, then whole rows of those hashes, grouped by keys
  that tell apart what DuckDB's own equality does not. Log, copy and fingerprints are all derived from this one table.
#}
{% macro ivm_capture_difference(step) %}{{ return(adapter.dispatch('ivm_capture_difference', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_difference(step) %}
{% set bucket = "CAST(openivm_hash % " ~ step.buckets ~ " AS BIGINT)" %}
{% set hashed = (step.columns + [step.hash ~ " AS openivm_hash"]) | join(", ") %}
CREATE OR REPLACE TEMPORARY TABLE {{ step.difference }} AS
WITH live AS NOT MATERIALIZED (
  SELECT {{ hashed }}, CAST(NULL AS BIGINT) AS openivm_rowid, 1 AS openivm_weight
  FROM {{ step.source }} AS openivm_source
),
kept AS NOT MATERIALIZED (
  SELECT {{ hashed }}, {{ step.rowid }} AS openivm_rowid, -1 AS openivm_weight
  FROM {{ step.copy }} AS openivm_source
),
{% if step.buckets > 1 %}
changed_buckets AS MATERIALIZED (
  SELECT stored.openivm_bucket
  FROM {{ step.fingerprints }} AS stored
  LEFT JOIN (
    SELECT {{ bucket }} AS openivm_bucket, count(*) AS openivm_rows, sum(openivm_hash) AS openivm_fingerprint
    FROM live
    GROUP BY 1
  ) AS found ON found.openivm_bucket = stored.openivm_bucket
  WHERE
    stored.openivm_bucket >= 0
    AND (
      stored.openivm_rows <> coalesce(found.openivm_rows, 0)
      OR stored.openivm_fingerprint <> coalesce(found.openivm_fingerprint, 0)
    )
),
candidates AS MATERIALIZED (
  SELECT * FROM live WHERE {{ bucket }} IN (SELECT openivm_bucket FROM changed_buckets)
  UNION ALL
  SELECT * FROM kept WHERE {{ bucket }} IN (SELECT openivm_bucket FROM changed_buckets)
),
changed AS NOT MATERIALIZED (
  SELECT *
  FROM candidates
  WHERE openivm_hash IN (SELECT openivm_hash FROM candidates GROUP BY openivm_hash HAVING sum(openivm_weight) <> 0)
)
{% else %}
changed AS NOT MATERIALIZED (
  SELECT * FROM live
  UNION ALL
  SELECT * FROM kept
)
{% endif %}
SELECT
{% for output in step.outputs %}
  {{ output }},
{% endfor %}
  openivm_hash,
  CAST(sum(openivm_weight) AS BIGINT) AS openivm_multiplicity,
  count(*) FILTER (WHERE openivm_weight < 0) AS openivm_held,
  list(openivm_rowid) FILTER (WHERE openivm_weight < 0) AS openivm_rowids
FROM changed
GROUP BY {{ (["openivm_hash"] + step.keys) | join(", ") }}
HAVING sum(openivm_weight) <> 0
{% endmacro %}

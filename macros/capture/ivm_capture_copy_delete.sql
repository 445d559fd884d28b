{#
  Delete the vanished rows from the kept copy: of a tuple with weight -n exactly n copies, by rowid. Where a captured column
  is itself called rowid, all copies go, and ivm_capture_copy_insert puts back those that stay.
#}
{% macro ivm_capture_copy_delete(step) %}{{ return(adapter.dispatch('ivm_capture_copy_delete', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_copy_delete(step) %}
{% if step.by_rowid %}
DELETE FROM {{ step.copy }}
WHERE rowid IN (
  SELECT openivm_rowid
  FROM (
    SELECT
      kept.openivm_rowid,
      gone.openivm_multiplicity,
      row_number() OVER (PARTITION BY gone.rowid) AS openivm_number
    FROM (
      SELECT {{ (["rowid AS openivm_rowid"] + step.columns + [step.hash ~ " AS openivm_hash"]) | join(", ") }}
      FROM {{ step.copy }} AS openivm_source
    ) AS kept
    INNER JOIN {{ step.difference }} AS gone
      ON {{ (["kept.openivm_hash = gone.openivm_hash"] + step.same) | join(" AND ") }}
    WHERE gone.openivm_multiplicity < 0
  )
  WHERE openivm_number <= -openivm_multiplicity
)
{% else %}
DELETE FROM {{ step.copy }} AS kept
USING {{ step.difference }} AS gone
WHERE gone.openivm_multiplicity < 0
  AND {{ step.same | join(" AND ") }}
{% endif %}
{% endmacro %}

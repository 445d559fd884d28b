{#
  Delete the vanished rows from the kept copy: of a tuple with weight -n exactly n copies, by rowid. Where a captured column
  is itself called rowid, all copies go, and ivm_capture_copy_insert puts back those that stay.
#}
{% macro ivm_capture_copy_delete(step) %}{{ return(adapter.dispatch('ivm_capture_copy_delete', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_copy_delete(step) %}
{% if step.rowid == "rowid" %}
DELETE FROM {{ step.copy }}
WHERE rowid IN (
  SELECT unnest(openivm_rowids[1 : -openivm_multiplicity])
  FROM {{ step.difference }}
  WHERE openivm_multiplicity < 0
)
{% else %}
DELETE FROM {{ step.copy }} AS kept
USING {{ step.difference }} AS gone
WHERE gone.openivm_multiplicity < 0
  AND {{ step.same | join(" AND ") }}
{% endif %}
{% endmacro %}

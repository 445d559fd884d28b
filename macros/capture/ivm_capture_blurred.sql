{# One row: may log rows not yet numbered say something else than what an UPDATE stored? See keys.blurred_conditions. #}
{% macro ivm_capture_blurred(step) %}{{ return(adapter.dispatch('ivm_capture_blurred', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_blurred(step) %}
SELECT coalesce(bool_or(openivm_blurred), false) AS openivm_blurred
FROM (
  SELECT {{ (step.conditions or ["false"]) | join(" OR ") }} AS openivm_blurred
  FROM {{ step.log }}
  WHERE openivm_batch IS NULL
{% for column in step.groups %}
  UNION ALL
  SELECT
    min(CAST({{ column }} AS VARCHAR)) <> max(CAST({{ column }} AS VARCHAR))
    AND bool_or(openivm_multiplicity > 0)
    AND bool_or(openivm_multiplicity < 0)
  FROM {{ step.log }}
  WHERE openivm_batch IS NULL
  GROUP BY {{ column }}
{% endfor %}
)
{% endmacro %}

{# Insert the new rows into the kept copy, each as often as its weight says. #}
{% macro ivm_capture_copy_insert(step) %}{{ return(adapter.dispatch('ivm_capture_copy_insert', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_copy_insert(step) %}
{% set columns = (step.columns if step.columns else ["openivm_row"]) | join(", ") %}
{% set stays = "greatest(openivm_multiplicity, 0)" if step.rowid == "rowid" else
   "CASE WHEN openivm_multiplicity > 0 THEN openivm_multiplicity ELSE openivm_held + openivm_multiplicity END" %}
INSERT INTO {{ step.copy }} ({{ columns }})
SELECT {{ columns }}
FROM (
  SELECT {{ columns if step.columns else "true AS openivm_row" }}, unnest(range({{ stays }})) AS openivm_number
  FROM {{ step.difference }}
)
{% endmacro %}

{# The difference into the change log, as one batch. #}
{% macro ivm_capture_write_log(step) %}{{ return(adapter.dispatch('ivm_capture_write_log', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_write_log(step) %}
INSERT INTO {{ step.log }} (
  {{ (step.columns + ["openivm_multiplicity", "openivm_timestamp", "openivm_batch"]) | join(", ") }}
)
SELECT {{ (step.columns + ["openivm_multiplicity"]) | join(", ") }}, {{ step.timestamp }}, {{ step.batch }}
FROM {{ step.difference }}
{% endmacro %}

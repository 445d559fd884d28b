{# Number the change-log rows that triggers wrote since the last capture. Rows of open transactions are not seen: they wait. #}
{% macro ivm_capture_number(step) %}{{ return(adapter.dispatch('ivm_capture_number', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_number(step) %}
UPDATE {{ step.log }} SET openivm_batch = {{ step.batch }} WHERE openivm_batch IS NULL
{% endmacro %}

{# The kept copy of the captured columns of a base. A base without captured columns is a number of rows: one flag each. #}
{% macro ivm_capture_copy(step) %}{{ return(adapter.dispatch('ivm_capture_copy', 'dbt')(step)) }}{% endmacro %}

{% macro openivm__ivm_capture_copy(step) %}
CREATE OR REPLACE TABLE {{ step.copy }} AS
SELECT {{ step.columns | join(", ") if step.columns else "true AS openivm_row" }}
FROM {{ step.source }}
{% endmacro %}

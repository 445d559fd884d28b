{#-
  List the consumers of every view's changes: what each has acknowledged, and how far it is behind.

  Usage: dbt run-operation ivm_consumers
-#}
{% macro ivm_consumers() %}
  {%- do print(adapter.ivm_operation('consumers', context, {})) -%}
{% endmacro %}

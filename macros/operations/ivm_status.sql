{#-
  Print the state of every maintained view: refresh type, last refresh, pending changes a source, consumers.

  Usage: dbt run-operation ivm_status
-#}
{% macro ivm_status() %}
  {%- do print(adapter.ivm_operation('status', context, {})) -%}
{% endmacro %}

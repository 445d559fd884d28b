{#-
  Print how a model will be maintained, and the SQL of its refresh; for a full refresh, the construct that causes it.
  Changes nothing, and the model need not have been built.

  Args:
    model: its name.

  Usage: dbt run-operation ivm_explain --args '{model: daily}'
-#}
{% macro ivm_explain(model) %}
  {%- do print(adapter.ivm_operation('explain', context, {'model': model})) -%}
{% endmacro %}

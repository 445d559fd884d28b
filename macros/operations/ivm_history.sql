{#-
  Print the latest refreshes, newest first: rows in, rows changed, strategy, milliseconds, and why a refresh was full.

  Args:
    model: only the refreshes of this model; all models if left out.
    limit: how many.

  Usage: dbt run-operation ivm_history --args '{model: daily, limit: 5}'
-#}
{% macro ivm_history(model=none, limit=20) %}
  {%- do print(adapter.ivm_operation('history', context, {'model': model, 'limit': limit})) -%}
{% endmacro %}

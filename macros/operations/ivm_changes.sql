{#-
  Print the SELECT that a consumer runs next, and the batch that it acknowledges then.

  Args:
    model: name of a model that was built, or the view's own name.
    consumer: its name.
    after: the batch that it has already, where it keeps that with its data.

  Usage: dbt run-operation ivm_changes --args '{model: daily, consumer: search}'
-#}
{% macro ivm_changes(model, consumer, after=none) %}
  {%- do print(adapter.ivm_operation('changes', context, {'model': model, 'consumer': consumer, 'after': after})) -%}
{% endmacro %}

{#-
  Forget a consumer of a view's changes, also of a view whose model is gone.

  Args:
    model: name of a model that was built, or the view's own name.
    consumer: its name.

  Usage: dbt run-operation ivm_unregister_consumer --args '{model: daily, consumer: search}'
-#}
{% macro ivm_unregister_consumer(model, consumer) %}
  {%- do print(adapter.ivm_operation('unregister', context, {'model': model, 'consumer': consumer})) -%}
{% endmacro %}

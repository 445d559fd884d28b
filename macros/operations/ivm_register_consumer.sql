{#-
  Register a consumer of a view's changes. One that is registered stays where it is.

  Args:
    model: name of a model that was built, or the view's own name.
    consumer: its name, without dots.
    snapshot: whether it reads the whole view first; else it has the view as it is now.

  Usage: dbt run-operation ivm_register_consumer --args '{model: daily, consumer: search, snapshot: true}'
-#}
{% macro ivm_register_consumer(model, consumer, snapshot=false) %}
  {%- set arguments = {'model': model, 'consumer': consumer, 'snapshot': snapshot} -%}
  {%- do print(adapter.ivm_operation('register', context, arguments)) -%}
{% endmacro %}

{#-
  Note that a consumer has the changes of a view up to a batch. What all consumers have is removed by the next refresh.

  Args:
    model: name of a model that was built, or the view's own name.
    consumer: its name.
    batch: the last batch that it has.

  Usage: dbt run-operation ivm_acknowledge --args '{model: daily, consumer: search, batch: 12}'
-#}
{% macro ivm_acknowledge(model, consumer, batch) %}
  {%- set arguments = {'model': model, 'consumer': consumer, 'batch': batch} -%}
  {%- do print(adapter.ivm_operation('acknowledge', context, arguments)) -%}
{% endmacro %}

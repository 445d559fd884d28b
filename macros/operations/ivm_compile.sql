{#-
  Print, as JSON, the statements of a model's refresh for someone else to run: schemas, enforced keys and sizes are what
  the database says. Changes nothing, and the model need not have been built.

  Args:
    model: its name.
    facts: more facts, as docs/compile-with-facts.md has them.

  Usage: dbt run-operation ivm_compile --args '{model: daily, facts: {assume_insert_only: true}}'
-#}
{% macro ivm_compile(model, facts=none) %}
  {%- do print(adapter.ivm_operation('compile', context, {'model': model, 'facts': facts})) -%}
{% endmacro %}

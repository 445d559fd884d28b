{#-
  Build or refresh the view inside the transaction, and report what was done as the model's result.

  Args:
    target: the view that users query.
    existing: what has this name now, or none. A table left by another materialization makes room; if the build fails,
      the rollback brings it back.
-#}
{% macro ivm_refresh_view(target, existing) %}
  {%- do adapter.ivm_begin() -%}
  {%- if existing is not none and not existing.is_view -%}
    {%- do adapter.drop_relation(existing) -%}
  {%- endif -%}
  {%- do store_result('main', response=adapter.ivm_apply()) -%}
  {%- do write(model['compiled_code']) -%}
  {%- do persist_docs(target, model) -%}
{% endmacro %}

{#-
  Check the contract, compile the query and capture the changes of its sources.

  Args:
    inside: whether a hook has opened the model's transaction already.
-#}
{% macro ivm_prepare_view(inside) %}
  {%- set header = config.get('sql_header') -%}
  {%- if header -%}
    {%- do run_query(header) -%}
  {%- endif -%}
  {%- if config.get('contract').enforced -%}
    {%- do get_assert_columns_equivalent(model['compiled_code']) -%}
  {%- endif -%}
  {%- do adapter.ivm_prepare(context, inside) -%}
{% endmacro %}

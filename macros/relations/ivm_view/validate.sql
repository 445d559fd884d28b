{#-
  What `--empty` and `--sample` do with an ivm_view: run its limited query, so that errors show, and leave maintained state
  alone. Where the view was never built, a plain view over the limited query stands in for it, so that models below can
  be validated too; the next normal run replaces it. Models below a view that was built read its query as it is now, from
  a temporary view.

  Args:
    target: the view that users query.
    existing: what has this name now, or none.
-#}
{% macro ivm_validate_view(target, existing) %}
  {%- set query = adapter.ivm_limited_query(context) -%}
  {%- set built = existing is not none and (not existing.is_view or adapter.ivm_is_maintained(target)) -%}
  {%- if not built and query == model['compiled_code'] -%}
    {%- call statement('main') -%}
      create or replace view {{ target }} as (
        {{ query }}
      )
    {%- endcall -%}
    {%- do store_result('main', response='VALIDATED: a plain view stands in until the next normal run') -%}
  {%- else -%}
    {%- call statement('main') -%}
      select count(*) from (
        {{ query }}
      )
    {%- endcall -%}
    {%- do adapter.ivm_validated(context) -%}
    {%- do store_result('main', response='VALIDATED: --empty and --sample leave the view as it is') -%}
  {%- endif -%}
{% endmacro %}

{#-
  Remove everything that dbt-openivm keeps in the project's databases: the maintained views, their state, the captures of
  their sources (triggers too) and the catalog. Tables and data of the user are not touched; the next run builds anew.

  Args:
    dry_run: only list it (the default).

  Usage: dbt run-operation ivm_remove --args '{dry_run: false}'
-#}
{% macro ivm_remove(dry_run=true) %}
  {%- do print(adapter.ivm_operation('remove', context, {'dry_run': dry_run})) -%}
{% endmacro %}

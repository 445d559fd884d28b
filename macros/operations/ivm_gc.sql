{#-
  Clear what no model uses any more: views whose model is gone, renamed or no ivm_view now, sources that nobody reads, and
  internal objects that the catalog does not know.

  Args:
    dry_run: only list it (the default).
    all_schemas: count the views of other projects, and of schemas that this project does not use, too.

  Usage: dbt run-operation ivm_gc --args '{dry_run: false}'
-#}
{% macro ivm_gc(dry_run=true, all_schemas=false) %}
  {%- do print(adapter.ivm_operation('gc', context, {'dry_run': dry_run, 'all_schemas': all_schemas})) -%}
{% endmacro %}

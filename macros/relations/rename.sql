{#-
  DuckDB refuses to rename a table that has triggers, and dbt renames the old table whenever it builds a new one. So the
  triggers of a capture go first; the capture notices, and the views that read the table are rebuilt.

  Args:
    from_relation: what is renamed.
    to_relation: what it is then called.
-#}
{% macro openivm__rename_relation(from_relation, to_relation) %}
  {%- for statement in adapter.ivm_trigger_drops(from_relation) -%}
    {%- do run_query(statement) -%}
  {%- endfor -%}
  {%- do duckdb__rename_relation(from_relation, to_relation) -%}
{% endmacro %}

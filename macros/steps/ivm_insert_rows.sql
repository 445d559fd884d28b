{%- macro ivm_insert_rows(step) -%}
{#- Append the rows of an insert-only delta to a bag.

    Arguments (attributes of step):
        target: the state table
        columns: visible columns
        query: the rows
-#}
{{ return(adapter.dispatch('ivm_insert_rows', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_insert_rows(step) -%}
INSERT INTO {{ step.target }} ({{ step.columns | join(', ') }})
{{ step.query }}
{%- endmacro -%}

{%- macro ivm_fill_state(step) -%}
{#- Fill an empty state table from its query.

    Arguments (attributes of step):
        target: the table
        query: the SELECT of the whole state
-#}
{{ return(adapter.dispatch('ivm_fill_state', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_fill_state(step) -%}
INSERT INTO {{ step.target }}
{{ step.query }}
{%- endmacro -%}

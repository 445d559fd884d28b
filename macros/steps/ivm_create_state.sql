{%- macro ivm_create_state(step) -%}
{#- Create or replace a state table from its query.

    Arguments (attributes of step):
        target: the table
        query: the SELECT of the whole state
-#}
{{ return(adapter.dispatch('ivm_create_state', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_create_state(step) -%}
CREATE OR REPLACE TABLE {{ step.target }} AS
{{ step.query }}
{%- endmacro -%}

{%- macro postgres__ivm_create_state(step) -%}
CREATE TABLE {{ step.target }} AS
{{ step.query }}
{%- endmacro -%}

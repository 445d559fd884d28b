{%- macro ivm_create_boundary(step) -%}
{#- Create the published boundary: the visible rows of a state.

    Arguments (attributes of step):
        view: the boundary
        source: the state table
        columns: visible columns
        having: boolean column that says which rows are visible, or none
-#}
{{ return(adapter.dispatch('ivm_create_boundary', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_create_boundary(step) -%}
CREATE OR REPLACE VIEW {{ step.view }} AS
SELECT {{ step.columns | join(', ') }}
FROM {{ step.source }}
{%- if step.having %}

WHERE {{ step.having }}
{%- endif %}
{%- endmacro -%}

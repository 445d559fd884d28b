{%- macro ivm_create_view(step) -%}
{#- Create the view that users query, on the boundary.

    Arguments (attributes of step):
        view: where users query
        source: the boundary
        columns: visible columns
-#}
{{ return(adapter.dispatch('ivm_create_view', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_create_view(step) -%}
CREATE OR REPLACE VIEW {{ step.view }} AS
SELECT {{ step.columns | join(', ') }}
FROM {{ step.source }}
{%- endmacro -%}

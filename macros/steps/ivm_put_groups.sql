{%- macro ivm_put_groups(step) -%}
{#- Insert the groups of a temporary table into a state.

    Arguments (attributes of step):
        target: the state table
        name: the temporary table
        columns: the columns of both
-#}
{{ return(adapter.dispatch('ivm_put_groups', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_put_groups(step) -%}
INSERT INTO {{ step.target }} ({{ step.columns | join(', ') }})
SELECT {{ step.columns | join(', ') }} FROM {{ step.name }}
{%- endmacro -%}

{%- macro ivm_drop(step) -%}
{#- Drop a table or view if it is there.

    Arguments (attributes of step):
        kind: TABLE or VIEW
        name: the table or view
-#}
{{ return(adapter.dispatch('ivm_drop', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_drop(step) -%}
DROP {{ step.kind }} IF EXISTS {{ step.name }}
{%- endmacro -%}

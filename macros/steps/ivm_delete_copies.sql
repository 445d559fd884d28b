{%- macro ivm_delete_copies(step) -%}
{#- Delete as many copies of each row from a bag as its negative weight says.

    Arguments (attributes of step):
        target: the state table
        delta: temporary table of consolidated rows
        same: conditions over t and d under which a row of the state is a row of the delta
        weight: the weight column
-#}
{{ return(adapter.dispatch('ivm_delete_copies', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_delete_copies(step) -%}
{{ ivm_delete_places(step, 'rowid') }}
{%- endmacro -%}

{%- macro postgres__ivm_delete_copies(step) -%}
{{ ivm_delete_places(step, 'ctid') }}
{%- endmacro -%}

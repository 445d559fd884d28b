{%- macro ivm_insert_copies(step) -%}
{#- Insert as many copies of each row into a bag as its positive weight says.

    Arguments (attributes of step):
        target: the state table
        delta: temporary table of consolidated rows
        columns: visible columns
        weight: the weight column
-#}
{{ return(adapter.dispatch('ivm_insert_copies', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_insert_copies(step) -%}
INSERT INTO {{ step.target }} ({{ step.columns | join(', ') }})
SELECT d.{{ step.columns | join(', d.') }}
FROM {{ step.delta }} AS d, range(d.{{ step.weight }}) AS openivm_copies
WHERE d.{{ step.weight }} > 0
{%- endmacro -%}

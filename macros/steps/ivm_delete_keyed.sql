{%- macro ivm_delete_keyed(step) -%}
{#- Delete the rows of negative weight from a bag in which no two rows have one key.

    Arguments (attributes of step):
        target: the state table
        delta: temporary table of consolidated rows
        same: conditions over t and d under which a row of the state has the key of a row of the delta
        weight: the weight column
-#}
{{ return(adapter.dispatch('ivm_delete_keyed', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_delete_keyed(step) -%}
DELETE FROM {{ step.target }} AS t
USING (SELECT * FROM {{ step.delta }} WHERE {{ step.weight }} < 0) AS d
WHERE {{ step.same | join(' AND ') }}
{%- endmacro -%}

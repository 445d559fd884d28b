{%- macro ivm_companion_net(step) -%}
{#- Append one batch of companion rows, added up by tuple, to a table; tuples whose weights cancel vanish.

    Arguments (attributes of step):
        target: the table to append to: the change log of the boundary, or the companion table itself
        companion: the companion table
        columns: visible columns
        rows: how rows are told apart: `outputs`, one expression a visible column, and `keys`, what they are grouped by
        batch: the batch to read
        version: the batch to write
-#}
{{ return(adapter.dispatch('ivm_companion_net', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_companion_net(step) -%}
INSERT INTO {{ step.target }} ({{ step.columns | join(', ') }}, openivm_multiplicity, openivm_timestamp, openivm_batch)
SELECT {{ step.rows['outputs'] | join(', ') }}, sum(openivm_multiplicity), now()::TIMESTAMP, {{ step.version }}
FROM {{ step.companion }}
WHERE openivm_batch = {{ step.batch }}
GROUP BY {{ step.rows['keys'] | join(', ') }}
HAVING sum(openivm_multiplicity) <> 0
{%- endmacro -%}

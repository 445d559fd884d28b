{%- macro ivm_companion_delete(step) -%}
{#- Delete one batch of companion rows.

    Arguments (attributes of step):
        companion: the companion table
        batch: batch number
-#}
{{ return(adapter.dispatch('ivm_companion_delete', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_companion_delete(step) -%}
DELETE FROM {{ step.companion }} WHERE openivm_batch = {{ step.batch }}
{%- endmacro -%}

{%- macro ivm_companion_renumber(step) -%}
{#- Give a batch of companion rows another number.

    Arguments (attributes of step):
        companion: the companion table
        batch: the number that it has
        version: the number that it gets
-#}
{{ return(adapter.dispatch('ivm_companion_renumber', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_companion_renumber(step) -%}
UPDATE {{ step.companion }} SET openivm_batch = {{ step.version }} WHERE openivm_batch = {{ step.batch }}
{%- endmacro -%}

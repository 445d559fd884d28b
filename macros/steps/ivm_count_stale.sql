{%- macro ivm_count_stale(step) -%}
{#- Count the groups that a merge marked as stale.

    Arguments (attributes of step):
        target: the state table
        stale: the hidden boolean column
-#}
{{ return(adapter.dispatch('ivm_count_stale', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_count_stale(step) -%}
SELECT count(*) FROM {{ step.target }} WHERE {{ step.stale }}
{%- endmacro -%}

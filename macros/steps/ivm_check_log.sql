{%- macro ivm_check_log(step) -%}
{#- Count the rows of a change log that break a promise: one count, 0 where it holds.

    Arguments (attributes of step):
        log: the change log
        allowed: the only weight that its rows may have, or none if there may be no rows
-#}
{{ return(adapter.dispatch('ivm_check_log', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_check_log(step) -%}
SELECT count(*) FROM {{ step.log }}
{%- if step.allowed is not none %}

WHERE openivm_multiplicity IS DISTINCT FROM {{ step.allowed }}
{%- endif %}
{%- endmacro -%}

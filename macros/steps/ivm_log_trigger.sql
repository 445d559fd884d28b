{%- macro ivm_log_trigger(step) -%}
{#- Create a trigger that calls a function of ivm_log_function.

    Arguments (attributes of step):
        trigger: the trigger
        event: INSERT, UPDATE, DELETE or TRUNCATE
        function, table: see ivm_log_function
-#}
{{ return(adapter.dispatch('ivm_log_trigger', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro default__ivm_log_trigger(step) -%}
CREATE OR REPLACE TRIGGER {{ step.trigger }} {{ 'BEFORE' if step.event == 'TRUNCATE' else 'AFTER' }} {{ step.event }} ON {{ step.table }}
{% if step.event == 'INSERT' %}
REFERENCING NEW TABLE AS openivm_new_rows
{% elif step.event == 'UPDATE' %}
REFERENCING OLD TABLE AS openivm_old_rows NEW TABLE AS openivm_new_rows
{% elif step.event == 'DELETE' %}
REFERENCING OLD TABLE AS openivm_old_rows
{% endif %}
FOR EACH STATEMENT EXECUTE FUNCTION {{ step.function }}()
{%- endmacro -%}

{%- macro ivm_log_function(step) -%}
{#- Create the function by which triggers put the changes of a table into its change log.

    Arguments (attributes of step):
        function: the function
        table: the table
        log: the change log
        columns: the columns of the table
-#}
{{ return(adapter.dispatch('ivm_log_function', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro default__ivm_log_function(step) -%}
CREATE OR REPLACE FUNCTION {{ step.function }}() RETURNS trigger LANGUAGE plpgsql AS $openivm$
BEGIN
  IF TG_OP IN ('UPDATE', 'DELETE') THEN
    INSERT INTO {{ step.log }} ({{ step.columns | join(', ') }}, openivm_multiplicity)
    SELECT {{ step.columns | join(', ') }}, -1 FROM openivm_old_rows;
  END IF;
  IF TG_OP IN ('UPDATE', 'INSERT') THEN
    INSERT INTO {{ step.log }} ({{ step.columns | join(', ') }}, openivm_multiplicity)
    SELECT {{ step.columns | join(', ') }}, 1 FROM openivm_new_rows;
  END IF;
  IF TG_OP = 'TRUNCATE' THEN
    INSERT INTO {{ step.log }} ({{ step.columns | join(', ') }}, openivm_multiplicity)
    SELECT {{ step.columns | join(', ') }}, -1 FROM {{ step.table }};
  END IF;
  RETURN NULL;
END
$openivm$
{%- endmacro -%}

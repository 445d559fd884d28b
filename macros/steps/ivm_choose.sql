{%- macro ivm_choose(step) -%}
{#- Tell by its size whether to work on a part of a table, or on all of it: two counts, one of which is 0.

    Arguments (attributes of step):
        part: the table of the rows to work on
        whole: the table that they are of
        share: from one row in so many on, all of it
-#}
{{ return(adapter.dispatch('ivm_choose', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_choose(step) -%}
SELECT
  CASE WHEN part * {{ step.share }} <= whole THEN greatest(part, 1) ELSE 0 END,
  CASE WHEN part * {{ step.share }} <= whole THEN 0 ELSE part END
FROM (SELECT (SELECT count(*) FROM {{ step.part }}) AS part, (SELECT count(*) FROM {{ step.whole }}) AS whole)
{%- endmacro -%}

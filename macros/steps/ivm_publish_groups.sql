{%- macro ivm_publish_groups(step) -%}
{#- Publish the groups that a consolidated delta brings or takes away, before it is merged. For states that show nothing
    but keys: a group that stays does not change.

    Arguments (attributes of step):
        log: the change log
        version: batch number
        target: the state table
        source: the delta, one row a group
        keys: pairs (column of the state, column of the delta)
        count: pair (column of the state, column of the delta) of the number of rows
-#}
{{ return(adapter.dispatch('ivm_publish_groups', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_publish_groups(step) -%}
INSERT INTO {{ step.log }} ({% for held, _ in step['keys'] %}{{ held }}, {% endfor %}openivm_multiplicity, openivm_timestamp, openivm_batch)
SELECT {% for held, key in step['keys'] %}CASE WHEN t.{{ step['count'][0] }} IS NULL THEN d.{{ key }} ELSE t.{{ held }} END, {% endfor %}CASE WHEN t.{{ step['count'][0] }} IS NULL THEN 1 ELSE -1 END, now()::TIMESTAMP, {{ step.version }}
FROM {{ step.source }} AS d LEFT JOIN {{ step.target }} AS t
ON ({{ ivm_same_keys('t', 'd', step['keys']) }})
WHERE (t.{{ step['count'][0] }} IS NULL AND d.{{ step['count'][1] }} <> 0) OR t.{{ step['count'][0] }} + d.{{ step['count'][1] }} = 0
{%- endmacro -%}

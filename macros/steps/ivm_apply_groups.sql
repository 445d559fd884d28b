{#- What the apply strategies besides MERGE are made of. Arguments that all of them read (attributes of step):
        target: the state table
        source: temporary table with the delta, one row a group
        keys: pairs (column of the state, column of the delta)
        count: pair (column of the state, column of the delta) of the number of rows, or none if nothing was deleted
-#}

{%- macro ivm_delete_emptied(step) -%}
{#- Delete the groups that a delta leaves without rows. `count` is there. -#}
{{ return(adapter.dispatch('ivm_delete_emptied', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_delete_emptied(step) -%}
DELETE FROM {{ step.target }} AS t
USING {{ step.source }} AS d
WHERE {% for held, key in step['keys'] %}t.{{ held }} IS NOT DISTINCT FROM d.{{ key }} AND {% endfor %}t.{{ step['count'][0] }} + d.{{ step['count'][1] }} = 0
{%- endmacro -%}

{%- macro ivm_update_groups(step) -%}
{#- Add a delta to the groups that a state holds; those that it empties are gone already.

    More arguments:
        updates: pairs (column, expression over t and d)
-#}
{{ return(adapter.dispatch('ivm_update_groups', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_update_groups(step) -%}
UPDATE {{ step.target }} AS t SET
  {% for column, value in step.updates %}{{ column }} = {{ value }}{{ ',
  ' if not loop.last }}{% endfor %}

FROM {{ step.source }} AS d
WHERE {% for held, key in step['keys'] %}{{ ' AND ' if not loop.first }}t.{{ held }} IS NOT DISTINCT FROM d.{{ key }}{% endfor %}
{%- endmacro -%}

{%- macro ivm_keep_groups(step) -%}
{#- Keep the new rows of the groups that a state holds and a delta does not empty in a temporary table.

    More arguments:
        name: the temporary table
        values: pairs (column, expression over t and d) of every column of the state
-#}
{{ return(adapter.dispatch('ivm_keep_groups', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_keep_groups(step) -%}
CREATE OR REPLACE TEMPORARY TABLE {{ step.name }} AS
SELECT {% for column, value in step['values'] %}{{ value }} AS {{ column }}{{ ',
  ' if not loop.last }}{% endfor %}

FROM {{ step.target }} AS t
JOIN {{ step.source }} AS d
ON ({% for held, key in step['keys'] %}{{ ' AND ' if not loop.first }}t.{{ held }} IS NOT DISTINCT FROM d.{{ key }}{% endfor %})
{%- if step.count %}

WHERE t.{{ step['count'][0] }} + d.{{ step['count'][1] }} <> 0
{%- endif %}
{%- endmacro -%}

{%- macro ivm_put_groups(step) -%}
{#- Insert kept rows into a state.

    Arguments (attributes of step):
        target: the state table
        name: the temporary table
        columns: the columns of both
-#}
{{ return(adapter.dispatch('ivm_put_groups', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_put_groups(step) -%}
INSERT INTO {{ step.target }} ({{ step.columns | join(', ') }})
SELECT {{ step.columns | join(', ') }} FROM {{ step.name }}
{%- endmacro -%}

{%- macro ivm_insert_groups(step) -%}
{#- Insert the groups of a delta that are new. A group that was emptied has a negative count in the delta.

    More arguments:
        held: relation with the groups that are not new
        inserts: pairs (column, expression over d)
-#}
{{ return(adapter.dispatch('ivm_insert_groups', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_insert_groups(step) -%}
INSERT INTO {{ step.target }} ({% for column, _ in step.inserts %}{{ column }}{{ ', ' if not loop.last }}{% endfor %})
SELECT {% for _, value in step.inserts %}{{ value }}{{ ', ' if not loop.last }}{% endfor %}

FROM {{ step.source }} AS d
ANTI JOIN {{ step.held }} AS t
ON ({% for held, key in step['keys'] %}{{ ' AND ' if not loop.first }}t.{{ held }} IS NOT DISTINCT FROM d.{{ key }}{% endfor %})
{%- if step.count %}

WHERE d.{{ step['count'][1] }} > 0
{%- endif %}
{%- endmacro -%}

{%- macro ivm_replace_groups(step) -%}
{#- Replace affected groups by their recomputation: delete what is gone, update, insert what is new.

    Arguments (attributes of step):
        target: the state table
        affected: temporary table of keys
        query: the recomputation, restricted to the affected keys
        keys: pairs (column of the state, column of affected)
        count: the hidden count of rows a group
        columns: the other columns of the state
-#}
{{ return(adapter.dispatch('ivm_replace_groups', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_replace_groups(step) -%}
MERGE INTO {{ step.target }} AS t
USING (
  SELECT {% for _, key in step['keys'] %}a.{{ key }}{{ ', ' if not loop.last }}{% endfor %}{% for column in step.columns %}, r.{{ column }}{% endfor %}

  FROM {{ step.affected }} AS a
  LEFT JOIN (
    {{ step.query }}
  ) AS r
  ON {{ ivm_same_keys('r', 'a', step['keys']) }}
) AS d
ON ({{ ivm_same_keys('t', 'd', step['keys']) }})
WHEN MATCHED AND d.{{ step.count }} IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET
  {% for column in step.columns %}{{ column }} = d.{{ column }}{{ ',
  ' if not loop.last }}{% endfor %}

WHEN NOT MATCHED AND d.{{ step.count }} IS NOT NULL THEN INSERT ({% for held, _ in step['keys'] %}{{ held }}{{ ', ' if not loop.last }}{% endfor %}{% for column in step.columns %}, {{ column }}{% endfor %})
  VALUES ({% for _, key in step['keys'] %}d.{{ key }}{{ ', ' if not loop.last }}{% endfor %}{% for column in step.columns %}, d.{{ column }}{% endfor %})
{%- endmacro -%}

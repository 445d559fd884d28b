{%- macro ivm_companion_inline(step) -%}
{#- Inline companions of a relative delta, before it is merged: for each of its positive rows whose group exists, a row
    that takes one away; for each negative row whose group survives, one that adds it again. Keys are kept, every other
    column is NULL.

    Arguments (attributes of step):
        companion: the companion table, which holds the relative delta under this version
        columns: visible columns
        values: of each visible column, d's value for a key, else NULL
        version: batch number
        target: the state table
        source: the delta, one row a group
        keys: triples (column of the state, column of source, visible column of the companion)
        count: pair (column of the state, column of source) of the number of rows, or none if nothing was deleted
-#}
{{ return(adapter.dispatch('ivm_companion_inline', 'dbt')(step)) }}
{%- endmacro -%}

{%- macro openivm__ivm_companion_inline(step) -%}
INSERT INTO {{ step.companion }} ({{ step.columns | join(', ') }}, openivm_multiplicity, openivm_timestamp, openivm_batch)
SELECT {{ step['values'] | join(', ') }}, -1, now()::TIMESTAMP, {{ step.version }}
FROM {{ step.companion }} AS d
WHERE d.openivm_multiplicity > 0 AND d.openivm_batch = {{ step.version }}
  AND EXISTS (SELECT 1 FROM {{ step.target }} AS m WHERE {% for held, _, shown in step['keys'] %}{{ ' AND ' if not loop.first }}m.{{ held }} IS NOT DISTINCT FROM d.{{ shown }}{% endfor %})
{% if step.count %}
UNION ALL
SELECT {{ step['values'] | join(', ') }}, 1, now()::TIMESTAMP, {{ step.version }}
FROM {{ step.companion }} AS d
WHERE d.openivm_multiplicity < 0 AND d.openivm_batch = {{ step.version }}
  AND EXISTS (
    SELECT 1 FROM {{ step.source }} AS s
    LEFT JOIN {{ step.target }} AS m ON {% for held, key, _ in step['keys'] %}{{ ' AND ' if not loop.first }}m.{{ held }} IS NOT DISTINCT FROM s.{{ key }}{% endfor %}

    WHERE {% for _, key, shown in step['keys'] %}{{ ' AND ' if not loop.first }}s.{{ key }} IS NOT DISTINCT FROM d.{{ shown }}{% endfor %}

      AND coalesce(m.{{ step['count'][0] }}, 0) + s.{{ step['count'][1] }} <> 0
  )
{% endif %}
{%- endmacro -%}

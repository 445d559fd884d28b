{%- macro ivm_delete_places(step, place) -%}
{#- The statement of ivm_delete_copies, for an engine that calls the place of a row `place`. -#}
DELETE FROM {{ step.target }}
WHERE {{ place }} IN (
  SELECT openivm_rowid FROM (
    SELECT t.{{ place }} AS openivm_rowid, d.{{ step.weight }} AS openivm_weight,
      row_number() OVER (PARTITION BY d.openivm_tuple) AS openivm_copy
    FROM {{ step.target }} AS t
    JOIN (SELECT * FROM {{ step.delta }} WHERE {{ step.weight }} < 0) AS d
    ON {{ step.same | join(' AND ') }}
  ) AS openivm_copies
  WHERE openivm_copy <= -openivm_weight
)
{%- endmacro -%}

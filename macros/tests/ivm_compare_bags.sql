{#-
  The rows in which a relation and a query differ as bags.

  Rows that are equal to the bit cancel out first. Of the rest, rows that agree in everything but their floating numbers
  are paired in order, and a pair that is close enough is no difference.

  Args:
    relation: what is checked.
    query: what it should equal.
    columns: the relation's columns, with their data types.

  Returns: a query; each of its rows is a differing row and its count on either side.
-#}
{% macro ivm_compare_bags(relation, query, columns) %}
  {{ return(adapter.dispatch('ivm_compare_bags', 'dbt')(relation, query, columns)) }}
{% endmacro %}

{% macro openivm__ivm_compare_bags(relation, query, columns) %}
  {%- set names = columns | map(attribute='quoted') | list -%}
  {%- set floats = [] -%}
  {%- set exact = [] -%}
  {%- for column in columns -%}
    {%- do (floats if column.dtype | upper in ['FLOAT', 'DOUBLE'] else exact).append(column.quoted) -%}
  {%- endfor -%}
with openivm_both as (
  select *, 1 as openivm_in_view, 0 as openivm_in_query from {{ relation }}
  union all
  select *, 0, 1 from (
{{ query }}
  )
),
openivm_unequal as (
  select {{ names | join(', ') }},
    sum(openivm_in_view) as rows_in_view, sum(openivm_in_query) as rows_in_query
  from openivm_both
  group by {{ names | join(', ') }}
  having sum(openivm_in_view) <> sum(openivm_in_query)
)
{%- if not floats %}
select * from openivm_unequal
{%- else %},
openivm_numbered as (
  select *, row_number() over (
    partition by {{ (exact + ['rows_in_view > rows_in_query']) | join(', ') }} order by {{ floats | join(', ') }}
  ) as openivm_number
  from (
    select {{ names | join(', ') }}, rows_in_view, rows_in_query,
      unnest(range(abs(rows_in_view - rows_in_query)::bigint))
    from openivm_unequal
  )
)
select {{ names | join(', ') }}, rows_in_view, rows_in_query
from openivm_numbered as mine
where not exists (
  select 1 from openivm_numbered as other
  where (other.rows_in_view > other.rows_in_query) <> (mine.rows_in_view > mine.rows_in_query)
    and other.openivm_number = mine.openivm_number
    {%- for name in exact %}
    and other.{{ name }} is not distinct from mine.{{ name }}
    {%- endfor %}
    {%- for name in floats %}
    and (other.{{ name }} is not distinct from mine.{{ name }}
      or abs(other.{{ name }} - mine.{{ name }}) <= 1e-9 * greatest(abs(other.{{ name }}), abs(mine.{{ name }})))
    {%- endfor %}
)
{%- endif %}
{% endmacro %}

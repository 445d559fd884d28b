{#-
  Data test: a maintained view equals its query as a bag, same rows, same duplicates, same NULLs. Fails with the rows that
  differ, each with its count in the view and in the query. Floating numbers may differ by 1e-9 relative: sums depend on
  the order of addition.

  The query is the one of the model's last run. Changes made to its sources since then show up as differences. What to do
  stands at the top of the compiled test, whose path dbt prints.

  Usage, under a model in a YAML file:
    data_tests:
      - ivm_equals_recompute
-#}
{% test ivm_equals_recompute(model) %}
-- Each row of this query is a row in which the view and its query differ, with its count on either side.
-- If the sources changed since the model's last run: dbt run --select {{ model.identifier }}
-- If they did not, the state was edited by hand: dbt run --full-refresh --select {{ model.identifier }}+
-- If that does not help either, please report the query: it is a bug of dbt-openivm.
  {{ ivm_compare_bags(model, adapter.ivm_definition(model), adapter.get_columns_in_relation(model)) }}
{% endtest %}

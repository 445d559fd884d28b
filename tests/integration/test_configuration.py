"""What can be configured on a model, and what cannot."""

from __future__ import annotations

from importlib import metadata

import pytest

from tests.integration.conftest import BY_PRODUCT
from tests.integration.project import Project

pytestmark = pytest.mark.integration

DBT = tuple(int(part) for part in metadata.version("dbt-core").split(".")[:2])
SOURCE = "{{ source('src', 'sales') }}"


def test_settings_of_other_materializations_are_one_error(shop: Project) -> None:
    shop.model(
        "clean",
        f"select * from {SOURCE}",
        unique_key="id",
        incremental_strategy="merge",
        on_schema_change="append_new_columns",
        refresh_mode="sometimes",
        capture="magic",
    )
    message = shop.fail("run", "--select", "clean").error("clean")
    for key in ("unique_key", "incremental_strategy", "on_schema_change", "refresh_mode", "capture"):
        assert f"- {key}: " in message
    assert "not needed" in message
    assert "clean" in message
    assert "models/clean.sql" in message


def test_custom_schema_alias_and_quoting(shop: Project) -> None:
    shop.model(
        "OddName", f'select product as "Group", price as "a.b" from {SOURCE}', alias="Ünïque view", schema="mart"
    )
    shop.run("--select", "OddName")
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    assert shop.run("--select", "OddName").strategy("OddName") == "incremental"
    shop.assert_equal('"main_mart"."Ünïque view"', 'SELECT product AS "Group", price AS "a.b" FROM sales')


def test_contract(shop: Project) -> None:
    shop.write("models/schema.yml", CONTRACT.format(type="integer"))
    message = shop.fail("run", "--select", "+by_product").error("by_product")
    assert "contract" in message
    assert "INTEGER" in message
    assert shop.query("SELECT * FROM information_schema.tables WHERE table_name = 'by_product'") == []
    shop.write("models/schema.yml", CONTRACT.format(type="hugeint"))
    shop.run("--select", "+by_product")
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    assert shop.run("--select", "+by_product").strategy("by_product") == "incremental"


CONTRACT = """
models:
  - name: by_product
    config: {{contract: {{enforced: true}}}}
    columns:
      - {{name: product, data_type: bigint}}
      - {{name: n, data_type: bigint}}
      - {{name: total, data_type: {type}}}
      - {{name: quantity, data_type: double}}
"""


def test_constraints_that_nothing_enforces_are_an_error(shop: Project) -> None:
    shop.write("models/schema.yml", CONSTRAINTS.format(known=""))
    message = shop.fail("run", "--select", "+by_product").error("by_product")
    assert "constraint not_null of column product" in message
    assert "data test" in message
    shop.write("models/schema.yml", CONSTRAINTS.format(known=", warn_unenforced: false"))
    shop.run("--select", "+by_product")


CONSTRAINTS = """
models:
  - name: by_product
    columns:
      - {{name: product, data_type: bigint, constraints: [{{type: not_null{known}}}]}}
"""


def test_hooks_inside_and_outside_the_transaction(shop: Project) -> None:
    shop.execute("CREATE TABLE log (what VARCHAR)")
    shop.write(
        "models/hooked.sql",
        """{{ config(
            materialized='ivm_view',
            pre_hook=[before_begin("insert into log values ('before begin')"),
                      "insert into {{ source('src', 'sales') }} values (2000, 1, 900, 9)"],
            post_hook=["insert into log select 'inside ' || count(*) from {{ this }}",
                       after_commit("insert into log values ('after commit')")]
        ) }}
        select * from {{ source('src', 'sales') }} where price >= 900""",
    )
    shop.run("--select", "hooked")
    shop.assert_equal("hooked", "SELECT * FROM sales WHERE price >= 900")
    assert shop.query("SELECT what FROM log") == [("before begin",), ("inside 11",), ("after commit",)]
    shop.run("--select", "hooked")
    shop.assert_equal("hooked", "SELECT * FROM sales WHERE price >= 900")


def test_persisted_docs(shop: Project) -> None:
    shop.write("models/schema.yml", DOCS)
    shop.run()
    assert shop.query("SELECT comment FROM duckdb_views() WHERE view_name = 'by_product'") == [("Sales by product",)]
    comments = shop.query("SELECT comment FROM duckdb_columns() WHERE table_name = 'by_product' AND column_name = 'n'")
    assert comments == [("How many",)]
    shop.run()
    assert shop.query("SELECT comment FROM duckdb_views() WHERE view_name = 'by_product'") == [("Sales by product",)]


DOCS = """
models:
  - name: by_product
    description: Sales by product
    config: {persist_docs: {relation: true, columns: true}, tags: [nightly], grants: {select: [someone]}}
    columns: [{name: n, description: How many}]
"""


def test_tags_select(shop: Project) -> None:
    shop.write("models/schema.yml", DOCS)
    shop.run()
    assert [r.node.name for r in shop.run("--select", "tag:nightly").results] == ["by_product"]


def test_sql_header_runs_before_the_query(shop: Project) -> None:
    shop.model(
        "headed", f"select twice(price) as p from {SOURCE}", sql_header="create or replace macro twice(x) as x * 2;"
    )
    shop.run("--select", "headed")
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    shop.run("--select", "headed")
    shop.assert_equal("headed", "SELECT price * 2 AS p FROM sales")


def test_capture_of_a_source(shop: Project) -> None:
    shop.sources("sales", "products", meta={"openivm": {"capture": "trigger"}})
    if shop.query("SELECT 1 FROM duckdb_functions() WHERE function_name = 'duckdb_triggers'") == []:
        pytest.skip("triggers need DuckDB 2.0")
    shop.run()
    triggers = shop.query("SELECT DISTINCT table_name FROM duckdb_triggers()")
    assert triggers == [("sales",)]
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)", "DELETE FROM sales WHERE id = 60")
    lines = [line.split() for line in shop.operation("ivm_status").splitlines()]
    assert ["main.sales", "trigger", "2", "main.clean"] in lines
    assert shop.run().strategy("by_product") == "incremental"
    shop.assert_equal("by_product", BY_PRODUCT.format("(SELECT * FROM sales WHERE price > 50)"))


def test_unknown_capture_is_an_error(shop: Project) -> None:
    shop.sources("sales", "products", meta={"openivm": {"capture": "magic"}})
    message = shop.fail("run").error("clean")
    assert "source.it.src.sales: capture: got 'magic', expected one of diff, trigger" in message
    assert "source.it.src.products" in message


def test_misspelt_settings_are_told(shop: Project) -> None:
    shop.sources("sales", "products", meta={"openvim": {"capture": "trigger"}})
    shop.model("clean", f"select * from {SOURCE}", refresh_mod="full")
    text = shop.run("--select", "clean").text
    assert "source.it.src.sales: meta.openvim is not read. Did you mean meta.openivm?" in text
    assert "model.it.clean: the config refresh_mod is not read. Did you mean refresh_mode?" in text


def test_a_capture_that_comes_too_late_is_told(shop: Project) -> None:
    assert "asks for capture" not in shop.run().text
    shop.model("late", f"select id from {SOURCE}", capture="trigger")
    text = shop.run("--select", "late").text
    assert "late asks for capture trigger, but warehouse.main.sales is captured by diff" in text


def test_a_reason_names_the_line_of_the_model(shop: Project) -> None:
    shop.write(
        "models/sampled.sql",
        f"\n\n{{{{ config(materialized='ivm_view') }}}}\nselect id,\n  random() as r\nfrom {SOURCE}\n",
    )
    run = shop.run("--select", "sampled")
    assert "random() at models/sampled.sql:5 cannot be maintained" in run.text
    assert "random() at models/sampled.sql:5" in run.response("sampled")["reason"]
    assert "random() at models/sampled.sql:5" in shop.operation("ivm_explain", model="sampled")
    assert "random() at models/sampled.sql:5" in shop.operation("ivm_status")
    assert "random() at models/sampled.sql:5" in shop.operation("ivm_history", model="sampled")


SAMPLE = pytest.param(
    ["--sample", "1 day"], marks=pytest.mark.skipif(DBT < (1, 10), reason="--sample came with dbt 1.10")
)


@pytest.mark.parametrize("flag", [["--empty"], SAMPLE])
def test_limited_runs_leave_maintained_state_alone(shop: Project, flag: list[str]) -> None:
    shop.run()
    before = shop.rows("by_product")
    history = shop.query("SELECT count(*) FROM openivm.openivm_refresh_history")
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    run = shop.run(*flag)
    assert "VALIDATED" in run.text
    assert shop.rows("by_product") == before
    assert shop.query("SELECT count(*) FROM openivm.openivm_refresh_history") == history
    assert shop.run().strategy("by_product") == "incremental"
    shop.assert_equal("by_product", BY_PRODUCT.format("(SELECT * FROM sales WHERE price > 50)"))


def test_empty_run_on_a_fresh_database(shop: Project) -> None:
    shop.run("--empty")
    assert shop.rows("by_product") == []
    shop.run("--empty")
    assert shop.run().strategy("by_product") == "build"
    shop.assert_equal("by_product", BY_PRODUCT.format("(SELECT * FROM sales WHERE price > 50)"))


def test_empty_run_on_a_built_project_with_a_new_column(shop: Project) -> None:
    shop.run()
    before = shop.rows("by_product")
    shop.model("clean", f"select *, price * 2 as twice from {SOURCE} where price > 50")
    shop.model("by_product", "select product, sum(twice) as twice from {{ ref('clean') }} group by product")
    shop.model("more", "select count(twice) as n from {{ ref('by_product') }}")
    assert "VALIDATED" in shop.run("--empty").text
    assert shop.rows("by_product") == before
    shop.model("more", "select count(nothing) as n from {{ ref('by_product') }}")
    assert "nothing" in shop.fail("run", "--empty").error("more")
    shop.model("more", "select count(twice) as n from {{ ref('by_product') }}")
    shop.run()
    shop.assert_equal("by_product", "SELECT product, sum(price * 2) FROM sales WHERE price > 50 GROUP BY product")


def test_empty_run_shows_errors(shop: Project) -> None:
    shop.model("clean", f"select nothing from {SOURCE}")
    assert "nothing" in shop.fail("run", "--empty").error("clean")


def test_no_transactions_in_the_profile(shop: Project) -> None:
    """The profile's wish concerns dbt's own statements; a refresh is a transaction all the same."""
    shop.profile({"threads": 2, "disable_transactions": True})
    shop.run()
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    assert shop.run().strategy("by_product") == "incremental"
    shop.assert_equal("by_product", BY_PRODUCT.format("(SELECT * FROM sales WHERE price > 50)"))


def test_relation_cache_off(shop: Project) -> None:
    for _ in range(2):
        shop.run("--no-populate-cache")
        shop.assert_equal("by_product", BY_PRODUCT.format("(SELECT * FROM sales WHERE price > 50)"))
        shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")


def test_a_project_overrides_a_step(shop: Project) -> None:
    """A macro `openivm__ivm_merge` of the user's project is found by dispatch before ours."""
    shop.write(
        "macros/mine.sql",
        "{% macro openivm__ivm_merge(step) %}\n"
        "{{ exceptions.raise_compiler_error('mine, for ' ~ step.target) }}\n"
        "{% endmacro %}",
    )
    shop.run()
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    assert "mine, for" in shop.fail("run").error("by_product")


@pytest.mark.parametrize("kind", ["table", "incremental"])
def test_triggers_on_a_model_that_dbt_replaces(shop: Project, kind: str) -> None:
    """DuckDB refuses to rename a table with triggers, and dbt renames a table that it replaces."""
    if shop.query("SELECT 1 FROM duckdb_functions() WHERE function_name = 'duckdb_triggers'") == []:
        pytest.skip("triggers need DuckDB 2.0")
    query = f"select id, product, price, quantity from {SOURCE} where price > 50"
    shop.model("clean", query, materialized=kind, meta={"openivm": {"capture": "trigger"}})
    for number in range(3):
        shop.run("--full-refresh", "--select", "clean")
        shop.run("--select", "by_product")
        shop.assert_equal("by_product", BY_PRODUCT.format("(SELECT * FROM sales WHERE price > 50)"))
        shop.execute(f"INSERT INTO sales VALUES ({1000 + number}, 3, 500, 1)")

"""The operations: what they print, and what they change."""

from __future__ import annotations

import pytest

from tests.integration.project import Project

pytestmark = pytest.mark.integration


def test_operations_before_anything_was_built(shop: Project) -> None:
    assert "No ivm_view has been built" in shop.operation("ivm_status")
    assert "No ivm_view has been built" in shop.operation("ivm_history")
    assert "Nothing is left over" in shop.operation("ivm_gc")
    assert "Nothing is left over" in shop.operation("ivm_remove")


def test_status_shows_every_view(shop: Project) -> None:
    shop.run()
    text = shop.operation("ivm_status")
    rows = [line.split() for line in text.splitlines() if line.startswith("main.")]
    assert [row[:2] for row in rows] == [
        ["main.by_product", "AGGREGATE_GROUP"],
        ["main.clean", "SIMPLE_PROJECTION"],
        ["main.clean", "ivm_view"],
        ["main.sales", "diff"],
    ]
    assert rows[2][2:] == ["0", "main.by_product"], "what waits, and who reads it"
    assert rows[3][2:] == ["0", "main.clean"]
    assert_fits(text)


def assert_fits(text: str) -> None:
    assert max(map(len, text.splitlines())) <= 100


def test_history_newest_first(shop: Project) -> None:
    shop.run()
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    shop.run()
    text = shop.operation("ivm_history", model="by_product")
    assert_fits(text)
    assert "ms per step: merge the delta" in text
    lines = [line for line in text.splitlines() if "main.by_product" in line]
    assert "incremental" in lines[0]
    assert "build" in lines[1]
    assert len([x for x in shop.operation("ivm_history", limit=1).splitlines() if "main." in x]) == 1


def test_explain_needs_no_build(shop: Project) -> None:
    text = shop.operation("ivm_explain", model="clean")
    assert "SIMPLE_PROJECTION" in text
    shop.run()
    text = shop.operation("ivm_explain", model="by_product")
    assert "AGGREGATE_GROUP" in text
    assert "MERGE INTO" in text.upper()


def test_explain_names_the_construct(shop: Project) -> None:
    shop.model("sampled", "select id, random() as r from {{ source('src', 'sales') }}")
    text = shop.operation("ivm_explain", model="sampled")
    assert "FULL_REFRESH" in text
    assert "random" in text
    assert shop.query("SELECT * FROM information_schema.tables WHERE table_name = 'sampled'") == []


def test_explain_inlines_ephemeral_models(shop: Project) -> None:
    shop.model("temporary", "select product, price from {{ source('src', 'sales') }}", materialized="ephemeral")
    shop.model("over", "select product, sum(price) as p from {{ ref('temporary') }} group by product")
    assert "AGGREGATE_GROUP" in shop.operation("ivm_explain", model="over")


def test_unknown_model(shop: Project) -> None:
    run = shop.fail("run-operation", "ivm_explain", "--args", "{model: nope}")
    assert "There is no model named 'nope'" in run.text
    assert "by_product, clean" in run.text


def test_remove_everything(shop: Project) -> None:
    shop.run()
    text = shop.operation("ivm_remove")
    assert "would be removed:\n  view main.by_product\n  view main.clean\n  schema openivm with" in text
    assert_fits(text)
    assert shop.rows("by_product") != []
    shop.operation("ivm_remove", dry_run=False)
    left = shop.query(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_name NOT IN ('sales', 'products')"
    )
    assert left == []
    assert shop.query("SELECT schema_name FROM duckdb_schemas() WHERE schema_name LIKE 'openivm%'") == []
    assert shop.run().strategy("by_product") == "build"


def test_remove_leaves_what_users_put_into_our_schemas(shop: Project) -> None:
    shop.run()
    shop.execute("CREATE TABLE openivm_main.mine AS SELECT 1 AS a", "CREATE MACRO openivm.twice(a) AS a * 2")
    for dry_run in (True, False):
        text = shop.operation("ivm_remove", dry_run=dry_run)
        assert "Kept: schema openivm_main holds table mine, which dbt-openivm did not make." in text
        assert "Kept: schema openivm holds macro twice" in text
    assert shop.query("SELECT openivm.twice(a) FROM openivm_main.mine") == [(2,)]
    assert shop.query("SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, 'openivm_')") == []
    assert shop.run().strategy("by_product") == "build"


def test_gc_tells_a_switched_model_from_a_deleted_one(shop: Project) -> None:
    shop.run()
    shop.remove("by_product")
    shop.model("clean", "select 1 as id", materialized="table")
    shop.run()
    text = shop.operation("ivm_gc")
    assert "  view main.by_product: no model of project it makes it any more" in text
    assert "  view main.clean: its model is materialized as table now" in text
    shop.operation("ivm_gc", dry_run=False)
    assert shop.rows("clean") == [(1,)]
    assert "Nothing is left over" in shop.operation("ivm_gc")


def test_gc_leaves_the_views_of_other_projects_alone(shop: Project) -> None:
    shop.run()
    shop.execute("UPDATE openivm.openivm_views SET project = 'theirs' WHERE view_name = 'by_product'")
    shop.remove("by_product")
    text = shop.operation("ivm_gc", dry_run=False)
    assert "Nothing is left over" in text
    assert "main.by_product (project theirs)" in text
    assert "No model of this project" not in shop.run().text
    shop.operation("ivm_gc", dry_run=False, all_schemas=True)
    assert shop.query("SELECT view_name FROM openivm.openivm_views") == [("clean",)]


def test_stray_objects_are_cleared(shop: Project) -> None:
    shop.run()
    shop.execute("CREATE TABLE openivm_main.openivm_delta_nobody AS SELECT 1 AS a")
    assert "  table openivm_main.openivm_delta_nobody: belongs to nothing" in shop.operation("ivm_gc")
    shop.operation("ivm_gc", dry_run=False)
    assert "Nothing is left over" in shop.operation("ivm_gc")
    assert shop.run().strategy("by_product") == "none"

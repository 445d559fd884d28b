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
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("main.")}
    assert set(lines) == {"main.clean", "main.by_product"}
    assert "SIMPLE_PROJECTION" in lines["main.clean"]
    assert "main.by_product" in lines["main.clean"], "its consumer"
    assert "AGGREGATE_GROUP" in lines["main.by_product"]


def test_history_newest_first(shop: Project) -> None:
    shop.run()
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    shop.run()
    lines = [
        line for line in shop.operation("ivm_history", model="by_product").splitlines() if "main.by_product" in line
    ]
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
    assert "would be removed: view main.clean" in shop.operation("ivm_remove")
    assert shop.rows("by_product") != []
    shop.operation("ivm_remove", dry_run=False)
    left = shop.query(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_name NOT IN ('sales', 'products')"
    )
    assert left == []
    assert shop.query("SELECT schema_name FROM duckdb_schemas() WHERE schema_name LIKE 'openivm%'") == []
    assert shop.run().strategy("by_product") == "build"


def test_stray_objects_are_cleared(shop: Project) -> None:
    shop.run()
    shop.execute("CREATE TABLE openivm_main.openivm_delta_nobody AS SELECT 1 AS a")
    assert "table openivm_main.openivm_delta_nobody belongs to nothing" in shop.operation("ivm_gc")
    shop.operation("ivm_gc", dry_run=False)
    assert "Nothing is left over" in shop.operation("ivm_gc")
    assert shop.run().strategy("by_product") == "none"

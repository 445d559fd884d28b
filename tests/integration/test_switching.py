"""A model changes its materialization, name, schema or place in the chain; what it leaves behind can be cleared."""

from __future__ import annotations

import itertools

import pytest

from tests.integration.conftest import BY_PRODUCT
from tests.integration.project import Project

pytestmark = pytest.mark.integration

KINDS = ("ivm_view", "view", "table", "incremental")
QUERY = "SELECT id, product, price, quantity FROM sales WHERE price > 50"
CLEAN = "select id, product, price, quantity from {{ source('src', 'sales') }} where price > 50"
CHILD = BY_PRODUCT.format(f"({QUERY})")


@pytest.mark.parametrize(("before", "after"), [pair for pair in itertools.permutations(KINDS, 2) if "ivm_view" in pair])
def test_switch_there_and_back(shop: Project, before: str, after: str) -> None:
    """Its child, an ivm_view, is exact at every step."""
    for number, kind in enumerate((before, after, before)):
        shop.model("clean", CLEAN, materialized=kind)
        shop.execute(
            f"INSERT INTO sales VALUES ({1000 + number}, 3, 500, 1)", f"DELETE FROM sales WHERE id = {60 + number}"
        )
        arguments = ["--full-refresh"] if kind == "incremental" else []
        shop.run(*arguments)
        shop.assert_equal("clean", QUERY)
        shop.assert_equal("by_product", CHILD)
    shop.execute("INSERT INTO sales VALUES (2000, 4, 500, 1)")
    shop.run(*(["--full-refresh"] if before == "incremental" else []))
    shop.assert_equal("by_product", CHILD)


def test_switch_of_the_child(shop: Project) -> None:
    for kind in ("ivm_view", "table", "ivm_view", "view", "ivm_view"):
        shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"), materialized=kind)
        shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
        shop.run()
        shop.assert_equal("by_product", CHILD)


def test_a_failed_switch_keeps_the_table(shop: Project) -> None:
    shop.model("clean", CLEAN, materialized="table")
    shop.run("--select", "clean")
    shop.model("clean", "select id, error('no') as e from {{ source('src', 'sales') }}")
    shop.fail("run", "--select", "clean")
    shop.assert_equal("clean", QUERY)


def test_renamed_alias_and_schema_are_left_over(shop: Project) -> None:
    shop.run()
    shop.model("clean", CLEAN, alias="tidy")
    shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"), schema="mart")
    shop.run()
    shop.assert_equal("tidy", QUERY)
    shop.assert_equal("main_mart.by_product", CHILD)

    assert "No model of this project maintains main.by_product, main.clean" in shop.run().text
    listed = shop.operation("ivm_gc")
    assert "would be dropped:\n" in listed
    assert "  view main.clean: no model of project it makes it any more" in listed
    assert "dry run" in listed
    assert shop.query("SELECT count(*) FROM clean") != []
    done = shop.operation("ivm_gc", dry_run=False)
    assert "  view main.clean: no model" in done
    assert "  view main.by_product: no model" in done
    assert "Nothing is left over" in shop.operation("ivm_gc", dry_run=False)
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    assert shop.run().strategy("by_product") == "incremental"
    shop.assert_equal("tidy", QUERY)
    shop.assert_equal("main_mart.by_product", CHILD)


def test_views_of_another_project_are_not_left_over(shop: Project) -> None:
    shop.run()
    shop.profile({"schema": "other", "threads": 2})
    shop.run()
    listed = shop.operation("ivm_gc")
    assert "Nothing is left over" in listed
    assert "main.clean" in listed
    assert "view main.clean: no model" in shop.operation("ivm_gc", all_schemas=True)


def test_a_view_that_became_a_table_is_left_over(shop: Project) -> None:
    shop.run()
    shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"), materialized="table")
    shop.run()
    shop.operation("ivm_gc", dry_run=False)
    assert shop.query("SELECT view_name FROM openivm.openivm_views WHERE owner IS NULL") == [("clean",)]
    shop.assert_equal("by_product", CHILD)

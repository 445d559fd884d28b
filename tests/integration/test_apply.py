"""Apply strategies of models, and refreshes that run out of memory."""

from __future__ import annotations

import pytest

from tests.helpers import has_triggers
from tests.integration.conftest import BY_PRODUCT
from tests.integration.project import Project

pytestmark = pytest.mark.integration

SOURCE = "{{ source('src', 'sales') }}"
STEPS = "SELECT steps FROM openivm.openivm_refresh_history WHERE view_key LIKE '%by_product' ORDER BY started_at DESC"
CAPTURE = "trigger" if has_triggers() else "diff"


def test_another_strategy_takes_over_without_a_rebuild(shop: Project) -> None:
    shop.run("--select", "+by_product")
    labels = {"delete_insert": "insert the touched groups", "auto": "merge the delta"}
    for number, (strategy, label) in enumerate(labels.items()):
        shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"), apply_strategy=strategy)
        shop.execute(f"INSERT INTO sales VALUES ({1000 + number}, {number}, 500, 1)", "DELETE FROM sales WHERE id = 13")
        assert shop.run("--select", "+by_product").strategy("by_product") == "incremental"
        steps, *_ = shop.query(STEPS)[0]
        assert label in steps
        shop.assert_equal("by_product", BY_PRODUCT.format("(SELECT * FROM sales WHERE price > 50)"))
    assert shop.query("SELECT apply_strategy FROM openivm.openivm_views WHERE view_name = 'by_product'") == [("auto",)]


def test_an_unknown_strategy_names_the_model(shop: Project) -> None:
    shop.model("clean", f"select * from {SOURCE}", apply_strategy="delete-insert")
    message = shop.fail("run", "--select", "clean").error("clean")
    assert "The configuration of the ivm_view clean has problems" in message
    assert "apply_strategy: got 'delete-insert', expected one of auto, merge, update_insert_delete" in message
    assert "Did you mean delete_insert?" in message


@pytest.fixture
def large(project: Project) -> Project:
    project.execute("CREATE TABLE sales AS SELECT i::INTEGER AS k, (i % 100)::INTEGER AS x FROM range(300000) r(i)")
    project.sources("sales")
    project.model("all_sales", f"select k, x from {SOURCE}", capture=CAPTURE, refresh_mode="incremental")
    project.run()
    project.execute("DELETE FROM sales WHERE k % 2 = 0")
    project.profile({"threads": 1, "settings": {"memory_limit": "16MB", "threads": 2}})
    return project


def test_a_refresh_with_too_little_memory_recomputes(large: Project) -> None:
    response = large.run().response("all_sales")
    large.close()  # another connection may not have other settings
    assert response["strategy"] == "full"
    assert response["reason"].startswith("too little memory to apply the change (Out of Memory Error")
    large.assert_equal("all_sales", "SELECT k, x FROM sales")
    large.profile({"threads": 1})
    large.execute("DELETE FROM sales WHERE k % 3 = 0")
    assert large.run().strategy("all_sales") == "incremental"
    large.assert_equal("all_sales", "SELECT k, x FROM sales")


def test_what_a_hook_wrote_is_not_lost_for_a_second_way(large: Project) -> None:
    """It is in the transaction of the refresh: both fail together."""
    large.model(
        "all_sales", f"select k, x from {SOURCE}", refresh_mode="incremental", pre_hook="create table note as select 1"
    )
    assert "Out of Memory" in large.fail("run").error("all_sales")
    large.close()
    large.profile({"threads": 1})
    assert large.query("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'note'") == [(0,)]
    assert large.run().strategy("all_sales") == "incremental"
    large.assert_equal("all_sales", "SELECT k, x FROM sales")

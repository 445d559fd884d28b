"""An ivm_view from its first run on: build, refresh, nothing to do, rebuild; and what dbt shows of it."""

from __future__ import annotations

import json

import pytest

from tests.integration.conftest import BY_PRODUCT
from tests.integration.project import Project

pytestmark = pytest.mark.integration

CLEAN = "SELECT id, product, price, quantity FROM sales WHERE price > 50"
QUERY = BY_PRODUCT.format(f"({CLEAN})")


def test_first_run_builds_then_refreshes_then_does_nothing(shop: Project) -> None:
    first = shop.run()
    assert first.strategy("by_product") == "build"
    shop.assert_equal("by_product", QUERY)

    shop.execute(
        "INSERT INTO sales VALUES (1000, 3, 500, 1), (1001, NULL, 600, NULL)",
        "UPDATE sales SET price = 1, product = 2 WHERE id = 50",
        "DELETE FROM sales WHERE id BETWEEN 90 AND 95",
    )
    second = shop.run()
    assert second.strategy("clean") == "incremental"
    assert second.strategy("by_product") == "incremental"
    shop.assert_equal("clean", CLEAN)
    shop.assert_equal("by_product", QUERY)

    third = shop.run()
    assert third.strategy("clean") == "none"
    assert third.strategy("by_product") == "none"
    assert "no change" in third.text


def test_run_results_carry_what_happened(shop: Project) -> None:
    shop.run()
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    run = shop.run()
    response = run.response("by_product")
    assert response["refresh_type"] == "AGGREGATE_GROUP"
    assert response["delta_rows"] == 1
    assert response["changed_rows"] == 1
    assert response["refresh_ms"] > 0
    written = json.loads((shop.folder / "target/run_results.json").read_text())["results"]
    assert {"refresh_type", "strategy", "delta_rows", "changed_rows"} <= set(written[0]["adapter_response"])
    assert "AGGREGATE_GROUP incremental: 1 change in, 1 row changed in" in run.text


def test_full_refresh_rebuilds(shop: Project) -> None:
    shop.run()
    run = shop.run("--full-refresh")
    assert run.strategy("by_product") in {"build", "rebuild"}
    shop.assert_equal("by_product", QUERY)


def test_full_refresh_false_wins_over_the_flag(shop: Project) -> None:
    shop.model("clean", "select id from {{ source('src', 'sales') }}", full_refresh=False)
    shop.remove("by_product")
    shop.run()
    assert shop.run("--full-refresh").strategy("clean") == "none"


def test_changed_query_rebuilds_and_says_so(shop: Project) -> None:
    shop.run()
    shop.model("by_product", "select product, max(price) as top from {{ ref('clean') }} group by product")
    run = shop.run()
    assert run.strategy("clean") == "none"
    assert run.strategy("by_product") == "rebuild"
    assert "rebuilt" in run.text
    shop.assert_equal("by_product", f"SELECT product, max(price) AS top FROM ({CLEAN}) GROUP BY product")


def test_a_query_that_only_looks_different_does_not_rebuild(shop: Project) -> None:
    shop.run()
    shop.model(
        "clean", "SELECT id, product,\n price, quantity -- all\nFROM {{ source('src', 'sales') }} WHERE price > 50"
    )
    assert shop.run().strategy("clean") == "none"


def test_an_added_source_column_that_is_not_used_changes_nothing(shop: Project) -> None:
    shop.run()
    shop.execute("ALTER TABLE sales ADD COLUMN note VARCHAR")
    assert shop.run().strategy("clean") == "none"


def test_a_retyped_source_column_rebuilds(shop: Project) -> None:
    shop.run()
    shop.execute("ALTER TABLE sales ALTER price TYPE DOUBLE")
    run = shop.run()
    assert run.strategy("clean") == "rebuild"
    shop.assert_equal("by_product", QUERY)


def test_one_refresh_is_one_transaction(shop: Project) -> None:
    """A post-hook that fails inside the transaction takes the refresh back with it; the next run carries on."""
    shop.run()
    before = shop.rows("by_product")
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"), post_hook="select error('the hook failed')")
    run = shop.fail("run")
    assert "the hook failed" in run.error("by_product")
    assert shop.rows("by_product") == before
    shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"))
    shop.run()
    shop.assert_equal("by_product", QUERY)


@pytest.mark.parametrize("mode", ["auto", "incremental", "full"])
def test_refresh_modes_agree(shop: Project, mode: str) -> None:
    shop.config({"models": {"it": {"+refresh_mode": mode}}})
    shop.run()
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)", "DELETE FROM sales WHERE id = 60")
    run = shop.run()
    assert run.strategy("by_product") == ("full" if mode == "full" else "incremental")
    shop.assert_equal("by_product", QUERY)


def test_strict_refuses_a_query_that_only_refreshes_in_full(shop: Project) -> None:
    shop.model("sampled", "select id, random() as r from {{ source('src', 'sales') }}", refresh_mode="strict")
    assert "random" in shop.fail("run", "--select", "sampled").error("sampled")
    shop.model("sampled", "select id, random() as r from {{ source('src', 'sales') }}")
    run = shop.run("--select", "sampled")
    assert run.response("sampled")["refresh_type"] == "FULL_REFRESH"
    assert "random" in run.response("sampled")["reason"]


def test_retry_carries_on(shop: Project) -> None:
    shop.model("by_product", "select product, error('no') as e from {{ ref('clean') }}")
    assert shop.fail("run").of("clean").status == "success"
    shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"))
    run = shop.succeed("retry")
    assert [result.node.name for result in run.results] == ["by_product"]
    shop.assert_equal("by_product", QUERY)


def test_data_test_compares_with_the_query(shop: Project) -> None:
    shop.write("models/schema.yml", TESTED)
    run = shop.succeed("build")
    assert [result.status for result in run.results if result.node.resource_type == "test"] == ["pass", "pass"]
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    assert "Got 1 result" in shop.fail("test", "--select", "clean").text
    shop.run()
    shop.succeed("test")


def test_data_test_shows_rows_and_counts(shop: Project) -> None:
    shop.write("models/schema.yml", TESTED)
    shop.run()
    shop.execute("DELETE FROM sales WHERE id = 60")
    shop.fail("test", "--store-failures", "--select", "clean")
    failures = shop.query(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema LIKE '%audit'"
    )
    assert shop.query(f"SELECT id, rows_in_view, rows_in_query FROM {failures[0][0]}.{failures[0][1]}") == [(60, 1, 0)]


def test_data_test_allows_for_rounding_of_floats(project: Project) -> None:
    project.execute("CREATE TABLE m AS SELECT i % 3 AS g, i / 7.0::DOUBLE AS x FROM range(1000) r(i)")
    project.sources("m")
    project.model("sums", "select g, sum(x) as s, avg(x) as a from {{ source('src', 'm') }} group by g")
    project.write("models/schema.yml", "models: [{name: sums, data_tests: [ivm_equals_recompute]}]")
    project.run()
    project.execute("INSERT INTO m VALUES (1, 1e17)", "DELETE FROM m WHERE x < 0.5")
    project.run()
    project.succeed("test")
    project.execute("UPDATE m SET x = x + 1000 WHERE g = 2 AND x < 3")
    project.fail("test")


TESTED = """
models:
  - name: clean
    data_tests: [ivm_equals_recompute]
  - name: by_product
    data_tests: [ivm_equals_recompute]
"""


def test_show_compile_and_docs(shop: Project) -> None:
    shop.run()
    assert "total" in shop.succeed("show", "--select", "by_product").text
    assert "group by product" in shop.succeed("compile", "--select", "by_product").text
    shop.succeed("docs", "generate")
    catalog = json.loads((shop.folder / "target/catalog.json").read_text())
    columns = catalog["nodes"]["model.it.by_product"]["columns"]
    assert list(columns) == ["product", "n", "total", "quantity"]


def test_clone_into_another_schema(shop: Project) -> None:
    shop.run()
    shop.execute("CREATE SCHEMA IF NOT EXISTS copy")
    (shop.folder / "state").mkdir()
    (shop.folder / "state/manifest.json").write_text((shop.folder / "target/manifest.json").read_text())
    shop.profile({"schema": "copy", "threads": 2})
    shop.succeed("clone", "--state", str(shop.folder / "state"))
    shop.assert_equal("copy.by_product", QUERY)
    shop.run()
    shop.assert_equal("copy.by_product", QUERY)

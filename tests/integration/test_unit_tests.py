"""dbt's unit tests on ivm_views and over ivm_views, also on a fresh database."""

from __future__ import annotations

import pytest

from tests.integration.project import Project

pytestmark = pytest.mark.integration

UNIT_TESTS = """
unit_tests:
  - name: clean_filters
    model: clean
    given:
      - input: source('src', 'sales')
        rows: [{id: 1, price: 10}, {id: 2, price: 60}]
    expect:
      rows: [{id: 2, price: 60}]
  - name: by_product_sums
    model: by_product
    given:
      - input: ref('clean')
        rows: [{product: 1, price: 10}, {product: 1, price: 20}, {product: 2, price: 5}]
    expect:
      rows: [{product: 1, n: 2, total: 30}, {product: 2, n: 1, total: 5}]
"""


def test_on_a_built_project(shop: Project) -> None:
    shop.write("models/unit.yml", UNIT_TESTS)
    shop.run()
    before = shop.rows("by_product")
    assert len(shop.succeed("test").results) == 2
    assert shop.rows("by_product") == before


def test_on_a_fresh_database_with_build(shop: Project) -> None:
    shop.write("models/unit.yml", UNIT_TESTS)
    run = shop.succeed("build")
    assert {result.status for result in run.results} == {"pass", "success"}


def test_on_a_fresh_database_after_an_empty_run(shop: Project) -> None:
    shop.write("models/unit.yml", UNIT_TESTS)
    shop.run("--empty")
    assert len(shop.succeed("test").results) == 2


def test_a_wrong_expectation_fails(shop: Project) -> None:
    shop.write("models/unit.yml", UNIT_TESTS.replace("total: 30", "total: 31"))
    run = shop.fail("build")
    assert "31" in run.text

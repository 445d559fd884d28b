"""Bad input is a clear error that names model, construct and remedy, and nothing is lost."""

from __future__ import annotations

import pytest

from tests.integration.conftest import BY_PRODUCT
from tests.integration.project import Project

pytestmark = pytest.mark.integration

SOURCE = "{{ source('src', 'sales') }}"
QUERY = BY_PRODUCT.format("(SELECT * FROM sales WHERE price > 50)")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select frm where", ["clean"]),
        ("select id from nowhere.at_all", ["at_all"]),
        (f"select no_such_column from {SOURCE}", ["no_such_column"]),
        (f"select id as openivm_id from {SOURCE}", ["openivm_"]),
        (f"select id from {SOURCE}; select 2", ["clean"]),
        (f"delete from {SOURCE}", ["SELECT"]),
    ],
    ids=["syntax", "unknown source", "unknown column", "reserved name", "two statements", "no select"],
)
def test_query_is_refused_and_the_old_view_stays(shop: Project, sql: str, words: list[str]) -> None:
    shop.run()
    before = shop.rows("clean")
    shop.model("clean", sql)
    message = shop.fail("run", "--select", "clean").error("clean")
    for word in words:
        assert word in message
    assert "models/clean.sql" in message
    assert shop.rows("clean") == before
    assert shop.query("SELECT count(*) FROM sales") == [(100,)]


def test_dropped_column_is_an_error_and_nothing_is_lost(shop: Project) -> None:
    shop.run()
    before = shop.rows("by_product")
    shop.execute("ALTER TABLE sales DROP COLUMN quantity")
    message = shop.fail("run").error("clean")
    assert "quantity" in message
    assert shop.rows("by_product") == before
    shop.execute("ALTER TABLE sales ADD COLUMN quantity BIGINT")
    shop.run()
    shop.assert_equal("by_product", QUERY)


def test_dropped_source(shop: Project) -> None:
    shop.run()
    before = shop.rows("by_product")
    shop.execute("CREATE TABLE kept AS FROM sales", "DROP TABLE sales")
    message = shop.fail("run").error("clean")
    assert "sales" in message
    assert shop.rows("by_product") == before
    shop.execute("CREATE TABLE sales AS FROM kept WHERE id <> 60")
    shop.run()
    shop.assert_equal("by_product", QUERY)


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE openivm_main.openivm_data_by_product",
        "DELETE FROM openivm_main.openivm_data_by_product",
        "DROP VIEW openivm_main.openivm_visible_by_product",
        "DROP TABLE openivm_main.openivm_data_clean",
        "DROP VIEW by_product",
        "DROP SCHEMA openivm_main CASCADE",
        "DROP SCHEMA openivm CASCADE",
    ],
)
def test_damage_by_hand_is_repaired(shop: Project, damage: str) -> None:
    shop.run()
    shop.execute(damage, "INSERT INTO sales VALUES (1000, 3, 500, 1)")
    shop.run()
    shop.assert_equal("by_product", QUERY)
    shop.execute("INSERT INTO sales VALUES (1001, 3, 500, 1)")
    shop.run()
    shop.assert_equal("by_product", QUERY)


def test_read_only_database(shop: Project) -> None:
    other = shop.folder / "other.duckdb"
    import duckdb

    duckdb.connect(str(other)).close()
    shop.profile({"attach": [{"path": str(other), "alias": "frozen", "read_only": True}]})
    shop.config({"on-run-start": []})
    shop.model("there", f"select id from {SOURCE}", database="frozen")
    run = shop.fail("run", "--select", "there")
    assert "frozen" in run.text
    assert "read-only" in run.text


def test_numbers_that_overflow_leave_the_old_state(project: Project) -> None:
    project.execute("CREATE TABLE n (g INTEGER, x DECIMAL(38, 0))", "INSERT INTO n VALUES (1, 1)")
    project.sources("n")
    project.model("sums", "select g, sum(x) as s from {{ source('src', 'n') }} group by g")
    project.run()
    nines = "9" * 38
    project.execute(f"INSERT INTO n VALUES (1, {nines}), (1, {nines}), (1, {nines})")
    project.fail("run")
    assert project.rows("sums") == [(1, 1)]
    project.execute("DELETE FROM n WHERE x > 1")
    project.run()
    assert project.rows("sums") == [(1, 1)]

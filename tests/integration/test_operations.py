"""The operations: what they print, and what they change."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest

from tests.integration.project import Project
from tests.unit.self_run import run

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


def test_compile_knows_what_the_database_knows(shop: Project) -> None:
    """Schemas, sizes and enforced keys; the statements, run by hand, keep the model's view without dbt."""
    shop.execute(
        "CREATE TABLE people (id INTEGER PRIMARY KEY, name VARCHAR UNIQUE, code VARCHAR NOT NULL UNIQUE)",
        "CREATE TABLE visits (id INTEGER PRIMARY KEY, person INTEGER REFERENCES people (id), cost DECIMAL(8, 2))",
        "INSERT INTO people VALUES (1, NULL, 'a'), (2, 'b', 'b')",
        "INSERT INTO visits VALUES (10, 1, 5), (11, NULL, 6), (12, 2, 7)",
    )
    query = "select v.id, p.id as person, code, cost * 2 as cost from visits as v join people as p on v.person = p.id"
    shop.model("named", query)
    answer = compiled(
        shop, model="named", facts={"delta_shape": {"people": "insert_only"}, "unique_keys": {"visits": [["cost"]]}}
    )
    facts = answer["facts"]
    assert facts["view"] == answer["view"] == "warehouse.main.named"
    assert facts["schemas"]["warehouse.main.visits"] == {"id": "INTEGER", "person": "INTEGER", "cost": "DECIMAL(8,2)"}
    assert facts["unique_keys"]["warehouse.main.people"] == [["id"], ["code"]], "UNIQUE allows many NULLs"
    assert facts["unique_keys"]["visits"] == [["cost"]], "beside what the database knows"
    assert facts["unique_keys"]["warehouse.main.visits"] == [["id"]]
    assert [key["child_columns"] for key in facts["fk_relations"]] == [["person"]]
    assert facts["table_stats"]["warehouse.main.visits"] == {"rows": 3}
    statements = [s for s in answer["statements"] if s["phase"] == "refresh"]
    assert not any("openivm_delta_people" in s["sql"] for s in statements), "old visits have no new people"
    assert [s["sql"] for s in statements if s["kind"] == "delete" and "rowid" in s["sql"]] == []
    assert shop.query("SELECT view_name FROM duckdb_views() WHERE view_name LIKE '%named%'") == [], "changes nothing"
    with duckdb.connect(str(shop.path)) as connection:
        run(connection, answer["setup"])
        connection.execute("INSERT INTO people VALUES (3, 'c', 'c')")
        connection.execute("INSERT INTO openivm_delta_people VALUES (3, 'c', 'c', 1, NULL, NULL)")
        connection.execute("INSERT INTO visits VALUES (13, 3, 8)")
        connection.execute("DELETE FROM visits WHERE id = 10")
        connection.execute(
            "INSERT INTO openivm_delta_visits VALUES (13, 3, 8, 1, NULL, NULL), (10, 1, 5, -1, NULL, NULL)"
        )
        assert run(connection, answer["statements"]) == 2
    shop.assert_equal("named", f"({query})")


def compiled(shop: Project, **arguments: object) -> dict[str, Any]:
    text = shop.operation("ivm_compile", **arguments)
    found: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return found


def test_compile_reads_through_views_macros_and_parents(shop: Project) -> None:
    shop.execute("CREATE MACRO twice(a) AS a * 2", "CREATE VIEW dear AS SELECT * FROM sales WHERE price > 100")
    shop.model("over", "select product, sum(twice(price)) as p from dear group by product")
    shop.run()
    assert list(compiled(shop, model="over")["facts"]["schemas"]) == ["warehouse.main.sales"]
    parent = compiled(shop, model="by_product")
    assert list(parent["facts"]["schemas"]) == ["warehouse.main.clean"], "an ivm_view is a table with a log"
    shop.model("sampled", "select id, random() as r from {{ source('src', 'sales') }}")
    answer = compiled(shop, model="sampled")
    assert answer["refresh_type"] == {"code": 3, "name": "FULL_REFRESH"}
    assert "random" in answer["reason"]


def test_compile_refuses_wrong_facts(shop: Project) -> None:
    wrong: dict[str, Any] = {
        "facts.schemas: is told by the database": {"schemas": {}},
        "facts.delta_shape.z: a table that is not in facts.schemas": {"delta_shape": {"z": "odd", "sales": "empty"}},
        "facts: expected an object, got [1]": [1],
    }
    for message, facts in wrong.items():
        failed = shop.fail("run-operation", "ivm_compile", "--args", json.dumps({"model": "clean", "facts": facts}))
        assert message in failed.text
    shop.execute("COPY (SELECT 1 AS a) TO 'a.csv'".replace("a.csv", str(shop.folder / "a.csv")))
    shop.model("files", f"select a from read_csv('{shop.folder / 'a.csv'}')")
    failed = shop.fail("run-operation", "ivm_compile", "--args", "{model: files}")
    assert "Load it into a table first" in failed.text


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

"""Change feeds inside dbt: configuration, operations, and what becomes of consumers when models change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.conftest import BY_PRODUCT
from tests.integration.project import Project

pytestmark = pytest.mark.integration

CLEAN = "select id, product, price, quantity from {{ source('src', 'sales') }} where price > 50"
MODEL = BY_PRODUCT.format("{{ ref('clean') }}")


@pytest.fixture
def fed(shop: Project) -> Project:
    shop.model("by_product", MODEL, change_feed=True, change_feed_retention="2 days")
    shop.run()
    return shop


def operation(project: Project, name: str, **arguments: Any) -> str:
    return project.operation(f"ivm_{name}", model="by_product", consumer="search", **arguments)


def changes(project: Project) -> tuple[str, int]:
    """The SELECT that is printed, and the batch to acknowledge."""
    text = operation(project, "changes")
    head, sql = text[text.index("-- ") :].split("\n", 1)
    return sql, int(head.split("batch ")[-1].split(",")[0])


def apply(project: Project, copy: str) -> int:
    sql, batch = changes(project)
    columns = "* EXCLUDE (openivm_multiplicity, openivm_batch, openivm_timestamp)"
    project.execute(
        f"CREATE TABLE IF NOT EXISTS {copy} AS FROM by_product LIMIT 0",
        f"CREATE OR REPLACE TABLE read AS {sql}",
        f"INSERT INTO {copy} SELECT {columns} FROM read WHERE openivm_multiplicity > 0",
        f"CREATE OR REPLACE TABLE {copy} AS FROM {copy} EXCEPT ALL "
        f"SELECT {columns} FROM read WHERE openivm_multiplicity < 0",
    )
    project.assert_equal(copy, "FROM by_product")
    return batch


def test_a_consumer_follows_a_model(fed: Project) -> None:
    """Over runs, a full refresh, and the time as another materialization; nothing is lost."""
    assert "keeps its changes for 2 days, and has no consumer" in fed.operation("ivm_consumers")
    assert "reads with the whole view" in operation(fed, "register_consumer", snapshot=True)
    batch = apply(fed, "copy")
    assert f"up to batch {batch}; nothing waiting" in operation(fed, "acknowledge", batch=batch)
    fed.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    fed.run()
    fed.execute("DELETE FROM sales WHERE id = 1000", "INSERT INTO sales VALUES (1001, 77, 500, 1)")
    fed.run("--full-refresh")
    fed.model("by_product", MODEL, materialized="table")
    fed.execute("INSERT INTO sales VALUES (1002, 78, 500, 1)")
    fed.run()
    assert "is read by search" in fed.operation("ivm_gc", dry_run=False)
    fed.model("by_product", MODEL, change_feed=True)
    fed.execute("INSERT INTO sales VALUES (1003, 79, 500, 1)")
    fed.run()
    lines = [line.split() for line in fed.operation("ivm_consumers").splitlines() if line.startswith("main.")]
    assert len(lines) == 1
    assert lines[0][:2] == ["main.by_product", "search"]
    assert int(lines[0][4]) == 3, lines
    batch = apply(fed, "copy")
    operation(fed, "acknowledge", batch=batch)
    assert "is no consumer of main.by_product any more" in operation(fed, "unregister_consumer")


def test_a_renamed_model_keeps_its_consumers(fed: Project) -> None:
    """The old view stays, and says why, until its consumers have left."""
    operation(fed, "register_consumer")
    fed.remove("by_product")
    fed.model("renamed", MODEL, change_feed=True)
    fed.run()
    text = fed.operation("ivm_gc", dry_run=False)
    assert "Kept: view main.by_product has no model, but is read by search" in text
    assert operation(fed, "unregister_consumer")
    assert "view main.by_product: no model" in fed.operation("ivm_gc", dry_run=False)
    assert fed.query("SELECT table_name FROM duckdb_tables() WHERE table_name = 'openivm_delta_by_product'") == []


def test_other_columns_are_told(fed: Project) -> None:
    operation(fed, "register_consumer")
    fed.model("by_product", "select product, count(*) as n from {{ ref('clean') }} group by product", change_feed=True)
    fed.run()
    text = fed.operation("ivm_consumers")
    assert "missed changes" in text
    assert "register it again with a snapshot" in " ".join(text.split())
    for name, more in (("changes", ""), ("acknowledge", ", batch: 1")):
        arguments = f"{{model: by_product, consumer: search{more}}}"
        run = fed.fail("run-operation", f"ivm_{name}", "--args", arguments)
        assert "has missed changes" in run.text + str(run.exception)


def test_configuration_is_checked(shop: Project) -> None:
    shop.model("by_product", MODEL, change_feed="yes", change_feed_retention="a while")
    error = shop.fail("run", "--select", "by_product").error("by_product")
    assert "change_feed: got 'yes', expected true or false" in error
    assert "change_feed_retention: got 'a while', expected an interval such as '7 days'" in error
    text = shop.fail("run-operation", "ivm_acknowledge", "--args", "{model: nothing, consumer: a, batch: 1}")
    assert "There is no ivm_view 'nothing'" in text.text + str(text.exception)

"""What dbt-duckdb offers works beside ivm_views, and as their sources."""

from __future__ import annotations

import duckdb
import pytest

from tests.integration.project import Project

pytestmark = pytest.mark.integration


def test_seeds_snapshots_incremental_and_python_models_as_sources(project: Project) -> None:
    project.write("seeds/rates.csv", "currency,rate\nEUR,1.1\nGBP,1.3\n")
    project.write(
        "models/py.py",
        "def model(dbt, session):\n    dbt.config(materialized='table')\n    return dbt.ref('rates').df()\n",
    )
    project.model(
        "inc", "select * from {{ ref('rates') }} where rate > 1", materialized="incremental", unique_key="currency"
    )
    project.write(
        "snapshots/snap.yml",
        "snapshots: [{name: snap, relation: ref('rates'), "
        "config: {unique_key: currency, strategy: check, check_cols: all}}]",
    )
    project.model(
        "all_of_them",
        """select r.currency, r.rate, p.rate as py, i.rate as inc, s.rate as snap
           from {{ ref('rates') }} r join {{ ref('py') }} p using (currency) join {{ ref('inc') }} i using (currency)
           join {{ ref('snap') }} s on s.currency = r.currency and s.dbt_valid_to is null""",
    )
    project.succeed("build")
    query = (
        "(select r.currency, r.rate, p.rate as py, i.rate as inc, s.rate as snap from rates r "
        "join py p using (currency) join inc i using (currency) "
        "join snap s on s.currency = r.currency and s.dbt_valid_to is null)"
    )
    project.assert_equal("all_of_them", query)
    project.write("seeds/rates.csv", "currency,rate\nEUR,1.2\nGBP,1.3\nCHF,1.4\n")
    project.succeed("build")
    project.assert_equal("all_of_them", query)
    assert len(project.rows("all_of_them")) == 3


def test_external_sources_and_models(project: Project) -> None:
    data = project.folder / "data.parquet"
    duckdb.sql("SELECT i AS id, i % 3 AS g FROM range(20) r(i)").write_parquet(str(data))
    project.write(
        "models/sources.yml",
        f"sources: [{{name: files, tables: [{{name: data, meta: {{external_location: \"'{data}'\"}}}}]}}]",
    )
    project.model("grouped", "select g, count(*) as n from {{ source('files', 'data') }} group by g")
    project.model(
        "written",
        "select * from {{ ref('grouped') }}",
        materialized="external",
        location=str(project.folder / "out.parquet"),
    )
    project.run()
    duckdb.sql("SELECT i AS id, i % 4 AS g FROM range(30) r(i)").write_parquet(str(data))
    project.run()
    project.assert_equal("grouped", f"(SELECT g, count(*) AS n FROM '{data}' GROUP BY g)")
    project.assert_equal("written", f"(SELECT g, count(*) AS n FROM '{data}' GROUP BY g)")


def test_attached_databases(project: Project) -> None:
    """Sources in one attached database, and a view in another."""
    folder = project.folder
    with duckdb.connect(str(folder / "raw.duckdb")) as connection:
        connection.execute("CREATE TABLE events AS SELECT i AS id, i % 3 AS g FROM range(20) r(i)")
    duckdb.connect(str(folder / "hyphen-mart.duckdb")).close()
    attach = [
        {"path": str(folder / "raw.duckdb"), "alias": "raw", "read_only": True},
        {"path": str(folder / "hyphen-mart.duckdb"), "alias": "mart"},
    ]
    project.profile({"threads": 2, "attach": attach})
    project.write("models/sources.yml", "sources: [{name: raw, database: raw, schema: main, tables: [{name: events}]}]")
    project.model("here", "select g, count(*) as n from {{ source('raw', 'events') }} group by g")
    project.model("there", "select g, sum(id) as s from {{ source('raw', 'events') }} group by g", database="mart")
    project.model("across", "select here.g, n, s from {{ ref('here') }} here join {{ ref('there') }} there using (g)")
    project.run()
    project.close()
    with duckdb.connect(str(folder / "raw.duckdb")) as connection:
        connection.execute("INSERT INTO events VALUES (100, 1), (101, 5)")
        expected = connection.execute("SELECT g, count(*), sum(id) FROM events GROUP BY g ORDER BY g").fetchall()
    run = project.run()
    assert run.strategy("here") == "incremental"
    assert run.strategy("there") == "incremental"
    assert project.query("SELECT * FROM across ORDER BY ALL") == expected
    text = project.operation("ivm_status")
    assert "main.here" in text
    assert "main.there" in text


def test_plugin_source(project: Project) -> None:
    project.write("plug.py", PLUGIN)
    project.profile({"threads": 2, "module_paths": [str(project.folder)], "plugins": [{"module": "plug"}]})
    project.write(
        "models/sources.yml", "sources: [{name: p, tables: [{name: numbers, meta: {plugin: plug, count: 5}}]}]"
    )
    project.model("doubled", "select x * 2 as y from {{ source('p', 'numbers') }}")
    project.run()
    assert project.rows("doubled") == [(0,), (2,), (4,), (6,), (8,)]


PLUGIN = """
import pandas
from dbt.adapters.duckdb.plugins import BasePlugin

class Plugin(BasePlugin):
    def load(self, source_config):
        return pandas.DataFrame({"x": range(int(source_config["count"]))})
"""


def test_debug_names_the_adapter(project: Project) -> None:
    text = project.succeed("debug").text
    assert "adapter type: openivm" in text
    assert "OK connection ok" in text

"""The configuration of a model is checked in one go."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_openivm.adapter.config import ViewConfig, misspelt, relation_key, source_captures, view_config
from dbt_openivm.errors import ConfigError

DEFAULTS = {"on_schema_change": "ignore", "lookback": 1, "unique_key": None}


def node(**config: Any) -> dict[str, Any]:
    return {"name": "mv", "config": {**DEFAULTS, **config}, "constraints": [], "columns": {}}


def test_defaults() -> None:
    assert view_config(node()) == ViewConfig("auto", "diff")


def test_settings_are_taken() -> None:
    assert view_config(node(refresh_mode="strict", capture="trigger")) == ViewConfig("strict", "trigger")
    assert view_config(node(apply_strategy="merge")) == ViewConfig("auto", "diff", "merge")


def test_companion_rows() -> None:
    config = view_config(node(force_view_delta_cascade=True, openivm_skip_empty_deltas=False))
    assert config == ViewConfig("auto", "diff", force_view_delta_cascade=True)
    with pytest.raises(ConfigError, match="openivm_skip_empty_deltas: got 'yes', expected true or false"):
        view_config(node(openivm_skip_empty_deltas="yes"))


def test_every_problem_is_named() -> None:
    bad = node(
        refresh_mode=3, capture="x", apply_strategy="merg", unique_key="id", partition_by=["a"], on_schema_change="fail"
    )
    bad["constraints"] = [{"type": "primary_key"}]
    bad["columns"] = {"a": {"constraints": [{"type": "not_null"}, {"type": "check", "warn_unenforced": False}]}}
    with pytest.raises(ConfigError) as error:
        view_config(bad)
    assert str(error.value).startswith("The configuration of the ivm_view mv has problems:")
    assert "expected one of auto, merge, update_insert_delete, delete_insert. Did you mean merge?" in str(error.value)
    lines = [line for line in str(error.value).splitlines() if line.startswith("- ")]
    assert [line.split(":")[0] for line in lines] == [
        "- refresh_mode",
        "- capture",
        "- apply_strategy",
        "- unique_key",
        "- on_schema_change",
        "- partition_by",
        "- constraint primary_key",
        "- constraint not_null of column a",
    ]


def test_captures_come_from_tables_sources_and_models() -> None:
    where = {"database": "DB", "schema": "Raw", "resource_type": "source"}
    graph = {
        "sources": {
            "a": {**where, "identifier": "Orders", "meta": {"openivm": {"capture": "trigger"}}},
            "b": {**where, "identifier": "items", "source_meta": {"openivm": {"capture": "diff"}}},
            "c": {**where, "identifier": "plain", "meta": {"owner": "me"}},
        },
        "nodes": {"m": {**where, "alias": "M", "config": {"meta": {"openivm": {"capture": "trigger"}}}}},
    }
    assert source_captures(graph) == {"db.raw.orders": "trigger", "db.raw.items": "diff", "db.raw.m": "trigger"}


def test_unknown_settings_of_sources_are_one_error() -> None:
    graph = {
        "sources": {
            "a": {"unique_id": "source.p.a", "meta": {"openivm": {"captur": "trigger"}}},
            "b": {"unique_id": "source.p.b", "meta": {"openivm": "trigger"}},
            "c": {"unique_id": "source.p.c", "config": {"meta": {"openivm": {"capture": "triger"}}}},
            "d": {"unique_id": "source.p.d", "meta": {"openivm": {"speed": "high", "refresh_mode": "full"}}},
        }
    }
    with pytest.raises(ConfigError) as error:
        source_captures(graph)
    assert str(error.value).splitlines()[1:] == [
        "- source.p.a: there is no setting 'captur'. Did you mean capture?",
        "- source.p.b: got 'trigger', expected settings such as {capture: trigger}.",
        "- source.p.c: capture: got 'triger', expected one of diff, trigger. Did you mean trigger?",
        "- source.p.d: there is no setting 'speed'. Known: capture.",
        "- source.p.d: refresh_mode is a config of the model itself, not a setting under meta.openivm.",
    ]


def test_what_looks_misspelt_is_told() -> None:
    graph = {
        "sources": {"a": {"unique_id": "source.p.a", "meta": {"openvim": {"capture": "trigger"}, "owner": "me"}}},
        "nodes": {
            "m": {"unique_id": "model.p.m", "config": {"materialized": "ivm_view", "refreshmode": "full", "tags": []}},
            "s": {"unique_id": "seed.p.s", "resource_type": "seed", "config": {"capture": "trigger"}},
            "t": {"unique_id": "model.p.t", "resource_type": "model", "config": {"refreshmode": 1, "capture": "diff"}},
        },
    }
    assert list(misspelt(graph)) == [
        "source.p.a: meta.openvim is not read. Did you mean meta.openivm?",
        "model.p.m: the config refreshmode is not read. Did you mean refresh_mode?",
        "seed.p.s: the config capture is not read here. Did you mean meta: {openivm: {capture: trigger}}?",
    ]


def test_relation_key_prefers_the_alias() -> None:
    assert relation_key({"database": "D", "schema": "s", "alias": "Short", "name": "long"}) == "d.s.short"


def test_change_feeds() -> None:
    assert view_config(node()).change_feed is None
    assert view_config(node(change_feed=True)).change_feed == "7 days"
    for retention in ("1 month 12 hours", "forever"):
        assert view_config(node(change_feed=True, change_feed_retention=retention)).change_feed == retention
    with pytest.raises(ConfigError, match="change_feed_retention: does nothing without change_feed: true"):
        view_config(node(change_feed_retention="7 days"))
    with pytest.raises(ConfigError, match=r"change_feed_retention: got 7, expected an interval such as '7 days'"):
        view_config(node(change_feed=True, change_feed_retention=7))

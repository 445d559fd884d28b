"""The configuration of an ivm_view model, checked here: dbt accepts unknown keys and wrong types without a word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.duckdb.impl import DuckDBConfig

from dbt_openivm.choices import APPLY_STRATEGIES, RETENTION, RETENTION_EXPECTED, is_retention
from dbt_openivm.engine.types import CAPTURES, REFRESH_MODES
from dbt_openivm.errors import ConfigError

#: Settings of other materializations. dbt would ignore them, and their author would believe that they do something.
NOT_NEEDED = {
    "unique_key": "changed rows are found from the change of the sources",
    "incremental_strategy": "the query decides how its view is maintained",
    "incremental_predicates": "only what changed is read anyway",
    "predicates": "only what changed is read anyway",
    "on_schema_change": "a changed query rebuilds the view by itself",
    "merge_update_columns": "the view always equals its query",
    "merge_exclude_columns": "the view always equals its query",
    "merge_clauses": "the view always equals its query",
    "merge_on_using_columns": "the view always equals its query",
    "lookback": "late changes are found by themselves",
    "batch_size": "a refresh reads the changes of all times at once",
    "begin": "a refresh reads the changes of all times at once",
    "concurrent_batches": "a refresh reads the changes of all times at once",
    "partition_by": "it belongs to tables; the state of a view is laid out by dbt-openivm",
    "partitioned_by": "it belongs to tables; the state of a view is laid out by dbt-openivm",
    "sort_by": "it belongs to tables; the state of a view is laid out by dbt-openivm",
    "sorted_by": "it belongs to tables; the state of a view is laid out by dbt-openivm",
    "indexes": "it belongs to tables; what users query is a view",
    "location": "it belongs to `external` models",
    "format": "it belongs to `external` models",
}

#: Configs of an ivm_view that are ours, and settings under meta.openivm of what it reads.
SWITCHES = ("force_view_delta_cascade", "openivm_skip_empty_deltas", "change_feed")
MODEL_SETTINGS = ("refresh_mode", "capture", "apply_strategy", "change_feed_retention", *SWITCHES)
SOURCE_SETTINGS = ("capture",)

#: How much alike two words must be for one to be taken for the other, misspelt.
CLOSE = 0.7

#: What dbt itself puts into every model's configuration.
DBT_DEFAULTS = {"on_schema_change": "ignore", "lookback": 1}


@dataclass
class OpenIvmConfig(DuckDBConfig):
    """What a model may set besides dbt-duckdb's settings.

    Attributes:
        refresh_mode: auto (by cost), incremental (whenever the query allows), strict (an error instead of a full
            refresh), full.
        capture: how changes of this model's sources are found, where a source does not say so itself: diff, trigger.
        apply_strategy: how the state of a grouped aggregate takes its change: auto, merge, update_insert_delete,
            delete_insert.
        force_view_delta_cascade: keep the companion rows of the last refresh, whether or not a consumer is registered.
        openivm_skip_empty_deltas: add companion rows up by tuple, so that an unchanged result leaves none.
        change_feed: keep the changes of the view readable, net, for each refresh.
        change_feed_retention: for how long at most, such as '7 days' (the default) or 'forever'.
    """

    refresh_mode: str | None = None
    capture: str | None = None
    apply_strategy: str | None = None
    force_view_delta_cascade: bool | None = None
    openivm_skip_empty_deltas: bool | None = None
    change_feed: bool | None = None
    change_feed_retention: str | None = None


@dataclass(frozen=True)
class ViewConfig:
    """The checked settings of one ivm_view.

    Attributes:
        change_feed: how long its changes are kept, None for no change feed.
    """

    refresh_mode: str
    capture: str
    apply_strategy: str = "auto"
    force_view_delta_cascade: bool = False
    skip_empty_deltas: bool = False
    change_feed: str | None = None


def view_config(node: Mapping[str, Any]) -> ViewConfig:
    """Check the configuration of an ivm_view's node.

    Raises:
        ConfigError: with every problem found.
    """
    problems = [*_choices(node), *_switches(node), *_retention(node), *_not_needed(node), *_constraints(node)]
    if problems:
        head = f"The configuration of the ivm_view {node['name']} has problems:"
        raise ConfigError("\n".join([head, *(f"- {p}" for p in problems)]))
    config = node["config"]
    forced, skipped, fed = (bool(config.get(key)) for key in SWITCHES)
    return ViewConfig(
        config.get("refresh_mode") or "auto",
        config.get("capture") or "diff",
        config.get("apply_strategy") or "auto",
        forced,
        skipped,
        (config.get("change_feed_retention") or RETENTION) if fed else None,
    )


def _choices(node: Mapping[str, Any]) -> Iterator[str]:
    settings = (("refresh_mode", REFRESH_MODES), ("capture", CAPTURES), ("apply_strategy", APPLY_STRATEGIES))
    for key, allowed in settings:
        value = node["config"].get(key)
        if value is not None and value not in allowed:
            yield f"{key}: got {value!r}, expected one of {', '.join(allowed)}.{_did_you_mean(value, allowed)}"


def _switches(node: Mapping[str, Any]) -> Iterator[str]:
    for key in SWITCHES:
        value = node["config"].get(key)
        if value is not None and not isinstance(value, bool):
            yield f"{key}: got {value!r}, expected true or false."


def _retention(node: Mapping[str, Any]) -> Iterator[str]:
    value = node["config"].get("change_feed_retention")
    if value is None:
        return
    if not is_retention(value):
        yield f"change_feed_retention: got {value!r}, expected {RETENTION_EXPECTED}."
    if not node["config"].get("change_feed"):
        yield "change_feed_retention: does nothing without change_feed: true. Set that, or remove this."


def _not_needed(node: Mapping[str, Any]) -> Iterator[str]:
    for key, why in NOT_NEEDED.items():
        value = node["config"].get(key)
        if value and value != DBT_DEFAULTS.get(key):
            yield f"{key}: not needed on an ivm_view: {why}. Remove it."


def _constraints(node: Mapping[str, Any]) -> Iterator[str]:
    """Constraints that nothing would enforce, unless their author said that this is known."""
    for constraint in node.get("constraints") or []:
        if constraint.get("warn_unenforced", True):
            yield _unenforced(f"constraint {_kind(constraint)}")
    for name, column in (node.get("columns") or {}).items():
        for constraint in column.get("constraints") or []:
            if constraint.get("warn_unenforced", True):
                yield _unenforced(f"constraint {_kind(constraint)} of column {name}")


def _kind(constraint: Mapping[str, Any]) -> str:
    kind = constraint["type"]
    return str(getattr(kind, "value", kind))


def _unenforced(what: str) -> str:
    return (
        f"{what}: DuckDB enforces constraints on tables only, and what users query here is a view. "
        "Use a data test, or set `warn_unenforced: false` on it to keep it as documentation."
    )


def source_captures(graph: Mapping[str, Any]) -> dict[str, str]:
    """The capture of every relation of a project that sets one: `database.schema.name` in lower case -> capture.

    It stands under `meta: {openivm: {capture: trigger}}` of a source table, seed, snapshot or model.

    Raises:
        ConfigError: with every unknown setting and capture found.
    """
    captures: dict[str, str] = {}
    problems: list[str] = []
    for node in _nodes(graph):
        settings = _settings(node)
        if not isinstance(settings, Mapping):
            problems.append(f"- {node['unique_id']}: got {settings!r}, expected settings such as {{capture: trigger}}.")
            continue
        problems += [f"- {node['unique_id']}: {_unknown(key)}" for key in settings if key not in SOURCE_SETTINGS]
        capture = settings.get("capture")
        if capture is not None and capture not in CAPTURES:
            expected = f"expected one of {', '.join(CAPTURES)}.{_did_you_mean(capture, CAPTURES)}"
            problems.append(f"- {node['unique_id']}: capture: got {capture!r}, {expected}")
        elif capture is not None:
            captures[relation_key(node)] = capture
    if problems:
        raise ConfigError("\n".join(["The settings under meta.openivm have problems:", *problems]))
    return captures


def misspelt(graph: Mapping[str, Any]) -> Iterator[str]:
    """Settings that look like ours, but are read by nobody; they may be somebody else's, so that this is no error."""
    for node in _nodes(graph):
        for key in {key for meta in _metas(node) for key in meta if key != "openivm"}:
            if difflib.get_close_matches(str(key).lower(), ["openivm", "dbt_openivm"], 1, CLOSE):
                yield f"{node['unique_id']}: meta.{key} is not read. Did you mean meta.openivm?"
        config = node.get("config", {})
        if config.get("materialized") == "ivm_view":
            for key in config:
                if key not in MODEL_SETTINGS and (hint := _did_you_mean(key, MODEL_SETTINGS)):
                    yield f"{node['unique_id']}: the config {key} is not read.{hint}"
        elif node.get("resource_type") in ("source", "seed", "snapshot") and config.get("capture") is not None:
            yield (
                f"{node['unique_id']}: the config capture is not read here. "
                f"Did you mean meta: {{openivm: {{capture: {config['capture']}}}}}?"
            )


def _nodes(graph: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*graph.get("sources", {}).values(), *graph.get("nodes", {}).values()]


def _metas(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Everywhere that dbt keeps meta, the most specific first."""
    metas = (node.get("config", {}).get("meta"), node.get("meta"), node.get("source_meta"))
    return [meta for meta in metas if isinstance(meta, Mapping)]


def _settings(node: Mapping[str, Any]) -> Any:
    return next((meta["openivm"] for meta in _metas(node) if meta.get("openivm") is not None), {})


def _unknown(key: Any) -> str:
    if key in MODEL_SETTINGS:
        return f"{key} is a config of the model itself, not a setting under meta.openivm."
    hint = _did_you_mean(key, SOURCE_SETTINGS) or f" Known: {', '.join(SOURCE_SETTINGS)}."
    return f"there is no setting {key!r}.{hint}"


def _did_you_mean(word: Any, known: Iterable[str]) -> str:
    """`` Did you mean capture?``, or nothing where no known word is close."""
    close = difflib.get_close_matches(str(word).lower(), list(known), 1, CLOSE)
    return f" Did you mean {close[0]}?" if close else ""


def relation_key(node: Mapping[str, Any]) -> str:
    """The relation of a node or source as the catalog's keys spell it."""
    name = node.get("identifier") or node.get("alias") or node["name"]
    return f"{node['database']}.{node['schema']}.{name}".lower()

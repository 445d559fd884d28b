"""What the operations (`dbt run-operation ivm_...`) and the generic test ask of the engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any

from dbt_openivm.adapter import feeds
from dbt_openivm.adapter.config import relation_key
from dbt_openivm.adapter.places import LINE, locator
from dbt_openivm.adapter.refresh import Context, Refresher, project_scope, relation_name
from dbt_openivm.engine import garbage, report
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.errors import ConfigError

if TYPE_CHECKING:
    from dbt_openivm.adapter.impl import OpenIvmAdapter


def is_limited_run(config: Any) -> bool:
    args = config.args
    return bool(getattr(args, "EMPTY", False)) or getattr(args, "sample", None) is not None


def is_maintained(refresher: Refresher, relation: Any) -> bool:
    name = relation_name(relation)
    return report.Reader(refresher.session, name.database).user_view(name.key) is not None


def definition(refresher: Refresher, relation: Any, limited: bool) -> str:
    """The query that a view must equal; itself where `--empty` or `--sample` leave maintained state alone."""
    name = relation_name(relation)
    view = report.Reader(refresher.session, name.database).user_view(name.key)
    if limited:
        return f"select * from {relation}"
    if view is None:
        raise ConfigError(
            f"{name} is not a maintained view. ivm_equals_recompute compares models of materialization "
            "ivm_view that have been built: run the model first."
        )
    return view.definition


def trigger_drops(refresher: Refresher, relation: Any) -> list[str]:
    name = relation_name(relation)
    triggers = garbage.triggers(refresher.session, name.database)
    return [trigger.drop_sql for trigger in triggers if trigger.name.key == name.key]


FEEDS: Mapping[str, Callable[..., str]] = {
    "register": feeds.register,
    "changes": feeds.changes,
    "acknowledge": feeds.acknowledge,
    "unregister": feeds.unregister,
}


def run(name: str, adapter: OpenIvmAdapter, context: Context, arguments: Mapping[str, Any]) -> str:
    """Run an operation and return its text.

    Raises:
        ConfigError: an argument is wrong.
    """
    operations: dict[str, Callable[..., str]] = {
        "status": _status,
        "history": _history,
        "explain": _explain,
        "compile": _compile,
        "gc": _gc,
        "remove": _remove,
        "consumers": _consumers,
    }
    if name in FEEDS:
        return FEEDS[name](adapter.refresher, context, **arguments)
    return operations[name](adapter, context, **arguments)


def _status(adapter: OpenIvmAdapter, context: Context) -> str:
    locate = _locate(adapter, context)
    return _per_database(adapter, context, lambda database: report.status(adapter.refresher.session, database, locate))


def _history(adapter: OpenIvmAdapter, context: Context, model: str | None, limit: int) -> str:
    if not isinstance(limit, int) or limit < 1:
        raise ConfigError(f"ivm_history: limit is {limit!r}, expected a whole number above zero.")
    session, locate = adapter.refresher.session, _locate(adapter, context)
    if model is None:
        return _per_database(adapter, context, lambda database: report.history(session, database, None, limit, locate))
    node = _find(context, model)
    return report.history(session, node["database"], relation_key(node), limit, locate)


def _locate(adapter: OpenIvmAdapter, context: Context) -> report.Locate:
    """Finds places in the files of the project's models, which it compiles only where a reason names a line."""
    nodes = {relation_key(n): n for n in context["graph"]["nodes"].values() if n["resource_type"] == "model"}

    @cache
    def locator_of(key: str) -> Callable[[str], str]:
        return locator(_compiled(adapter, nodes[key]), adapter.config.project_root) if key in nodes else str

    return lambda key, reason: locator_of(key)(reason) if LINE.search(reason) else reason


def _explain(adapter: OpenIvmAdapter, context: Context, model: str) -> str:
    spec = _spec(adapter, context, model)
    text: str = adapter.refresher.maintainer(spec.name.database, context).explain(spec)
    return text


def _compile(adapter: OpenIvmAdapter, context: Context, model: str, facts: Mapping[str, Any] | None) -> str:
    spec = _spec(adapter, context, model)
    maintainer = adapter.refresher.maintainer(spec.name.database, context)
    answer = maintainer.compile(spec, {} if facts is None else facts)
    return json.dumps(answer, indent=2, ensure_ascii=False)


def _spec(adapter: OpenIvmAdapter, context: Context, model: str) -> ViewSpec:
    node = _compiled(adapter, _find(context, model))
    relation = adapter.Relation.create(database=node["database"], schema=node["schema"], identifier=node["alias"])
    return adapter.refresher.spec({**context, "model": node, "this": relation})


def _gc(adapter: OpenIvmAdapter, context: Context, dry_run: bool, all_schemas: bool) -> str:
    scope = project_scope(context["graph"], context["project_name"], all_schemas)

    def collect(database: str) -> str:
        maintainer = adapter.refresher.maintainer(database, context)
        return garbage.collect(adapter.refresher.session, database, scope, maintainer, dry_run)

    return _per_database(adapter, context, collect)


def _remove(adapter: OpenIvmAdapter, context: Context, dry_run: bool) -> str:
    session = adapter.refresher.session
    return _per_database(adapter, context, lambda database: garbage.remove(session, database, dry_run))


def _consumers(adapter: OpenIvmAdapter, context: Context) -> str:
    return _per_database(adapter, context, lambda database: feeds.consumers(adapter.refresher, context, database))


def _per_database(adapter: OpenIvmAdapter, context: Context, answer: Callable[[str], str]) -> str:
    """The answers for every database that the project's models are built in."""
    models = [node for node in context["graph"]["nodes"].values() if node["resource_type"] == "model"]
    databases = sorted({adapter.config.credentials.database, *(node["database"] for node in models)})
    if len(databases) == 1:
        return answer(databases[0])
    return "\n\n".join(f"database {database}\n{answer(database)}" for database in databases)


def _find(context: Context, model: str) -> Mapping[str, Any]:
    """The node of a model by name, `package.name`, or relation."""
    nodes = [node for node in context["graph"]["nodes"].values() if node["resource_type"] == "model"]
    for node in nodes:
        names = (node["name"], f"{node['package_name']}.{node['name']}", node["unique_id"], relation_key(node))
        if model in names:
            return dict(node)
    views = ", ".join(sorted(n["name"] for n in nodes if n["config"]["materialized"] == "ivm_view")) or "none"
    raise ConfigError(f"There is no model named '{model}'. The ivm_view models of this project: {views}.")


def _compiled(adapter: OpenIvmAdapter, node: Mapping[str, Any]) -> dict[str, Any]:
    """The node with its SQL compiled: an operation starts from a project that is only parsed."""
    from dbt.compilation import Compiler

    manifest: Any = adapter.get_macro_resolver()
    compiled = Compiler(adapter.config).compile_node(deepcopy(manifest.nodes[node["unique_id"]]), manifest, write=False)
    return {**node, "compiled_code": compiled.compiled_code}

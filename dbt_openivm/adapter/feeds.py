"""The operations on change feeds: who consumes a view, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt_openivm.adapter.config import relation_key
from dbt_openivm.adapter.refresh import Context, Refresher
from dbt_openivm.engine import report
from dbt_openivm.engine.catalog import ViewRow
from dbt_openivm.engine.types import Consumer
from dbt_openivm.errors import ConfigError

if TYPE_CHECKING:
    from dbt_openivm.engine.maintain import Maintainer


def consumers(refresher: Refresher, context: Context, database: str) -> str:
    maintainer = refresher.maintainer(database, context)
    return report.consumers(refresher.session, database, maintainer.consumers.all)


def register(refresher: Refresher, context: Context, model: str, consumer: str, snapshot: bool) -> str:
    if not isinstance(snapshot, bool):
        raise ConfigError(f"ivm_register_consumer: snapshot is {snapshot!r}, expected true or false.")
    view, maintainer = find(refresher, context, model)
    return registered(view, maintainer.register_consumer(view.name, consumer, snapshot))


def registered(view: ViewRow, known: Consumer) -> str:
    begins = "with the whole view" if known.snapshot else f"after batch {known.cursor:,}"
    return f"{known.name} is registered at {report.shown(view.name)} and reads {begins}, from {known.table}."


def acknowledge(refresher: Refresher, context: Context, model: str, consumer: str, batch: int) -> str:
    view, maintainer = find(refresher, context, model)
    known = maintainer.acknowledge(view.name, consumer, batch)
    left = known.lag.batches if known.lag else 0
    waiting = f"{left:,} refresh{'es' * (left != 1)} waiting" if left else "nothing waiting"
    return f"{consumer} has the changes of {report.shown(view.name)} up to batch {known.cursor:,}; {waiting}."


def unregister(refresher: Refresher, context: Context, model: str, consumer: str) -> str:
    view, maintainer = find(refresher, context, model)
    maintainer.unregister_consumer(view.name, consumer, is_forced(context, view.key))
    return f"{consumer} is no consumer of {report.shown(view.name)} any more."


def changes(refresher: Refresher, context: Context, model: str, consumer: str, after: int | None) -> str:
    view, maintainer = find(refresher, context, model)
    found = maintainer.consumers.changes(view.key, consumer, after)
    what = "the whole view" if found.snapshot else f"the changes after batch {found.after}"
    return f"-- {what} up to batch {found.version}, which is to be acknowledged\n{found.sql}"


def find(refresher: Refresher, context: Context, model: str) -> tuple[ViewRow, Maintainer]:
    """A view of a model, or one that no model maintains any more, by its name: it may still have consumers.

    Raises:
        ConfigError: there is none; the text lists those that there are.
    """
    refresher.session.end_lookups()
    models = list(_models(context))
    databases = {context["target"]["database"], *(node["database"] for node in models)}
    views = [view for database in sorted(databases) for view in report.Reader(refresher.session, database).user_views()]
    wanted = {relation_key(node) for node in models if model in _names(node)}
    found = [view for view in views if view.key in wanted]
    found = found or [view for view in views if model in (view.key, report.shown(view.name), view.name.name)]
    if len(found) != 1:
        listed = ", ".join(report.shown(view.name) for view in found or views) or "none"
        many = f"'{model}' may be any of {listed}. Name its schema."
        none = f"There is no ivm_view '{model}' that was built. There are: {listed}."
        raise ConfigError(many if found else none)
    return found[0], refresher.maintainer(found[0].name.database, context)


def is_forced(context: Context, key: str) -> bool:
    """Whether a model asks for companion rows without consumers."""
    return any(
        relation_key(node) == key and bool(node["config"].get("force_view_delta_cascade")) for node in _models(context)
    )


def _models(context: Context) -> list[Mapping[str, Any]]:
    return [node for node in context["graph"]["nodes"].values() if node["resource_type"] == "model"]


def _names(node: Mapping[str, Any]) -> tuple[str, ...]:
    return (node["name"], f"{node['package_name']}.{node['name']}", node["unique_id"], relation_key(node))

"""What DuckDB's own parser makes of a text, without binding it: names need not exist."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dbt_openivm.engine.session import Session
from dbt_openivm.errors import InternalError
from dbt_openivm.names import literal

Name = tuple[str, ...]


def parsed(session: Session, query: str) -> Any:
    """The tree of a SELECT, without where in the text its parts stand; None if the text is no single one."""
    [(answer,)] = session.execute(f"SELECT json_serialize_sql({literal(query)})")
    tree = json.loads(answer)
    if tree["error"] or len(tree["statements"]) != 1:
        return None
    return without_places(tree["statements"][0]["node"])


def without_places(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: without_places(value) for name, value in tree.items() if not name.startswith("query_location")}
    return [without_places(value) for value in tree] if isinstance(tree, list) else tree


def relations(session: Session, query: str) -> set[Name]:
    """The relations that a SELECT reads, in as many parts as it names them with.

    For queries of the compiler: a CTE there has a name of its own, and hides no relation.

    Raises:
        InternalError: DuckDB cannot parse the text.
    """
    tree = parsed(session, query)
    if tree is None:
        raise InternalError(f"DuckDB does not parse the query of a step: {query}")
    nodes = list(dictionaries(tree))
    within = {entry["key"] for node in nodes for entry in node.get("cte_map", {}).get("map", ())}
    names = (node for node in nodes if node.get("type") == "BASE_TABLE")
    found = {(node["catalog_name"], node["schema_name"], node["table_name"]) for node in names}
    return {tuple(part for part in name if part) for name in found if name[1:] not in {("", cte) for cte in within}}


def dictionaries(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for value in tree:
            yield from dictionaries(value)


def type_name(session: Session, text: str) -> str | None:
    """A type as DuckDB spells it; None if the text is anything else than the name of a type.

    A text that ends the cast and goes on changes the rest of the statement, and so its tree.
    """
    query = f"SELECT CAST(NULL AS {text}\n) AS c"
    tree, model = (parsed(session, one) for one in (query, "SELECT CAST(NULL AS INTEGER) AS c"))
    if tree is None or without_type(tree) != without_type(model):
        return None
    try:
        return str(session.execute(f"DESCRIBE {query}")[0][1])
    except Exception:  # DuckDB's errors have no common class that the engine may import: there is no such type
        return None


def without_type(tree: Any) -> Any:
    for item in tree.get("select_list", ()):
        for name in ("type_expr", "cast_type"):  # DuckDB 2.0, and before
            item.pop(name, None)
    return tree

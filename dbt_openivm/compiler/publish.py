"""Steps that every kind of node shares: build, full refresh, boundary, and publishing old against new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_openivm.compiler.facts import Column
from dbt_openivm.compiler.keys import row_keys, row_outputs
from dbt_openivm.compiler.plan import NodeProgram, Step, Target
from dbt_openivm.compiler.rules import Context, SourceState
from dbt_openivm.names import quote


def column_list(names: Sequence[str]) -> list[str]:
    return [quote(name) for name in names]


def told_apart(names: Sequence[str], target: Target) -> dict[str, list[str]]:
    """How visible rows are compared: by `keys`, since DuckDB calls values equal that a reader can tell apart."""
    columns = target.columns or tuple(Column(name, "") for name in names)
    return {"outputs": row_outputs(columns), "keys": row_keys(columns)}


def build(program: NodeProgram, states: Mapping[str, SourceState], target: Target) -> list[Step]:
    """Create state and boundary."""
    return [
        Step("ivm_create_state", {"target": target.data, "query": program.state_query(states)}, "create the state"),
        boundary(program, target),
    ]


def boundary(program: NodeProgram, target: Target) -> Step:
    """Create the published boundary: the visible rows of the state."""
    having = None if program.having_column is None else quote(program.having_column)
    arguments = {
        "view": target.visible,
        "source": program.shown(target.data),
        "columns": column_list(program.visible_columns()),
        "having": having,
    }
    return Step("ivm_create_boundary", arguments, "create the boundary")


def full(program: NodeProgram, states: Mapping[str, SourceState], target: Target, reshape: bool = False) -> list[Step]:
    """Recompute the state; publish the net difference of old and new visible rows if anyone reads it.

    Args:
        reshape: whether the program is another one than before: the new rows then show through a new boundary.
    """
    create = Step(
        "ivm_create_state", {"target": target.data, "query": program.state_query(states)}, "recompute the state"
    )
    if not target.publish:
        return [create, boundary(program, target)] if reshape else [create]
    keep = Step(
        "ivm_keep_rows",
        {
            "name": target.old,
            "source": target.visible,
            "affected": None,
            "keys": [],
            "having": None,
            "columns": column_list(program.visible_columns()),
        },
        "keep the old rows",
    )
    difference = {
        "log": target.log,
        "columns": column_list(program.visible_columns()),
        "rows": told_apart(program.visible_columns(), target),
        "old": target.old,
        "source": target.visible,
        "affected": None,
        "keys": [],
        "having": None,
        "version": target.version,
    }
    shown = [boundary(program, target)] if reshape else []
    return [
        keep,
        create,
        *shown,
        Step("ivm_publish", difference, "publish the difference", counts=True),
        drop(target.old),
    ]


def filled(context: Context) -> list[Step]:
    """Fill the temporary tables that the fragments of a context read."""
    return [Step("ivm_keep_query", {"name": kept.table, "query": kept.query}, kept.label) for kept in context.kept]


def dropped(context: Context) -> list[Step]:
    return [drop(kept.table) for kept in context.kept]


def drop(name: str, after: str | None = None) -> Step:
    return Step("ivm_drop_temporary", {"name": name}, f"drop {name}", after=after)

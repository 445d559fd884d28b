"""Companion rows of grouped aggregates: the relative delta of a group ("US +50") as a transition (-1 old, +1 new row).

Three forms. In one session, the affected keys and their old rows are kept before the MERGE, and read against the new
rows after it. Where every statement may run in a session of its own, the same rows are written without temporary
tables, the old ones before and the new ones after, with the keys asked of the sources' delta each time. And where all
columns but the keys are counts and exact sums, the relative delta itself is written, with one retraction for each
group that it counts once too often (`inline`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import column, shared_operators
from dbt_openivm.compiler.components import INTEGERS, parse
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.plan import Companion, Step, Target
from dbt_openivm.compiler.publish import column_list, drop
from dbt_openivm.compiler.rules import Context, SourceState, delta
from dbt_openivm.names import COUNT_STAR, MULTIPLICITY, old_affected_table, old_snapshot_table, quote

if TYPE_CHECKING:
    from dbt_openivm.compiler.grouped import GroupedProgram

SIGN = "openivm_sign"
COUNTS = frozenset({"count", "count_star", "count_if"})


def snapshot(program: GroupedProgram, delta_table: str, target: Target) -> list[Step]:
    """Before the MERGE: keep the affected keys and their old rows."""
    companion = wanted(target)
    keys = ", ".join(map(quote, program.key_names))
    query = f"SELECT {keys} FROM {delta_table}"  # has one row a group already
    kept = {"name": affected_of(companion), "query": query}
    old = {"name": snapshot_of(companion), **program.visible_rows(affected_of(companion), target)}
    return [
        Step("ivm_keep_query", kept, "keep the affected keys"),
        Step("ivm_keep_rows", old, "keep the old rows"),
    ]


def transitions(program: GroupedProgram, target: Target) -> list[Step]:
    """After the MERGE: old rows with -1, new rows of the affected keys with 1."""
    companion = wanted(target)
    affected, old = affected_of(companion), snapshot_of(companion)
    kept = {**program.visible_rows(None, target), "source": old, "having": None}
    return [
        rows(-1, kept, target),
        rows(1, program.visible_rows(affected, target), target),
        *([program.publish_changes(affected, target, old)] if target.publish else []),
        drop(old),
        drop(affected),
    ]


def wanted(target: Target) -> Companion:
    assert target.companion is not None
    return target.companion


def affected_of(companion: Companion) -> str:
    return quote(old_affected_table(companion.view))


def snapshot_of(companion: Companion) -> str:
    return quote(old_snapshot_table(companion.view))


def rows(weight: int, source: Mapping[str, object], target: Target) -> Step:
    """Rows of `source` (see `ivm_affected_rows`) as companion rows of one sign."""
    arguments = {"companion": wanted(target).table, "weight": weight, "version": target.version, **source}
    return Step("ivm_companion_rows", arguments, f"companion rows: {'old' if weight < 0 else 'new'}")


# --- without temporary tables -----------------------------------------------------------------------------------------


def is_split(program: GroupedProgram, states: Mapping[str, SourceState]) -> bool:
    """Whether the delta of the sources can be read without temporary tables, which some joins need."""
    context = Context(states, shared=shared_operators(program.node.core))
    delta(program.node.core, context)
    return not context.kept


def affected_query(program: GroupedProgram, states: Mapping[str, SourceState]) -> str | None:
    """The affected keys as a FROM item; None for the one row of an ungrouped aggregate."""
    if program.aggregate.scalar:
        return None
    fragments = delta(program.node.core, Context(states))
    inner = sql.union_all([fragment.select(program.keys_of(fragment)) for fragment in fragments])
    keys = [column(key) for key in program.key_names]
    return f"({sql.text(sql.select(keys, [sql.derived(inner, 'openivm_rows')], group=[k.copy() for k in keys]))})"


def around(program: GroupedProgram, states: Mapping[str, SourceState], steps: list[Step], target: Target) -> list[Step]:
    """Old rows of the affected keys before the steps, new ones after."""
    source = program.visible_rows(affected_query(program, states), target)
    return [rows(-1, source, target), *steps, rows(1, source, target)]


def is_inline(program: GroupedProgram) -> bool:
    """Whether rows of the relative delta add up to the change: visible columns are keys, counts and exact sums."""
    aggregate = program.aggregate
    if aggregate.scalar or program.recomputes or program.hidden_keys or program.node.having is not None:
        return False
    calls = dict(aggregate.calls)
    types = dict(zip(calls, aggregate.types, strict=False))

    def adds_up(value: exp.Expr) -> bool:
        if not isinstance(value, exp.Column):
            return False
        if value.name in program.key_names:
            return True
        call, type_ = calls[value.name], types.get(value.name, (None, None))[1]
        exact = type_ is not None and (type_ in INTEGERS or type_.startswith("DECIMAL"))
        return call.function in COUNTS or (call.function == "sum" and exact)

    return all(adds_up(value) for _, value in program.visible_items)


def inline(program: GroupedProgram, states: Mapping[str, SourceState], target: Target) -> list[Step]:
    """Before the MERGE: the relative delta, and the rows that keep it from counting a group twice."""
    companion = wanted(target)
    fragments = delta(program.node.core, Context(states, shared=shared_operators(program.node.core)))
    mixed = any(fragment.weight is not None for fragment in fragments)
    shown = {name: value.name for name, value in program.visible_items if value.name in program.key_names}
    shared = {"companion": companion.table, "columns": column_list(program.names), "version": target.version}
    relative = {
        **shared,
        "values": [relative_value(program, name, shown) for name in program.names],
        "source": f"({signed_query(program, fragments)})",
    }
    retraction = {
        **shared,
        "values": [f"d.{quote(name)}" if name in shown else "NULL" for name in program.names],
        "target": target.data,
        "source": f"({program.delta_query(fragments, mixed)})",
        "keys": [(quote(held), quote(key), quote(held)) for key, held in program.key_columns.items()],
        "count": (program.count_column, quote(COUNT_STAR)) if mixed else None,
    }
    return [
        Step("ivm_companion_relative", relative, "companion rows: relative delta"),
        Step("ivm_companion_inline", retraction, "companion rows: retractions"),
    ]


def relative_value(program: GroupedProgram, name: str, shown: Mapping[str, str]) -> str:
    return f"d.{quote(shown[name])}" if name in shown else program.inserts[name]


def signed_query(program: GroupedProgram, fragments: list[Fragment]) -> str:
    """One row a touched group and sign: its keys, and the components of the inserted or of the deleted rows alone."""
    inner: exp.Expr = sql.union_all([program.delta_rows(fragment, weighted=True) for fragment in fragments])
    changes = program.net(inner)
    weight = column(MULTIPLICITY)
    names = [*program.key_names, *program.parts.arguments]
    sign = sql.named(sql.cast(exp.Sign(this=weight), "BIGINT"), SIGN)
    size = sql.named(exp.Abs(this=weight.copy()), MULTIPLICITY)
    signed = sql.select([*map(column, names), sign, size], [sql.derived(changes, "openivm_net")])
    group = [*map(column, program.key_names), column(SIGN)]
    deltas = [sql.named(parse(text), name) for component in program.components for name, text in component.deltas]
    return sql.text(
        sql.select([*group, *deltas], [sql.derived(signed, "openivm_rows")], group=[g.copy() for g in group])
    )

"""Maintain an aggregate: one row a group, additive components, recomputation of the groups where addition is not
enough."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from dbt_openivm.compiler import sql, strategies
from dbt_openivm.compiler.algebra import Aggregate, column, shared_operators
from dbt_openivm.compiler.companion_groups import snapshot, transitions
from dbt_openivm.compiler.components import Component, Decomposition, parse
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.keys import FLOATING, kept_by_update
from dbt_openivm.compiler.plan import (
    AGGREGATE_GROUP,
    AGGREGATE_HAVING,
    DISTINCT_INCREMENTAL,
    GROUP_RECOMPUTE,
    SIMPLE_AGGREGATE,
    Step,
    Target,
)
from dbt_openivm.compiler.program import ViewProgram
from dbt_openivm.compiler.publish import column_list, drop, dropped, filled, told_apart
from dbt_openivm.compiler.rules import Context, SourceState, delta, new
from dbt_openivm.names import COUNT_STAR, HAVING, MULTIPLICITY, quote

DELTA = "openivm_delta"
AFFECTED = "openivm_affected"
STALE = "openivm_stale"
REWRITTEN = "openivm_rewritten"
"""A list in the state: DuckDB writes the whole row anew where an UPDATE sets one."""
EMPTY_LIST = "CAST([] AS BOOLEAN[])"


@dataclass(frozen=True, eq=False)
class GroupedProgram(ViewProgram):
    """Attributes:
    node: with an aggregate.
    names: the visible columns as the user sees them, in order.
    parts: how the aggregate's calls are decomposed.
    types: types of the visible columns, empty where unknown.
    keeps_equal: whether an UPDATE may keep an old value that the engine calls equal to the new one, as DuckDB's does.
    """

    parts: Decomposition
    types: tuple[str, ...] = ()
    keeps_equal: bool = True

    # --- what the state looks like ---------------------------------------------------------------------------------

    @property
    def aggregate(self) -> Aggregate:
        assert self.node.aggregate is not None
        return self.node.aggregate

    @property
    def recomputes(self) -> bool:
        """Whether every touched group is recomputed, because some call has no additive form."""
        return bool(self.parts.recompute)

    @property
    def refresh_type(self) -> str:
        if self.aggregate.distinct:
            return DISTINCT_INCREMENTAL
        if self.recomputes:
            return GROUP_RECOMPUTE
        if self.aggregate.scalar:
            return SIMPLE_AGGREGATE
        return AGGREGATE_GROUP if self.node.having is None else AGGREGATE_HAVING

    @property
    def having_column(self) -> str | None:
        return None if self.node.having is None else HAVING

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        """The aggregate's keys."""
        return tuple(name for name, _ in self.aggregate.keys)

    @cached_property
    def key_columns(self) -> dict[str, str]:
        """key -> the state's column that holds it: a visible one if there is one."""
        return {key: self.shown_columns.get(key, key) for key in self.key_names}

    @cached_property
    def components(self) -> list[Component]:
        return [self.parts.components[COUNT_STAR]] if self.recomputes else list(self.parts.components.values())

    @cached_property
    def can_go_stale(self) -> bool:
        return any(component.stale for component in self.components)

    @cached_property
    def shown_components(self) -> dict[str, str]:
        """component -> the visible column that is nothing else than this component, and holds it."""
        if self.recomputes:
            return {}
        shown: dict[str, str] = {}
        for name, value in self.visible_items:
            final = self.parts.finals.get(value.name) if isinstance(value, exp.Column) else None
            if isinstance(final, exp.Column):
                shown.setdefault(final.name, name)
        return shown

    def held_in(self, component: Component) -> str:
        """The state's column that holds a component."""
        return self.shown_components.get(component.name, component.name)

    def on_state(self, text: str) -> str:
        """A component's text with the names of the state's columns for the row ``t``."""
        return re.sub(
            r't\."((?:[^"]|"")*)"',
            lambda found: f"t.{quote(self.shown_components.get(found[1], found[1]))}",
            text,
        )

    @property
    def hidden_components(self) -> list[Component]:
        return [component for component in self.components if component.name not in self.shown_components]

    @property
    def count_column(self) -> str:
        """The state's column that holds the number of rows of a group."""
        return quote(self.shown_components.get(COUNT_STAR, COUNT_STAR))

    @cached_property
    def derived(self) -> dict[str, exp.Expr]:
        """State columns computed from keys and calls: the visible ones that are no key, and HAVING."""
        held = {*self.key_columns.values(), *self.shown_components.values()}
        result = {name: value for name, value in self.visible_items if name not in held}
        if self.node.having is not None:
            result[HAVING] = self.node.having
        return result

    @cached_property
    def rewrites(self) -> bool:
        """Whether an UPDATE of the state must write whole rows.

        Otherwise DuckDB keeps an old value that it calls equal to the new one, such as 30 days for 1 month. Of an
        aggregate that is maintained by addition, floating numbers are not exact to the bit anyway.
        """
        shown = [self.shown_type(name) for name in self.names if name not in self.key_columns.values()]
        return self.keeps_equal and any(
            type_ is None or (kept_by_update(type_) and (self.recomputes or type_ not in FLOATING)) for type_ in shown
        )

    def shown_type(self, name: str) -> str | None:
        """The type of a visible column, None if it is not known."""
        index = self.names.index(name)
        if self.types:
            return self.types[index]
        value = self.node.items[index][1]
        if not sql.column_names(value):
            return ""  # a constant
        results = dict(zip((call for call, _ in self.aggregate.calls), self.aggregate.types, strict=False))
        return results[value.name][1] if isinstance(value, exp.Column) and value.name in results else None

    # --- the whole state -------------------------------------------------------------------------------------------

    def state_query(self, states: Mapping[str, SourceState]) -> str:
        context = Context(states, bag=True)
        return sql.text(self.whole(context, new(self.node.core, context)))

    def whole(self, context: Context, fragments: list[Fragment], affected: str | None = None) -> exp.Select:
        """The state computed from rows, of the groups with affected keys (a FROM item) only, if there are any."""
        inner = sql.union_all([self.inner_rows(context, fragment, affected) for fragment in fragments])
        calls = {name: call.expression for name, call in self.aggregate.calls}
        items = []
        for name, value in self.visible_items:
            items.append(sql.named(sql.substitute(value, calls), name))
        items += [column(key) for key in self.hidden_keys]
        items += [sql.named(self.over_rows(component.whole), component.name) for component in self.hidden_components]
        if self.node.having is not None:
            items.append(sql.named(visible(sql.substitute(self.node.having, calls)), HAVING))
        if self.can_go_stale:
            items.append(sql.named(exp.Boolean(this=False), STALE))
        if self.rewrites:
            items.append(sql.named(parse(EMPTY_LIST), REWRITTEN))
        group = None if self.aggregate.scalar else [column(key) for key in self.key_names]
        return sql.select(items, [sql.derived(inner, "openivm_rows")], group=group)

    @property
    def hidden_keys(self) -> list[str]:
        return [key for key in self.key_names if key not in self.shown_columns]

    def inner_rows(self, context: Context, fragment: Fragment, affected: str | None) -> exp.Select:
        """Keys and the columns that calls read, one row a row of the core."""
        used = sorted(set().union(*(sql.column_names(call.expression) for _, call in self.aggregate.calls)))
        items = self.keys_of(fragment) + [sql.named(fragment.bind(column(name)), name) for name in used]
        items = sql.at_least_one(items)
        query = fragment.select(items)
        if affected is not None and not self.aggregate.scalar:
            alias = context.alias("affected")
            conditions = [
                sql.null_safe_equal(fragment.bind(value), sql.qualified(alias, key))
                for key, value in self.aggregate.keys
            ]
            query = sql.select(
                items,
                [*map(sql.placeable, fragment.sources), sql.table(affected, alias)],
                [*(c.copy() for c in fragment.conditions), *conditions],
            )
        return query

    def keys_of(self, fragment: Fragment) -> list[exp.Expr]:
        return [sql.named(fragment.bind(value), key) for key, value in self.aggregate.keys]

    def over_rows(self, text: str) -> exp.Expr:
        """A component's text over `inner_rows`, with its arguments put in."""
        return sql.substitute(parse(text), self.parts.arguments)

    # --- the delta -------------------------------------------------------------------------------------------------

    def incremental(self, states: Mapping[str, SourceState], target: Target) -> list[Step]:
        context = Context(states, shared=shared_operators(self.node.core))
        fragments = delta(self.node.core, context)
        if not fragments:
            return []
        return [*filled(context), *self.changes(states, fragments, target), *dropped(context)]

    def changes(self, states: Mapping[str, SourceState], fragments: list[Fragment], target: Target) -> list[Step]:
        if self.recomputes:
            return self.recompute_touched(states, fragments, target)
        mixed = any(fragment.weight is not None for fragment in fragments)
        query = self.delta_query(fragments, mixed)
        if self.aggregate.scalar:
            return self.update_single(states, query, mixed, target)
        return self.merge(states, query, mixed, target)

    def delta_query(self, fragments: list[Fragment], mixed: bool) -> str:
        """One row a touched group: its keys, and the change of each component."""
        weighted = mixed or any(component.inserted is None for component in self.components)
        inner: exp.Expr = sql.union_all([self.delta_rows(fragment, weighted) for fragment in fragments])
        if mixed and any(component.signed for component in self.components):
            inner = self.net(inner)
        deltas = [
            sql.named(parse(text), name)
            for component in self.components
            for name, text in self.deltas_of(component, mixed)
        ]
        keys = [column(key) for key in self.key_names]
        group = None if self.aggregate.scalar else [key.copy() for key in keys]
        return sql.text(sql.select([*keys, *deltas], [sql.derived(inner, "openivm_rows")], group=group))

    def delta_rows(self, fragment: Fragment, weighted: bool) -> exp.Select:
        """Keys and arguments of the changed rows."""
        items = [*self.keys_of(fragment), *self.arguments_of(fragment)]
        if not items and not weighted:
            items = [sql.named(sql.one(), "openivm_row")]
        return fragment.select(items, weighted=weighted)

    def arguments_of(self, fragment: Fragment) -> list[exp.Expr]:
        return [sql.named(fragment.bind(value), name) for name, value in self.parts.arguments.items()]

    def net(self, inner: exp.Expr) -> exp.Expr:
        """Consolidate: rows whose weights cancel must not pass for inserted or deleted ones."""
        names = [*self.key_names, *self.parts.arguments]
        total = exp.Sum(this=column(MULTIPLICITY))
        query = sql.select(
            [*map(column, names), sql.named(total, MULTIPLICITY)],
            [sql.derived(inner, "openivm_changes")],
            group=[column(name) for name in names],
        )
        query.set("having", exp.Having(this=exp.NEQ(this=total.copy(), expression=exp.Literal.number(0))))
        return query

    def deltas_of(self, component: Component, mixed: bool) -> tuple[tuple[str, str], ...]:
        """Where every row weighs 1, no column is needed that tells what was deleted, and no weight."""
        if mixed:
            return component.deltas
        name, text = component.deltas[0]
        return ((name, component.inserted or text),)

    # --- programs --------------------------------------------------------------------------------------------------

    def merge(self, states: Mapping[str, SourceState], query: str, mixed: bool, target: Target) -> list[Step]:
        """Add the delta to the state by the apply strategy; recompute the groups it left stale."""
        if target.companion is None and not strategies.keeps_delta(target):
            return self.merged(states, f"({query})", mixed, target)
        keep = Step("ivm_keep_query", {"name": DELTA, "query": query}, "compute the delta")
        merged = self.merged(states, DELTA, mixed, target)
        if target.companion is not None:
            return [keep, *snapshot(self, DELTA, target), *merged, *transitions(self, target), drop(DELTA)]
        if not target.publish:
            return [keep, *merged, drop(DELTA)]
        if self.shows_keys_only:
            return [keep, self.publish_groups(target), *merged, drop(DELTA)]
        published = [self.publish_changes(DELTA, target), drop(target.old)]
        return [keep, self.keep_old(DELTA, target), *merged, *published, drop(DELTA)]

    def merged(self, states: Mapping[str, SourceState], source: str, mixed: bool, target: Target) -> list[Step]:
        """The apply strategy's steps, and what recomputes the groups that they leave stale."""
        steps = strategies.apply(target, self.merge_arguments(source, mixed, target))
        if not self.stale_condition(mixed):
            return steps
        stale = {"name": AFFECTED, "target": target.data, "keys": self.held_keys, "stale": quote(STALE)}
        if target.split:
            held = ", ".join(f"{held} AS {key}" for held, key in self.held_keys)
            affected = f"(SELECT {held} FROM {target.data} WHERE {quote(STALE)})"
            return [*steps, self.count_stale(target), self.replace_affected(states, target, STALE, affected)]
        return [
            *steps,
            self.count_stale(target),  # mostly there are none
            Step("ivm_find_stale", stale, "find stale groups", after=STALE),
            self.replace_affected(states, target, after=STALE),
            drop(AFFECTED, STALE),
        ]

    @cached_property
    def shows_keys_only(self) -> bool:
        """Whether a visible row is nothing but the keys of its group: it does not change, it comes and goes."""
        keys = sorted(self.key_columns.values())
        return sorted(self.names) == keys and not self.hidden_keys and self.node.having is None

    def publish_groups(self, target: Target) -> Step:
        """Saves looking for the old rows and for the new ones."""
        arguments = {
            "log": target.log,
            "version": target.version,
            "target": target.data,
            "source": DELTA,
            "keys": self.held_keys,
            "count": (self.count_column, quote(COUNT_STAR)),
        }
        return Step("ivm_publish_groups", arguments, "publish the groups that come and go")

    def merge_arguments(self, source: str, mixed: bool, target: Target) -> dict[str, object]:
        updates, inserts = dict(self.updates), dict(self.inserts)
        stale = self.stale_condition(mixed)
        if self.can_go_stale:
            inserts[STALE] = self.initially_stale or "false"
        if stale:
            updates[STALE] = stale
        if self.rewrites:
            updates[REWRITTEN] = inserts[REWRITTEN] = EMPTY_LIST
        return {
            "target": target.data,
            "source": source,
            "keys": self.held_keys,
            "count": (self.count_column, quote(COUNT_STAR)) if mixed else None,
            "updates": [(quote(name), value) for name, value in updates.items()],
            "inserts": [(quote(name), value) for name, value in inserts.items()],
        }

    @cached_property
    def updates(self) -> dict[str, str]:
        """New value of each column of a group that the state holds, over ``t`` and ``d``."""
        merged = {c.name: parse(self.on_state(c.merged)) for c in self.components}
        derived = {name: self.derived_text(name, value, merged, "t") for name, value in self.derived.items()}
        return {self.held_in(c): self.on_state(c.merged) for c in self.components} | derived

    @cached_property
    def inserts(self) -> dict[str, str]:
        """Value of each column of a new group, over ``d``."""
        initial = {c.name: parse(c.initial) for c in self.components}
        keys = {self.key_columns[key]: f"d.{quote(key)}" for key in self.key_names}
        derived = {name: self.derived_text(name, value, initial, "d") for name, value in self.derived.items()}
        return keys | {self.held_in(c): c.initial for c in self.components} | derived

    def derived_text(self, name: str, value: exp.Expr, parts: Mapping[str, exp.Expr], side: str) -> str:
        """A derived column over merged (or initial) components and the keys of `side`."""
        calls = {
            call: exp.Paren(this=sql.substitute(final, parts))
            for call, final in self.parts.finals.items()
            if call in sql.column_names(value)
        }
        keys = {key: sql.qualified(side, self.key_columns[key] if side == "t" else key) for key in self.key_names}
        result = sql.substitute(value, {**keys, **calls})
        return sql.text(visible(result) if name == HAVING else result)

    def stale_condition(self, mixed: bool) -> str | None:
        conditions = [c.stale for c in self.components if c.stale and (mixed or not c.signed)]
        return self.on_state(" OR ".join(dict.fromkeys(conditions))) or None

    @cached_property
    def initially_stale(self) -> str | None:
        """The condition for a group that the state does not hold yet: the same, with nothing before the delta."""
        condition = " OR ".join(dict.fromkeys(c.stale for c in self.components if c.stale and not c.signed))
        return re.sub(r'\((?:t\."[^"]+"|coalesce\(t\."[^"]+", 0\)) \+ (d\."[^"]+")\)', r"\1", condition) or None

    def count_stale(self, target: Target) -> Step:
        arguments = {"target": target.data, "stale": quote(STALE)}
        return Step("ivm_count_stale", arguments, "count stale groups", returns=(STALE,))

    @cached_property
    def held_keys(self) -> list[tuple[str, str]]:
        """(column of the state, key), as SQL."""
        return [(quote(self.key_columns[key]), quote(key)) for key in self.key_names]

    def replace_affected(
        self, states: Mapping[str, SourceState], target: Target, after: str | None, affected: str = AFFECTED
    ) -> Step:
        """Recompute the groups with affected keys (a FROM item): replace, insert, or delete what is gone."""
        context = Context(states, bag=True)
        query = sql.text(self.whole(context, new(self.node.core, context), affected))
        held = {self.key_columns[key] for key in self.key_names}
        columns = [name for name in self.state_columns if name not in held]
        arguments = {
            "target": target.data,
            "affected": affected,
            "query": query,
            "keys": self.held_keys,
            "count": self.count_column,
            "columns": column_list(columns),
        }
        return Step(
            "ivm_replace_groups",
            arguments,
            "recompute the affected groups",
            after=after,
            counts=after is None,
        )

    @property
    def state_columns(self) -> list[str]:
        held = {HAVING: self.node.having is not None, STALE: self.can_go_stale, REWRITTEN: self.rewrites}
        extra = [name for name, there in held.items() if there]
        return [*self.names, *self.hidden_keys, *(c.name for c in self.hidden_components), *extra]

    def recompute_touched(
        self, states: Mapping[str, SourceState], fragments: list[Fragment], target: Target
    ) -> list[Step]:
        """Find the touched groups in the delta and recompute them."""
        if self.aggregate.scalar:
            return self.replace_single(states, target)
        inner = sql.union_all([fragment.select(self.keys_of(fragment)) for fragment in fragments])
        keys = [column(key) for key in self.key_names]
        query = sql.text(sql.select(keys, [sql.derived(inner, "openivm_rows")], group=[key.copy() for key in keys]))
        if target.split:
            return [self.replace_affected(states, target, None, f"({query})")]
        steps = [Step("ivm_keep_query", {"name": AFFECTED, "query": query}, "find the affected groups")]
        if target.publish:
            steps.append(self.keep_old(AFFECTED, target))
        steps.append(self.replace_affected(states, target, after=None))
        if target.publish:
            steps += [self.publish_changes(AFFECTED, target), drop(target.old)]
        return [*steps, drop(AFFECTED)]

    def update_single(self, states: Mapping[str, SourceState], query: str, mixed: bool, target: Target) -> list[Step]:
        """The one row of an ungrouped aggregate: one UPDATE."""
        arguments = self.merge_arguments(f"({query})", mixed, target)
        update = Step("ivm_update_single", arguments, "update the row", counts=True, expect=1)
        steps = [update]
        if self.stale_condition(mixed):
            steps += [self.count_stale(target), self.replace_row(states, target, after=STALE)]
        return self.published_single(steps, target)

    def replace_single(self, states: Mapping[str, SourceState], target: Target) -> list[Step]:
        return self.published_single([self.replace_row(states, target, after=None)], target)

    def replace_row(self, states: Mapping[str, SourceState], target: Target, after: str | None) -> Step:
        arguments = {
            "target": target.data,
            "query": self.state_query(states),
            "columns": column_list(self.state_columns),
        }
        return Step(
            "ivm_replace_single",
            arguments,
            "recompute the row",
            after=after,
            counts=after is None,
            expect=1,
        )

    def published_single(self, steps: list[Step], target: Target) -> list[Step]:
        if not target.publish:
            return steps
        return [self.keep_old(None, target), *steps, self.publish_changes(None, target), drop(target.old)]

    # --- publishing ------------------------------------------------------------------------------------------------

    def keep_old(self, affected: str | None, target: Target) -> Step:
        return Step("ivm_keep_rows", {"name": target.old, **self.visible_rows(affected, target)}, "keep the old rows")

    def publish_changes(self, affected: str | None, target: Target, old: str | None = None) -> Step:
        rows = told_apart(self.names, target)
        new = self.visible_rows(affected, target)
        arguments = {"log": target.log, "old": old or target.old, "version": target.version, "rows": rows, **new}
        return Step("ivm_publish", arguments, "publish the changed rows")

    def visible_rows(self, affected: str | None, target: Target) -> dict[str, object]:
        return {
            "source": target.data,
            "columns": column_list(self.names),
            "affected": affected,
            "keys": self.held_keys,
            "having": None if self.having_column is None else quote(self.having_column),
        }


def visible(predicate: exp.Expr) -> exp.Expr:
    """HAVING keeps a group where its predicate is true, not where it is NULL."""
    return exp.Coalesce(this=sql.cast(predicate, "BOOLEAN"), expressions=[exp.Boolean(this=False)])

"""Maintain a recursive CTE; and, for any operator without a rule of its own, recompute one node of a query.

A recursive CTE with UNION whose step takes its own rows one by one (`is_linear`) is the least set R = base + step(R).
Its state is R itself, and a refresh is two searches, each a recursive query over what changed:

- *delete and rederive*: every row that lost some derivation is taken out, with all that was derived from it, over the
  old sources. Of these, what the rest still derives comes back;
- *semi-naive insertion*: what the changed sources derive from the rows that are left, and all that follows from it over
  the new sources, unless it is there already.

A UNION ALL keeps count of derivations, of which a loop in the data has no end. A step that reads its own rows together
(an aggregate over them, a join of them with themselves) depends on the round in which DuckDB finds a row. Both are
recomputed, but as a node: the rest of the query stays incremental, and the node hands on the difference only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import (
    Filter,
    Join,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    SemiJoin,
    Temporal,
    UnionAll,
    Unnest,
)
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.plan import RECURSIVE, RECURSIVE_RECOMPUTE, NodeProgram, Step, Target
from dbt_openivm.compiler.publish import column_list, dropped, filled, full, told_apart
from dbt_openivm.compiler.rules import Context, SourceState, delta, new, old
from dbt_openivm.compiler.rules.context import Kept
from dbt_openivm.compiler.rules.forms import Form
from dbt_openivm.compiler.rules.recursive import is_working, reading, reads, typed
from dbt_openivm.compiler.rules.temporal import crossing_key
from dbt_openivm.compiler.split import Node
from dbt_openivm.names import MULTIPLICITY, quote

ROUND = "openivm_round"
WEIGHT = quote(MULTIPLICITY)
FEW, MANY = "few rows to derive again", "many rows to derive again"
SHARE = 4
"""Where more than one row in so many lost a derivation, all are computed anew: see docs/how-it-works.md."""


@dataclass(frozen=True, eq=False)
class RecomputeProgram(NodeProgram):
    """Recompute the node whenever something that it reads changed, and hand on the net difference.

    Attributes:
        node: any operator with a state, over its inputs.
        names: the visible columns as the user sees them, in order.
    """

    node: Node
    names: tuple[str, ...]
    refresh_type = RECURSIVE_RECOMPUTE

    @property
    def operator(self) -> Operator:
        assert self.node.top is not None
        return self.node.top

    def visible_columns(self) -> tuple[str, ...]:
        return self.names

    def state_query(self, states: Mapping[str, SourceState]) -> str:
        context = Context(states, bag=True)
        rows = context.single(new(self.operator, context), self.operator.columns)
        items = [
            sql.named(rows.bind(value), name) for name, (_, value) in zip(self.names, self.node.items, strict=True)
        ]
        return sql.text(rows.select(items, extra=[] if self.node.having is None else [rows.bind(self.node.having)]))

    def incremental(self, states: Mapping[str, SourceState], target: Target) -> list[Step]:
        return full(self, states, target) if changes(self.node, states) else []


def changes(node: Node, states: Mapping[str, SourceState]) -> bool:
    """Whether anything that a node reads changed."""
    return any(state.shape != "empty" for core in node.cores for op in core.walk() for state in states_of(op, states))


def states_of(operator: Operator, states: Mapping[str, SourceState]) -> list[SourceState]:
    key = operator.relation.key if isinstance(operator, Scan) else ""
    key = crossing_key(operator.number) if isinstance(operator, Temporal) else key
    return [states[key]] if key in states else []


def is_linear(operator: Operator, key: str) -> bool:
    """Whether an operator takes the rows of `key` one by one: over the sum of two sets of them, it is the sum."""
    if not reads(operator, key) or is_working(operator):
        return True
    if isinstance(operator, Filter | Project | Unnest):
        return is_linear(operator.child, key)
    if isinstance(operator, UnionAll):
        return all(reads(child, key) and is_linear(child, key) for child in operator.children)
    if isinstance(operator, Join):
        return sum(reads(child, key) for child in operator.children) == 1 and all(
            is_linear(child, key) for child in operator.children
        )
    if isinstance(operator, SemiJoin):
        return not reads(operator.right, key) and is_linear(operator.left, key)
    if isinstance(operator, OuterJoin):
        sides = (
            (operator.left, operator.right, operator.right_kept),
            (operator.right, operator.left, operator.left_kept),
        )
        return any(not other_kept and not reads(other, key) and is_linear(own, key) for own, other, other_kept in sides)
    return False


@dataclass(frozen=True, eq=False)
class RecursiveProgram(NodeProgram):
    """Attributes:
    node: a linear recursive CTE with UNION; its visible columns are those of the CTE, maybe renamed.
    names: the visible columns as the user sees them, in order.
    """

    node: Node
    names: tuple[str, ...]
    refresh_type = RECURSIVE

    @property
    def operator(self) -> Recursive:
        assert isinstance(self.node.top, Recursive)
        return self.node.top

    def visible_columns(self) -> tuple[str, ...]:
        return self.names

    def state_query(self, states: Mapping[str, SourceState]) -> str:
        return RecomputeProgram(self.node, self.names).state_query(states)

    @property
    def held(self) -> dict[str, str]:
        """Column of the CTE -> the state's column that holds it."""
        return {value.name: name for name, (_, value) in zip(self.names, self.node.items, strict=True)}

    # --- steps -----------------------------------------------------------------------------------------------------

    def incremental(self, states: Mapping[str, SourceState], target: Target) -> list[Step]:
        context = Context(states)
        changed = self.changed_rows(context, target)
        if not changed:
            return []
        if all(fragment.weight is None for fragment in changed):
            return self.insertion(context, changed, target, None)
        lost = keep(
            context, self.lost_rows(changed, context, target), "lost", "find what lost a derivation, and what follows"
        )
        left = replace(context, kept=[])
        few = [
            Step("ivm_delete_affected", self.affected(target, lost), "delete what lost a derivation", counts=True),
            *self.insertion(left, self.changed_rows(left, target), target, lost),
        ]
        choose = {"part": lost, "whole": target.data, "share": SHARE}
        return [
            *filled(context),
            Step("ivm_choose", choose, "count what lost a derivation", returns=(FEW, MANY)),
            *(replace(step, after=step.after or FEW) for step in few),
            *(replace(step, after=step.after or MANY) for step in full(self, states, target)),
            *dropped(context),
        ]

    def affected(self, target: Target, lost: str) -> dict[str, object]:
        keys = [(quote(self.held[name]), quote(name)) for name in self.operator.columns]
        return {"target": target.data, "affected": lost, "keys": keys}

    # --- what changed ----------------------------------------------------------------------------------------------

    def rows(self, target: Target) -> str:
        """The state as a FROM item with the columns of the CTE."""
        if all(name == held for name, held in self.held.items()):
            return target.data
        items = ", ".join(f"{quote(held)} AS {quote(name)}" for name, held in self.held.items())
        return f"(SELECT {items} FROM {target.data})"

    def changed_rows(self, context: Context, target: Target) -> list[Fragment]:
        """What the changed sources add to and take from the base, and from one round over all rows of the state."""
        return [
            *delta(self.operator.base, context),
            *delta(self.operator.step, reading(self.operator, context, self.rows(target))),
        ]

    def lost_rows(self, changed: list[Fragment], context: Context, target: Target) -> str:
        """The rows of the state with a derivation less, and all that the old sources derive from them."""
        taken = [fragment for fragment in changed if fragment.weight is not None]
        seed = f"SELECT DISTINCT {self.listed} FROM ({self.union(taken)}) AS openivm_rows WHERE {WEIGHT} < 0"
        step = f"SELECT {self.listed} FROM ({self.round(context, old)}) AS n"
        return (
            f"WITH RECURSIVE {ROUND}({self.listed}) AS ({seed} UNION {step}) "
            f"SELECT {self.listed} FROM {ROUND} AS r WHERE EXISTS ({self.namesake(target, 'r')})"
        )

    def insertion(self, context: Context, changed: list[Fragment], target: Target, lost: str | None) -> list[Step]:
        """Add what has a derivation now; the state holds nothing that has none."""
        query = self.union(changed)
        rows = [f"SELECT {self.listed} FROM ({query}) AS openivm_rows"]
        if any(fragment.weight is not None for fragment in changed):
            rows = [f"{rows[0]} GROUP BY {self.listed} HAVING sum({WEIGHT}) > 0"]
        if lost is not None:
            rows += self.derived_again(context, target, lost)
        unknown = f"NOT EXISTS ({self.namesake(target, 'n')})"
        seed = f"SELECT DISTINCT {self.listed} FROM ({' UNION ALL '.join(rows)}) AS n WHERE {unknown}"
        step = f"SELECT {self.listed} FROM ({self.round(context, new)}) AS n WHERE {unknown}"
        found = f"WITH RECURSIVE {ROUND}({self.listed}) AS ({seed} UNION {step}) SELECT {self.listed} FROM {ROUND}"
        gained = keep(context, found, "gained", "find what is derived now, and what follows")
        columns = column_list([self.held[name] for name in self.operator.columns])
        insert = {"target": target.data, "columns": columns, "query": f"SELECT {self.listed} FROM {gained}"}
        steps = [*filled(context), Step("ivm_insert_rows", insert, "insert what is derived now", counts=True)]
        if target.publish:
            gone = self.shown(f"(SELECT * FROM {gained} WHERE false)" if lost is None else lost)
            difference = {
                "log": target.log,
                "old": gone,
                "version": target.version,
                "source": self.shown(gained),
                "columns": column_list(self.names),
                "affected": None,
                "keys": [],
                "having": None,
                "rows": told_apart(self.names, target),
            }
            steps.append(Step("ivm_publish", difference, "publish the changed rows"))
        return [*steps, *dropped(context)]

    def derived_again(self, context: Context, target: Target, lost: str) -> list[str]:
        """The lost rows that the base has, or that one round makes of the rows that are left."""
        positive = context.with_positive()
        bases = new(self.operator.base, positive)
        steps = new(self.operator.step, reading(self.operator, positive, self.rows(target)))
        queries = []
        for fragment in (*bases, *steps):
            alias = context.alias("lost")
            items = typed(self.operator, fragment)
            pairs = zip(items, self.operator.columns, strict=True)
            same = [sql.null_safe_equal(item.unalias(), sql.qualified(alias, name)) for item, name in pairs]
            query = fragment.select(items, extra=[*positive_weight(fragment), *same])
            queries.append(sql.text(sql.with_source(query, sql.table(lost, alias))))
        return queries

    # --- SQL -------------------------------------------------------------------------------------------------------

    @property
    def listed(self) -> str:
        return ", ".join(map(quote, self.operator.columns))

    def union(self, fragments: list[Fragment]) -> str:
        return sql.text(
            sql.union_all([fragment.select(typed(self.operator, fragment), weighted=True) for fragment in fragments])
        )

    def round(self, context: Context, form: Form) -> str:
        """What one round makes of the rows of the last one, over old or new sources."""
        fragments = form(self.operator.step, reading(self.operator, context.with_positive(), ROUND))
        return sql.text(
            sql.union_all(
                [
                    fragment.select(typed(self.operator, fragment), extra=positive_weight(fragment))
                    for fragment in fragments
                ]
            )
        )

    def namesake(self, target: Target, alias: str) -> str:
        """A query for the row of the state that equals the row `alias`."""
        same = " AND ".join(
            f"s.{quote(held)} IS NOT DISTINCT FROM {alias}.{quote(name)}" for name, held in self.held.items()
        )
        return f"SELECT 1 FROM {target.data} AS s WHERE {same}"

    def shown(self, rows: str) -> str:
        """Rows of the CTE as a FROM item with the view's columns."""
        items = ", ".join(f"{quote(name)} AS {quote(held)}" for name, held in self.held.items())
        return f"(SELECT {items} FROM {rows})"


def keep(context: Context, query: str, hint: str, label: str) -> str:
    table = context.alias(f"openivm_{hint}")
    context.kept.append(Kept(table, query, label))
    return table


def positive_weight(fragment: Fragment) -> list[exp.Expr]:
    """As a set, a row is there if its weight is positive; each row that `with_positive` asks for has such a weight."""
    return [] if fragment.weight is None else [exp.GT(this=sql.operand(fragment.weight.copy()), expression=sql.zero())]

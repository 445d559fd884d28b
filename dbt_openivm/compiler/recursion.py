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

from collections.abc import Mapping, Sequence
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
from dbt_openivm.compiler.plan import RECURSIVE, RECURSIVE_RECOMPUTE, Step, Target
from dbt_openivm.compiler.program import ViewProgram
from dbt_openivm.compiler.publish import column_list, drop, dropped, filled, full, told_apart
from dbt_openivm.compiler.rules import Context, SourceState, delta, new, old
from dbt_openivm.compiler.rules.forms import Form
from dbt_openivm.compiler.rules.recursive import is_working, reading, reads, typed
from dbt_openivm.compiler.rules.temporal import crossing_key
from dbt_openivm.compiler.split import Node
from dbt_openivm.names import MULTIPLICITY, quote

ROUND = "openivm_round"
LOST, GAINED, NEAR = "openivm_lost", "openivm_gained", "openivm_near"
ROUNDS = 5
"""So many rounds of a search are statements of their own."""
WEIGHT = quote(MULTIPLICITY)
FEW, MANY = "few rows to derive again", "many rows to derive again"
SHARE = 20
"""Where more than one row in so many lost a derivation, all are computed anew: see docs/how-it-works.md."""


@dataclass(frozen=True, eq=False)
class RecomputeProgram(ViewProgram):
    """Recompute the node whenever something that it reads changed, and hand on the net difference.

    Attributes:
        node: any operator with a state, over its inputs.
        names: the visible columns as the user sees them, in order.
    """

    refresh_type = RECURSIVE_RECOMPUTE

    @property
    def operator(self) -> Operator:
        assert self.node.top is not None
        return self.node.top

    def state_query(self, states: Mapping[str, SourceState]) -> str:
        context = Context(states, bag=True)
        rows = context.single(new(self.operator, context), self.operator.columns)
        items = self.items_over(rows)
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


def source_of(operator: Operator, name: str) -> str | None:
    """The column of the last round's rows that a linear operator hands on as its column `name`; None if none."""
    if isinstance(operator, Scan):
        return dict(operator.names)[name] if is_working(operator) else None
    if isinstance(operator, Project):
        value = dict(operator.items)[name]
        return source_of(operator.child, value.name) if isinstance(value, exp.Column) else None
    if isinstance(operator, Filter | SemiJoin):
        return source_of(operator.inputs[0], name)
    if isinstance(operator, Join):
        position, inner = next((index, inner) for out, index, inner in operator.names if out == name)
        return source_of(operator.children[position], inner)
    if isinstance(operator, UnionAll):
        position = operator.columns.index(name)
        found = {source_of(child, child.columns[position]) for child in operator.children}
        return found.pop() if len(found) == 1 else None
    return None


@dataclass(frozen=True, eq=False)
class RecursiveProgram(ViewProgram):
    """Attributes:
    node: a linear recursive CTE with UNION; its visible columns are those of the CTE, maybe renamed.
    names: the visible columns as the user sees them, in order.
    """

    refresh_type = RECURSIVE

    @property
    def operator(self) -> Recursive:
        assert isinstance(self.node.top, Recursive)
        return self.node.top

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
        taken = [fragment for fragment in changed if fragment.weight is not None]
        seed = (
            f"SELECT DISTINCT {self.listed} FROM ({self.union(taken)}) AS n "
            f"WHERE {WEIGHT} < 0 AND EXISTS ({self.namesake(target.data, 'n')})"
        )
        search = Search(LOST, seed, self.round(context, old))
        left = replace(context, kept=[])
        few = [
            Step("ivm_delete_affected", self.affected(target), "delete what lost a derivation", counts=True),
            *self.insertion(left, self.changed_rows(left, target), target, LOST),
        ]
        choose = {"part": LOST, "whole": target.data, "share": SHARE}
        return [
            *filled(context),
            *search.steps(self.operator.columns, "what lost a derivation"),
            Step("ivm_choose", choose, "count what lost a derivation", returns=(FEW, MANY)),
            *(replace(step, after=step.after or FEW) for step in few),
            *(replace(step, after=step.after or MANY) for step in full(self, states, target)),
            drop(LOST),
            *dropped(context),
        ]

    def affected(self, target: Target) -> dict[str, object]:
        keys = [(quote(self.held[name]), quote(name)) for name in self.operator.columns]
        return {"target": target.data, "affected": LOST, "keys": keys}

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

    def insertion(self, context: Context, changed: list[Fragment], target: Target, lost: str | None) -> list[Step]:
        """Add what has a derivation now; the state holds nothing that has none."""
        query = self.union(changed)
        rows = [f"SELECT {self.listed} FROM ({query}) AS openivm_rows"]
        if any(fragment.weight is not None for fragment in changed):
            rows = [f"{rows[0]} GROUP BY {self.listed} HAVING sum({WEIGHT}) > 0"]
        if lost is not None:
            rows += self.derived_again(context, target, lost)
        seed = (
            f"SELECT DISTINCT {self.listed} FROM ({' UNION ALL '.join(rows)}) AS n "
            f"WHERE NOT EXISTS ({self.namesake(target.data, 'n')})"
        )
        near = self.near(target)
        known = self.namesake(target.data if near is None else NEAR, "n")
        search = Search(GAINED, seed, self.round(context, new), f"NOT EXISTS ({known})", near)
        columns = column_list([self.held[name] for name in self.operator.columns])
        insert = {"target": target.data, "columns": columns, "query": f"SELECT {self.listed} FROM {GAINED}"}
        steps = [
            *filled(context),
            *search.steps(self.operator.columns, "what is derived now"),
            Step("ivm_insert_rows", insert, "insert what is derived now", counts=True),
        ]
        if target.publish:
            gone = self.as_shown(f"(SELECT * FROM {GAINED} WHERE false)" if lost is None else lost)
            difference = {
                "log": target.log,
                "old": gone,
                "version": target.version,
                "source": self.as_shown(GAINED),
                "columns": column_list(self.names),
                "affected": None,
                "keys": [],
                "having": None,
                "rows": told_apart(self.names, target),
            }
            steps.append(Step("ivm_publish", difference, "publish the changed rows"))
        return [*steps, drop(GAINED), *dropped(context)]

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

    def near(self, target: Target) -> str | None:
        """The rows of the state that may be derived again: those with the seed's values in what no round changes.

        None where every round changes every column.
        """
        fixed = [name for name in self.operator.columns if source_of(self.operator.step, name) == name]
        if not fixed:
            return None
        values = ", ".join(map(quote, fixed))
        same = " AND ".join(f"s.{quote(self.held[name])} IS NOT DISTINCT FROM v.{quote(name)}" for name in fixed)
        return f"SELECT s.* FROM {target.data} AS s SEMI JOIN (SELECT DISTINCT {values} FROM {GAINED}) AS v ON {same}"

    def namesake(self, rows: str, alias: str) -> str:
        """A query for the row of a state that equals the row `alias`."""
        same = " AND ".join(
            f"s.{quote(held)} IS NOT DISTINCT FROM {alias}.{quote(name)}" for name, held in self.held.items()
        )
        return f"SELECT 1 FROM {rows} AS s WHERE {same}"

    def as_shown(self, rows: str) -> str:
        """Rows of the CTE as a FROM item with the view's columns."""
        items = ", ".join(f"{quote(name)} AS {quote(held)}" for name, held in self.held.items())
        return f"(SELECT {items} FROM {rows})"


@dataclass(frozen=True)
class Search:
    """Find rows and all that follows from them, round by round.

    The first rounds are statements of their own, which DuckDB runs from the few rows of the round before: it would hash
    whole tables for a recursive query, of whose rounds it cannot know the size. Most searches end there.

    Attributes:
        table: a temporary table for the rows.
        seed: the query for the first ones.
        round: the query for what follows from the rows in `ROUND`.
        condition: which of these rows `n` count; empty for all.
        near: a query for what `condition` reads as `NEAR`.
    """

    table: str
    seed: str
    round: str
    condition: str = ""
    near: str | None = None

    def steps(self, columns: Sequence[str], what: str) -> list[Step]:
        listed = ", ".join(map(quote, columns))
        same = " AND ".join(f"f.{quote(name)} IS NOT DISTINCT FROM n.{quote(name)}" for name in columns)
        new_ones = f"NOT EXISTS (SELECT 1 FROM {self.table} AS f WHERE {same})"
        unseen = " AND ".join(filter(None, [self.condition, new_ones]))
        label = f"find {what}"
        steps, drops = [Step("ivm_keep_query", {"name": self.table, "query": self.seed}, label)], []
        if self.near is not None:
            steps.append(Step("ivm_keep_query", {"name": NEAR, "query": self.near}, f"keep what is near {what}", label))
            drops.append(drop(NEAR, label))
        last = self.table
        for number in range(1, ROUNDS + 1):
            table, before = f"{self.table}_{number}", label
            following = self.round.replace(ROUND, last)
            query = f"SELECT DISTINCT {listed} FROM ({following}) AS n WHERE {unseen}"
            label = f"find {what}, round {number}"
            steps.append(Step("ivm_keep_query", {"name": table, "query": query}, label, after=before))
            steps.append(self.collected(table, listed, columns, f"keep {what}, round {number}", label))
            drops.append(drop(table, before))
            last = table
        step = f"SELECT {listed} FROM ({self.round}) AS n WHERE {self.condition or 'true'}"
        rest = (
            f"(WITH RECURSIVE {ROUND}({listed}) AS (SELECT {listed} FROM {last} UNION {step}) "
            f"SELECT {listed} FROM {ROUND} AS n WHERE {new_ones})"
        )
        steps.append(self.collected(rest, listed, columns, f"find {what}, all other rounds", label))
        return [*steps, *drops]

    def collected(self, rows: str, listed: str, columns: Sequence[str], label: str, after: str) -> Step:
        query = f"SELECT {listed} FROM {rows}"
        arguments = {"target": self.table, "columns": column_list(columns), "query": query}
        return Step("ivm_insert_rows", arguments, label, after=after)


def positive_weight(fragment: Fragment) -> list[exp.Expr]:
    """As a set, a row is there if its weight is positive; each row that `with_positive` asks for has such a weight."""
    return [] if fragment.weight is None else [exp.GT(this=sql.operand(fragment.weight.copy()), expression=sql.zero())]

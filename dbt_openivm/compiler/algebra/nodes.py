"""Node operators: they have a state, and become views of their own (see `split`)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_openivm.compiler.algebra.base import Narrowed, OneInput, Operator, Pairing, names_of
from dbt_openivm.compiler.algebra.core import Filter, Project
from dbt_openivm.compiler.facts import Relation


@dataclass(frozen=True)
class Call:
    """One aggregate call of an Aggregate.

    Attributes:
        function: DuckDB's name of it in lower case; "count_star" for COUNT(*).
        argument: the single argument, None where it has none or several.
        condition: the FILTER predicate, or None.
        expression: the whole call as written, over the child's columns.
        simple: whether only function, argument and condition matter (no DISTINCT, no ORDER BY, no further argument).
    """

    function: str
    argument: exp.Expr | None
    condition: exp.Expr | None
    expression: exp.Expr
    simple: bool


@dataclass(frozen=True, eq=False)
class Aggregate(OneInput):
    """Non-linear: one row a group of keys.

    Attributes:
        scalar: no GROUP BY: always exactly one row.
        distinct: whether it stands for SELECT DISTINCT.
        types: (type of the argument, type of the result) of each call, None where unknown; empty before types are
            resolved.
    """

    keys: tuple[tuple[str, exp.Expr], ...]
    calls: tuple[tuple[str, Call], ...]
    scalar: bool = False
    distinct: bool = False
    types: tuple[tuple[str | None, str | None], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.keys) + tuple(name for name, _ in self.calls)

    def narrowed(self, used: set[str]) -> Narrowed:
        # a group that nobody looks into is a row all the same, and a row needs a column
        calls = tuple(entry for entry in self.calls if entry[0] in used) or self.calls[: int(self.scalar)]
        expressions = [value for _, value in self.keys] + [call.expression for _, call in calls]
        return replace(self, calls=calls), (names_of(expressions),)


class Keyed(Operator):
    """Non-linear: the output rows of a key depend on the input rows of that key only; so touched keys are recomputed.

    Without keys, everything is one key. Output rows of a key may differ between two computations over the same rows
    (ties in a window's order), so old rows are always taken from the state.
    """

    @property
    @abstractmethod
    def key_names(self) -> tuple[str, ...]:
        """Hidden columns, which the operator's rows offer beside `columns`."""

    @property
    @abstractmethod
    def input_keys(self) -> tuple[tuple[exp.Expr, ...], ...]:
        """The keys as expressions over each input."""

    @property
    def held_keys(self) -> tuple[exp.Expr, ...]:
        """The keys as expressions over `columns`."""
        return self.input_keys[0]


@dataclass(frozen=True, eq=False)
class Asof(Pairing, Keyed):
    """ASOF join of two inputs: each row of the left with the nearest row of the right.

    Attributes:
        side: "", "LEFT", "RIGHT" or "FULL": whose rows stay without a partner.
        keys: (hidden name, expression over `left`, expression over `right`); only rows with equal keys can meet. Both
            inputs' columns have their own names in `names`.
    """

    side: str
    keys: tuple[tuple[str, exp.Expr, exp.Expr], ...]

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.keys)

    @property
    def input_keys(self) -> tuple[tuple[exp.Expr, ...], ...]:
        return tuple(left for _, left, _ in self.keys), tuple(right for _, _, right in self.keys)

    @property
    def held_keys(self) -> tuple[exp.Expr, ...]:
        left, right = self.input_keys
        if self.side != "FULL":
            return right if self.side == "RIGHT" else left
        pairs = zip(left, right, strict=True)
        return tuple(exp.Coalesce(this=one.copy(), expressions=[other.copy()]) for one, other in pairs)


@dataclass(frozen=True, eq=False)
class Window(OneInput, Keyed):
    """Window calls that share the keys of their partitions.

    Attributes:
        calls: (name, call); the call is an `exp.Window` over the child's columns.
        keys: (hidden name, expression over the child's columns) that stand in the PARTITION BY of every call.
    """

    calls: tuple[tuple[str, exp.Expr], ...]
    keys: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns + tuple(name for name, _ in self.calls)

    def narrowed(self, used: set[str]) -> Narrowed:
        calls = tuple(entry for entry in self.calls if entry[0] in used)
        read = names_of([value for _, value in (*calls, *self.keys)])
        return replace(self, calls=calls), ((used & set(self.child.columns)) | read,)

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.keys)

    @property
    def input_keys(self) -> tuple[tuple[exp.Expr, ...], ...]:
        return (tuple(value for _, value in self.keys),)


@dataclass(frozen=True, eq=False)
class TopK(OneInput):
    """Non-linear: the first rows in an order: `limit` of them after `offset`.

    Rows that the order leaves tied go by all their other columns, so that equal inputs give equal outputs.

    Attributes:
        order: ordered columns of the child, each with its direction and its place for NULL.
        limit, offset: constants; None where there is none.
        percent: whether `limit` is a share of the rows.
        types: types of the child's columns; None before they are resolved, or unknown.
    """

    order: tuple[exp.Ordered, ...]
    limit: exp.Expr | None
    offset: exp.Expr | None
    percent: bool = False
    types: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    def narrowed(self, used: set[str]) -> Narrowed:
        return self, (used | names_of(self.order),)


@dataclass(frozen=True, eq=False)
class Recursive(Operator):
    """A recursive CTE: the rows of `base`, and those that `step` makes of the rows that it made before, until none.

    Attributes:
        step: reads the rows of the last round through a scan of `working`.
        working: a relation that stands for these rows; its columns are called as those of the CTE.
        distinct: UNION instead of UNION ALL: rows that were there before are left out.
        keys: USING KEY: later rows replace earlier ones of the same key; empty without.
        types: types of the columns, those of `base`; None before they are resolved, or unknown.
    """

    base: Operator
    step: Operator
    working: Relation
    distinct: bool
    keys: tuple[str, ...] = ()
    types: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.base.columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.base, self.step)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, base=inputs[0], step=inputs[1])

    def narrowed(self, used: set[str]) -> Narrowed:
        """Every column decides what the next round finds, shown or not."""
        return self, (used | set(self.base.columns), set(self.step.columns))


NODES = (Aggregate, Keyed, TopK, Recursive)
"""Operators that need a state of their own."""


def top_node(operator: Operator) -> Operator | None:
    """The operator with a state below a chain of filters and projections, if the chain ends in one."""
    while isinstance(operator, Filter | Project):
        operator = operator.child
    return operator if isinstance(operator, NODES) else None

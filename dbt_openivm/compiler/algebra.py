"""The operator tree: frozen dataclasses that know their output columns.

An operator's output columns have names that are unique within it without regard to case. Expressions of an operator are
sqlglot expressions whose columns are bare names of its child's output (see `column`), so that no expression depends
on how a relation was called in the user's query. A relation is a Z-set throughout: rows with signed weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_openivm.compiler.facts import Relation
from dbt_openivm.compiler.sql import column_names

Names = tuple[tuple[str, int, str], ...]
"""Output columns of a join as (output name, index of the input, column of the input)."""


def column(name: str) -> exp.Column:
    """A reference to an output column of the child operator."""
    return exp.Column(this=exp.to_identifier(name, quoted=True))


Narrowed = tuple["Operator", tuple[set[str], ...]]
"""An operator that computes no more than it must, and the columns that it reads of each input."""


@dataclass(frozen=True, eq=False)
class Operator(ABC):
    """Base of all operators. A pass that only needs the shape of the tree works on these methods, for any operator."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The output columns, in order."""

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return ()

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        """The same operator over other inputs, which offer the columns that it reads."""
        assert not inputs
        return self

    @abstractmethod
    def narrowed(self, used: set[str]) -> Narrowed:
        """The operator with no output column but `used` where it can do without, and what it reads of each input."""

    def walk(self) -> Iterator[Operator]:
        yield self
        for child in self.inputs:
            yield from child.walk()


@dataclass(frozen=True, eq=False)
class Scan(Operator):
    """Read a source. `names` pairs each output name with the source's column."""

    relation: Relation
    names: tuple[tuple[str, str], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(out for out, _ in self.names)

    def narrowed(self, used: set[str]) -> Narrowed:
        return replace(self, names=tuple(pair for pair in self.names if pair[0] in used)), ()


@dataclass(frozen=True, eq=False)
class Constant(Operator):
    """Rows that no source feeds: VALUES, or the one row of a SELECT without FROM. Its delta is always empty."""

    rows: tuple[tuple[exp.Expr, ...], ...]
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    def narrowed(self, used: set[str]) -> Narrowed:  # noqa: ARG002 - a few constants cost nothing
        return self, ()


@dataclass(frozen=True, eq=False)
class Filter(Operator):
    """Linear: keep the rows for which the predicate is true."""

    child: Operator
    predicate: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, child=inputs[0])

    def narrowed(self, used: set[str]) -> Narrowed:
        return self, (used | column_names(self.predicate),)


class Temporal(Operator):
    """Linear in its input, and dependent on the clock: its rows change as time passes.

    Attributes:
        child: the input.
        number: of the operator within its query, from 1; 0 before they are numbered.
    """

    child: Operator
    number: int

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)


@dataclass(frozen=True, eq=False)
class TemporalFilter(Temporal):
    """Keep the rows for which a predicate that reads the clock is true."""

    child: Operator
    predicate: exp.Expr
    number: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, child=inputs[0])

    def narrowed(self, used: set[str]) -> Narrowed:
        return self, (used | column_names(self.predicate),)


@dataclass(frozen=True, eq=False)
class TemporalColumns(Temporal):
    """Add columns whose expressions read the clock."""

    child: Operator
    items: tuple[tuple[str, exp.Expr], ...]
    number: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns + tuple(name for name, _ in self.items)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, child=inputs[0])

    def narrowed(self, used: set[str]) -> Narrowed:
        items = tuple(item for item in self.items if item[0] in used)
        read = names_of(value for _, value in items)
        return replace(self, items=items), ((used & set(self.child.columns)) | read,)


@dataclass(frozen=True, eq=False)
class Project(Operator):
    """Linear: compute (name, expression) items from each row."""

    child: Operator
    items: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, child=inputs[0])

    def narrowed(self, used: set[str]) -> Narrowed:
        items = tuple(item for item in self.items if item[0] in used)
        return replace(self, items=items), (names_of(value for _, value in items),)


@dataclass(frozen=True, eq=False)
class Join(Operator):
    """n-linear: the cross product of its inputs; the conditions stand in a Filter above.

    `names` gives the output columns as (output name, index of the input, column of the input).
    """

    children: tuple[Operator, ...]
    names: Names

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(out for out, _, _ in self.names)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self.children

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, children=inputs)

    def narrowed(self, used: set[str]) -> Narrowed:
        names = tuple(entry for entry in self.names if entry[0] in used)
        return replace(self, names=names), read_of(names, len(self.children))


@dataclass(frozen=True, eq=False)
class SemiJoin(Operator):
    """The rows of `left` for which `right` holds a row that fulfils `on` (with `anti`: holds none).

    Attributes:
        on: over the columns of `left` and those of `right` as `right_names` calls them.
        right_names: (name in `on`, column of `right`).
        types: types of the columns of `left`, then of those of `right`; None before they are resolved, or unknown.
    """

    left: Operator
    right: Operator
    on: exp.Expr
    right_names: tuple[tuple[str, str], ...]
    anti: bool = False
    types: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, left=inputs[0], right=inputs[1])

    def narrowed(self, used: set[str]) -> Narrowed:
        wanted = column_names(self.on)
        right_names = tuple(pair for pair in self.right_names if pair[0] in wanted)
        left = used | (wanted - {name for name, _ in right_names})
        return replace(self, right_names=right_names), (left, {inner for _, inner in right_names})


@dataclass(frozen=True, eq=False)
class OuterJoin(Operator):
    """LEFT, RIGHT or FULL join of two inputs: the pairs that fulfil `on`, and unmatched rows padded with NULL.

    Attributes:
        on: over the output columns.
        names: as of a Join.
        left_kept, right_kept: whether the unmatched rows of that input stay.
        types: types of the columns of `left`, then of those of `right`; None before they are resolved, or unknown.
    """

    left: Operator
    right: Operator
    on: exp.Expr
    names: Names
    left_kept: bool
    right_kept: bool
    types: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(out for out, _, _ in self.names)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, left=inputs[0], right=inputs[1])

    def narrowed(self, used: set[str]) -> Narrowed:
        wanted = used | column_names(self.on)
        names = tuple(entry for entry in self.names if entry[0] in wanted)
        return replace(self, names=names), read_of(names, 2)


@dataclass(frozen=True, eq=False)
class Unnest(Operator):
    """Linear: one row for each element of the lists, which go side by side as within one SELECT of DuckDB.

    The shorter lists end in NULL; a row whose lists are all empty or NULL goes.

    Attributes:
        items: (name, list over the child's columns).
    """

    child: Operator
    items: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns + tuple(name for name, _ in self.items)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, child=inputs[0])

    def narrowed(self, used: set[str]) -> Narrowed:
        """Every list counts for the number of rows, shown or not."""
        return self, ((used & set(self.child.columns)) | names_of(value for _, value in self.items),)


@dataclass(frozen=True, eq=False)
class UnionAll(Operator):
    """Linear in every input: the sum of Z-sets, columns by position, named after the first input."""

    children: tuple[Operator, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.children[0].columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self.children

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, children=inputs)

    def narrowed(self, used: set[str]) -> Narrowed:
        """Columns go by position: whoever narrows the inputs gives each exactly those columns (see `prune`)."""
        positions = [index for index, name in enumerate(self.columns) if name in used]
        return self, tuple({child.columns[index] for index in positions} for child in self.children)


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
class Aggregate(Operator):
    """Non-linear: one row a group of keys.

    Attributes:
        scalar: no GROUP BY: always exactly one row.
        distinct: whether it stands for SELECT DISTINCT.
        types: (type of the argument, type of the result) of each call, None where unknown; empty before types are
            resolved.
    """

    child: Operator
    keys: tuple[tuple[str, exp.Expr], ...]
    calls: tuple[tuple[str, Call], ...]
    scalar: bool = False
    distinct: bool = False
    types: tuple[tuple[str | None, str | None], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.keys) + tuple(name for name, _ in self.calls)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, child=inputs[0])

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
class Asof(Keyed):
    """ASOF join of two inputs: each row of the left with the nearest row of the right.

    Attributes:
        on: over the output columns.
        names: as of a Join.
        side: "", "LEFT", "RIGHT" or "FULL": whose rows stay without a partner.
        keys: (hidden name, expression over `left`, expression over `right`); only rows with equal keys can meet. Both
            inputs' columns have their own names in `names`.
    """

    left: Operator
    right: Operator
    on: exp.Expr
    names: Names
    side: str
    keys: tuple[tuple[str, exp.Expr, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(out for out, _, _ in self.names)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, left=inputs[0], right=inputs[1])

    def narrowed(self, used: set[str]) -> Narrowed:
        wanted = used | column_names(self.on)
        names = tuple(entry for entry in self.names if entry[0] in wanted)
        return replace(self, names=names), read_of(names, 2)

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
class Window(Keyed):
    """Window calls that share the keys of their partitions.

    Attributes:
        calls: (name, call); the call is an `exp.Window` over the child's columns.
        keys: (hidden name, expression over the child's columns) that stand in the PARTITION BY of every call.
    """

    child: Operator
    calls: tuple[tuple[str, exp.Expr], ...]
    keys: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns + tuple(name for name, _ in self.calls)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, child=inputs[0])

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
class TopK(Operator):
    """Non-linear: the first rows in an order: `limit` of them after `offset`.

    Rows that the order leaves tied go by all their other columns, so that equal inputs give equal outputs.

    Attributes:
        order: ordered columns of the child, each with its direction and its place for NULL.
        limit, offset: constants; None where there is none.
        percent: whether `limit` is a share of the rows.
        types: types of the child's columns; None before they are resolved, or unknown.
    """

    child: Operator
    order: tuple[exp.Ordered, ...]
    limit: exp.Expr | None
    offset: exp.Expr | None
    percent: bool = False
    types: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.child,)

    def with_inputs(self, inputs: tuple[Operator, ...]) -> Operator:
        return replace(self, child=inputs[0])

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

    def narrowed(self, used: set[str]) -> Narrowed:  # noqa: ARG002 - every column decides what the next round finds
        return self, (set(self.base.columns), set(self.step.columns))


NODES = (Aggregate, Keyed, TopK, Recursive)
"""Operators that need a state of their own."""


def top_node(operator: Operator) -> Operator | None:
    """The operator with a state below a chain of filters and projections, if the chain ends in one."""
    while isinstance(operator, Filter | Project):
        operator = operator.child
    return operator if isinstance(operator, NODES) else None


def shared_operators(*operators: Operator) -> frozenset[int]:
    """Ids of the operators that stand below several others."""
    seen: set[int] = set()
    shared: set[int] = set()
    pending = list(operators)
    while pending:
        for child in pending.pop().inputs:
            if id(child) in seen:
                shared.add(id(child))
            else:
                seen.add(id(child))
                pending.append(child)
    return frozenset(shared)


def names_of(expressions: Iterable[exp.Expr]) -> set[str]:
    """The columns that any of the expressions reads."""
    return {name for value in expressions for name in column_names(value)}


def read_of(names: Names, inputs: int) -> tuple[set[str], ...]:
    """The columns that `names` takes from each input."""
    return tuple({inner for _, index, inner in names if index == position} for position in range(inputs))


def exactly(operator: Operator, columns: tuple[str, ...]) -> Operator:
    """`operator` with these output columns in this order."""
    if operator.columns == columns:
        return operator
    return Project(operator, tuple((name, column(name)) for name in columns))


def unique_name(name: str, taken: set[str]) -> str:
    """`name`, with a suffix if it is in `taken` (lower-case names) already; adds the result to `taken`.

    Example:
        >>> unique_name("A", {"a"})
        'A_1'
    """
    candidate, number = name, 0
    while candidate.lower() in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate.lower())
    return candidate

"""Core operators: they keep nothing, and their delta follows from their inputs' deltas, new rows and old rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_openivm.compiler.algebra.base import (
    ManyInputs,
    Names,
    Narrowed,
    OneInput,
    Operator,
    Pairing,
    References,
    TwoInputs,
    column,
    names_of,
    read_of,
)
from dbt_openivm.compiler.facts import Relation
from dbt_openivm.compiler.sql import column_names


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

    def narrowed(self, used: set[str]) -> Narrowed:
        kept = [index for index, name in enumerate(self.names) if name in used]
        rows = tuple(tuple(row[index] for index in kept) for row in self.rows)
        return replace(self, rows=rows, names=tuple(self.names[index] for index in kept)), ()


@dataclass(frozen=True, eq=False)
class Filter(OneInput):
    """Linear: keep the rows for which the predicate is true."""

    predicate: exp.Expr

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    def narrowed(self, used: set[str]) -> Narrowed:
        return self, (used | column_names(self.predicate),)


class Temporal(OneInput):
    """Linear in its input, and dependent on the clock: its rows change as time passes.

    Attributes:
        number: of the operator within its query, from 1; 0 before they are numbered.
    """

    number: int


@dataclass(frozen=True, eq=False)
class TemporalFilter(Temporal):
    """Keep the rows for which a predicate that reads the clock is true."""

    predicate: exp.Expr
    number: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns

    def narrowed(self, used: set[str]) -> Narrowed:
        return self, (used | column_names(self.predicate),)


@dataclass(frozen=True, eq=False)
class TemporalColumns(Temporal):
    """Add columns whose expressions read the clock."""

    items: tuple[tuple[str, exp.Expr], ...]
    number: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns + tuple(name for name, _ in self.items)

    def narrowed(self, used: set[str]) -> Narrowed:
        items = tuple(item for item in self.items if item[0] in used)
        read = names_of(value for _, value in items)
        return replace(self, items=items), ((used & set(self.child.columns)) | read,)


@dataclass(frozen=True, eq=False)
class Project(OneInput):
    """Linear: compute (name, expression) items from each row."""

    items: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)

    def narrowed(self, used: set[str]) -> Narrowed:
        items = tuple(item for item in self.items if item[0] in used)
        return replace(self, items=items), (names_of(value for _, value in items),)


@dataclass(frozen=True, eq=False)
class Join(ManyInputs):
    """n-linear: the cross product of its inputs; the conditions stand in a Filter above.

    `names` gives the output columns as (output name, index of the input, column of the input).

    Attributes:
        references: pairs (parent, child) of inputs: the condition above equates a foreign key of `child`; see
            `constraints`.
    """

    names: Names
    references: References = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(out for out, _, _ in self.names)

    def narrowed(self, used: set[str]) -> Narrowed:
        names = tuple(entry for entry in self.names if entry[0] in used)
        return replace(self, names=names), read_of(names, len(self.children))


@dataclass(frozen=True, eq=False)
class SemiJoin(TwoInputs):
    """The rows of `left` for which `right` holds a row that fulfils `on` (with `anti`: holds none).

    Attributes:
        on: over the columns of `left` and those of `right` as `right_names` calls them.
        right_names: (name in `on`, column of `right`).
        types: types of the columns of `left`, then of those of `right`; None before they are resolved, or unknown.
        references: as of a Join, left being 0 and right 1.
    """

    on: exp.Expr
    right_names: tuple[tuple[str, str], ...]
    anti: bool = False
    types: tuple[str, ...] | None = None
    references: References = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns

    def narrowed(self, used: set[str]) -> Narrowed:
        wanted = column_names(self.on)
        right_names = tuple(pair for pair in self.right_names if pair[0] in wanted)
        left = used | (wanted - {name for name, _ in right_names})
        return replace(self, right_names=right_names), (left, {inner for _, inner in right_names})


@dataclass(frozen=True, eq=False)
class OuterJoin(Pairing):
    """LEFT, RIGHT or FULL join of two inputs: the pairs that fulfil `on`, and unmatched rows padded with NULL.

    Attributes:
        left_kept, right_kept: whether the unmatched rows of that input stay.
        types: types of the columns of `left`, then of those of `right`; None before they are resolved, or unknown.
        references: as of a Join, left being 0 and right 1.
    """

    left_kept: bool
    right_kept: bool
    types: tuple[str, ...] | None = None
    references: References = ()


@dataclass(frozen=True, eq=False)
class Unnest(OneInput):
    """Linear: one row for each element of the lists, which go side by side as within one SELECT of DuckDB.

    The shorter lists end in NULL; a row whose lists are all empty or NULL goes.

    Attributes:
        items: (name, list over the child's columns).
    """

    items: tuple[tuple[str, exp.Expr], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.child.columns + tuple(name for name, _ in self.items)

    def narrowed(self, used: set[str]) -> Narrowed:
        """Every list counts for the number of rows, shown or not."""
        return self, ((used & set(self.child.columns)) | names_of(value for _, value in self.items),)


@dataclass(frozen=True, eq=False)
class UnionAll(ManyInputs):
    """Linear in every input: the sum of Z-sets, columns by position, named after the first input."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.children[0].columns

    def narrowed(self, used: set[str]) -> Narrowed:
        """Columns go by position: whoever narrows the inputs gives each exactly those columns (see `prune`)."""
        positions = [index for index, name in enumerate(self.columns) if name in used]
        return self, tuple({child.columns[index] for index in positions} for child in self.children)


def exactly(operator: Operator, columns: tuple[str, ...]) -> Operator:
    """`operator` with these output columns in this order."""
    if operator.columns == columns:
        return operator
    return Project(operator, tuple((name, column(name)) for name in columns))

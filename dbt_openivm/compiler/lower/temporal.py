"""Give every expression that reads the clock an operator that knows how it moves.

- A conjunct of a filter becomes a `TemporalFilter`, as far down as the columns that it reads.
- A value (a bound that a subquery computes, a CASE over comparisons) is lifted: it moves up into the expressions that
  read it, where it is mostly compared with something.
- Where it cannot move further, it becomes a column of `TemporalColumns`, if it changes seldom or for few rows (a flag,
  anything of `current_date`). What is another value in every row at every refresh, such as ``now()`` in the result,
  is refreshed in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from dbt_openivm.compiler import clock, sql
from dbt_openivm.compiler.aggregates import describe
from dbt_openivm.compiler.algebra import (
    Aggregate,
    Call,
    Constant,
    Filter,
    Join,
    Operator,
    OuterJoin,
    Project,
    SemiJoin,
    Temporal,
    TemporalColumns,
    TemporalFilter,
    UnionAll,
    Unnest,
    Window,
    bottom_up,
    column,
    exactly,
    unique_name,
)
from dbt_openivm.compiler.lower.outer import expressions_of
from dbt_openivm.compiler.places import place
from dbt_openivm.errors import UnsupportedError

Values = Mapping[str, exp.Expr]
CALL_PARTS = (exp.Filter, exp.Where, exp.Distinct, exp.Order, exp.Ordered, exp.WithinGroup, exp.IgnoreNulls)
"""What an aggregate call is wrapped in, or wraps its arguments in."""
BOOLEANS = (exp.Predicate, exp.Connector, exp.Not)


class ClockError(UnsupportedError):
    """A value of the clock stands where it changes every row at every refresh."""

    def __init__(self, expression: exp.Expr) -> None:
        node = next(clock.readings(expression))
        super().__init__(f"{clock.reading(node)}{place(node)}")


@dataclass(frozen=True)
class Lifted:
    """An operator without its columns that read the clock, and these columns over those that it has.

    Without `values`, the operator has the columns that it had before.
    """

    operator: Operator
    values: Values = field(default_factory=dict)

    def settled(self, names: tuple[str, ...]) -> Operator:
        """The operator with the columns `names`, of which the lifted ones are computed here.

        Raises:
            ClockError: one would change in every row at every refresh.
        """
        if not self.values:
            return exactly(self.operator, names)
        columns = _Columns(self.operator)
        items = tuple(
            (name, columns.column(self.values[name]) if name in self.values else column(name)) for name in names
        )
        return Project(columns.operator, items)


@dataclass
class _Lifter:
    done: dict[int, Lifted] = field(default_factory=dict)

    def lift(self, operator: Operator) -> Lifted:
        if id(operator) not in self.done:
            self.done[id(operator)] = self.lifted(operator)
        return self.done[id(operator)]

    def lifted(self, operator: Operator) -> Lifted:
        inputs = [self.lift(child) for child in operator.inputs]
        own = any(map(clock.reads_clock, expressions_of(operator)))
        if not own and not any(child.values for child in inputs):
            same = all(now.operator is was for now, was in zip(inputs, operator.inputs, strict=True))
            return Lifted(operator if same else operator.with_inputs(tuple(child.operator for child in inputs)))
        result = rewritten(operator, inputs)
        return result if result.values else Lifted(exactly(result.operator, operator.columns))


def temporal(operator: Operator) -> Operator:
    """The same rows, with operators for what reads the clock.

    Raises:
        ClockError: something would change in every row at every refresh.
    """
    return _Lifter().lift(operator).settled(operator.columns)


def numbered(operator: Operator) -> Operator:
    """Number the operators that read the clock."""
    numbers = count(1)

    def number(op: Operator) -> Operator:
        return replace(op, number=next(numbers)) if isinstance(op, TemporalFilter | TemporalColumns) else op

    return bottom_up(operator, number)


def temporals(operator: Operator) -> dict[int, Temporal]:
    """The operators that read the clock, by number, inner ones first."""
    found = [op for op in operator.walk() if isinstance(op, Temporal)]
    return {op.number: op for op in reversed(found)}


# --- expressions ------------------------------------------------------------------------------------------------------


def conjuncts(predicate: exp.Expr) -> list[exp.Expr]:
    """The parts of a conjunction; BETWEEN with a moving bound counts as two comparisons."""
    result: list[exp.Expr] = []
    for part in sql.conjuncts(predicate):
        if isinstance(part, exp.Between) and clock.reads_clock(part) and not part.args.get("symmetric"):
            low, high = part.args["low"], part.args["high"]
            result.append(exp.GTE(this=part.this.copy(), expression=sql.operand(low.copy())))
            result.append(exp.LTE(this=part.this.copy(), expression=sql.operand(high.copy())))
        else:
            result.append(part)
    return result


def is_settled(value: exp.Expr) -> bool:
    """Whether a value that reads the clock stays the same from one refresh to the next for most rows."""
    return all(is_slow(node, value) for node in clock.readings(value))


def is_slow(node: exp.Expr, within: exp.Expr) -> bool:
    """Whether a function of the clock is a date, or stands inside a truncation or a comparison."""
    if clock.reading(node) == "current_date":
        return True
    while node is not within and node.parent is not None:
        node = node.parent
        if isinstance(node, BOOLEANS) or is_truncation(node):
            return True
    return isinstance(node, BOOLEANS) or is_truncation(node)


def is_truncation(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return node.to.is_type("date")
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc):
        return node.args["unit"].name.lower() in UNITS
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return name in ("date_trunc", "datetrunc") and node.expressions[0].name.lower() in UNITS


UNITS = ("hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium")


@dataclass
class _Columns:
    """Collects columns for `TemporalColumns` over one input."""

    child: Operator
    items: list[tuple[str, exp.Expr]] = field(default_factory=list)

    def column(self, value: exp.Expr) -> exp.Expr:
        """A column in the place of a value that reads the clock.

        Raises:
            ClockError: it would be another one for every row at every refresh.
        """
        if not is_settled(value):
            raise ClockError(value)
        for name, known in self.items:
            if known == value:
                return column(name)
        taken = {name.lower() for name in (*self.child.columns, *(known for known, _ in self.items))}
        self.items.append((unique_name("openivm_clock", taken), value))
        return column(self.items[-1][0])

    @property
    def operator(self) -> Operator:
        return TemporalColumns(self.child, tuple(self.items)) if self.items else self.child


# --- one operator -----------------------------------------------------------------------------------------------------


def rewritten(operator: Operator, inputs: list[Lifted]) -> Lifted:
    if isinstance(operator, Filter):
        return filtered(operator, inputs[0])
    if isinstance(operator, Project):
        return projected(operator, inputs[0])
    if isinstance(operator, Constant):
        return constant(operator)
    if isinstance(operator, Join):
        return joined(operator, inputs)
    if isinstance(operator, SemiJoin):
        return halved(operator, *inputs)
    if isinstance(operator, OuterJoin):
        return outer(operator, *inputs)
    if isinstance(operator, Aggregate):
        return aggregated(operator, inputs[0])
    if isinstance(operator, Unnest | Window):
        return passed(operator, inputs[0])
    if isinstance(operator, UnionAll):
        return Lifted(UnionAll(settled_inputs(operator, inputs)))
    for value in expressions_of(operator):
        if clock.reads_clock(value):
            raise ClockError(value)
    return Lifted(operator.with_inputs(settled_inputs(operator, inputs)))


def settled_inputs(operator: Operator, inputs: list[Lifted]) -> tuple[Operator, ...]:
    return tuple(now.settled(was.columns) for now, was in zip(inputs, operator.inputs, strict=True))


def filtered(operator: Filter, child: Lifted) -> Lifted:
    parts = conjuncts(sql.substitute(operator.predicate, child.values))
    timeless = sql.conjunction([part for part in parts if not clock.reads_clock(part)])
    result = child.operator if timeless is None else Filter(child.operator, timeless)
    for part in parts:
        if clock.reads_clock(part):
            result = pushed(result, part)
    return Lifted(result, child.values)


def pushed(operator: Operator, predicate: exp.Expr) -> Operator:
    """`operator` filtered by a predicate that reads the clock, as close to the source as it goes."""
    read = sql.column_names(predicate)
    if isinstance(operator, Filter) and reaches_join(operator.child):
        return replace(operator, child=pushed(operator.child, predicate))
    if isinstance(operator, TemporalFilter) and reaches_join(operator.child):
        return replace(operator, child=pushed(operator.child, predicate))
    if isinstance(operator, Project) and reaches_join(operator.child) and read:
        return replace(operator, child=pushed(operator.child, sql.substitute(predicate, dict(operator.items))))
    if isinstance(operator, Join) and read:
        found = {name: (index, inner) for name, index, inner in operator.names if name in read}
        [position, *others] = {index for index, _ in found.values()}
        if not others:
            inner = sql.substitute(predicate, {name: column(known) for name, (_, known) in found.items()})
            children = list(operator.children)
            children[position] = pushed(children[position], inner)
            return replace(operator, children=tuple(children))
    return TemporalFilter(operator, predicate)


def reaches_join(operator: Operator) -> bool:
    while isinstance(operator, Filter | TemporalFilter | Project):
        operator = operator.child
    return isinstance(operator, Join)


def projected(operator: Project, child: Lifted) -> Lifted:
    values = [(name, sql.substitute(value, child.values)) for name, value in operator.items]
    items = [(name, value) for name, value in values if not clock.reads_clock(value)]
    lifted = {name: value for name, value in values if clock.reads_clock(value)}
    return Lifted(Project(child.operator, (*items, *carried(items, operator, lifted))), lifted)


def carried(
    items: list[tuple[str, exp.Expr]], operator: Operator, lifted: dict[str, exp.Expr]
) -> Iterator[tuple[str, exp.Expr]]:
    """More items: what the lifted values read of the child, and these values over the items."""
    taken = {name.lower() for name in operator.columns}
    known = {value.name: name for name, value in items if isinstance(value, exp.Column)}
    for name, value in lifted.items():
        for read in sorted(sql.column_names(value)):
            if read not in known:
                known[read] = unique_name(read, taken)
                yield known[read], column(read)
        lifted[name] = sql.substitute(value, {read: column(known[read]) for read in sql.column_names(value)})


def constant(operator: Constant) -> Lifted:
    if len(operator.rows) != 1:
        raise ClockError(next(value for row in operator.rows for value in row if clock.reads_clock(value)))
    pairs = list(zip(operator.names, operator.rows[0], strict=True))
    kept = [(name, value) for name, value in pairs if not clock.reads_clock(value)]
    row = Constant((tuple(value for _, value in kept),), tuple(name for name, _ in kept))
    return Lifted(row, {name: value for name, value in pairs if clock.reads_clock(value)})


def joined(operator: Join, inputs: list[Lifted]) -> Lifted:
    names, values = joined_names(operator, inputs)
    return Lifted(Join(tuple(child.operator for child in inputs), names), values)


def joined_names(operator: Join | OuterJoin, inputs: list[Lifted]) -> tuple[tuple[tuple[str, int, str], ...], Values]:
    """The columns of a join without the lifted ones, and the lifted ones over them."""
    taken = {name.lower() for name in operator.columns}
    names = [entry for entry in operator.names if entry[2] not in inputs[entry[1]].values]
    outs = {(index, inner): out for out, index, inner in names}
    values = {}
    for out, index, inner in operator.names:
        if inner in inputs[index].values:
            value = inputs[index].values[inner]
            for read in sorted(sql.column_names(value)):
                if (index, read) not in outs:
                    outs[index, read] = unique_name(read, taken)
                    names.append((outs[index, read], index, read))
            values[out] = sql.substitute(value, {read: column(outs[index, read]) for read in sql.column_names(value)})
    return tuple(names), values


def halved(operator: SemiJoin, left: Lifted, right: Lifted) -> Lifted:
    pairs = dict(operator.right_names)
    outs = {inner: out for out, inner in operator.right_names}
    taken = {name.lower() for name in (*left.operator.columns, *operator.columns, *pairs)}
    known = dict(left.values)
    for out, inner in operator.right_names:
        if inner in right.values:
            value = right.values[inner]
            for read in sql.column_names(value):
                if read not in outs:
                    outs[read] = unique_name(read, taken)
            known[out] = sql.substitute(value, {read: column(outs[read]) for read in sql.column_names(value)})
    names = {out: inner for inner, out in outs.items() if inner not in right.values}
    sides = _Sides(left.operator, right.operator, {name: name for name in left.operator.columns}, names)
    sides.filters = (False, True)
    on = sides.without_clock(sql.substitute(operator.on, known))
    right_names = tuple(sides.columns[1].items())
    result = SemiJoin(sides.operator(0), sides.operator(1), on, right_names, operator.anti)
    return Lifted(exactly(result, left.operator.columns), left.values)


def outer(operator: OuterJoin, left: Lifted, right: Lifted) -> Lifted:
    if operator.right_kept:  # the left side may be padded, and a lifted value would not be NULL there
        left = Lifted(left.settled(operator.left.columns))
    if operator.left_kept:
        right = Lifted(right.settled(operator.right.columns))
    names, values = joined_names(operator, [left, right])
    columns = [{out: inner for out, position, inner in names if position == index} for index in (0, 1)]
    sides = _Sides(left.operator, right.operator, columns[0], columns[1])
    sides.filters = (not operator.left_kept, not operator.right_kept)
    on = sides.without_clock(sql.substitute(operator.on, values))
    shown = tuple((out, index, inner) for index in (0, 1) for out, inner in sides.columns[index].items())
    result = OuterJoin(sides.operator(0), sides.operator(1), on, shown, operator.left_kept, operator.right_kept)
    return Lifted(exactly(result, tuple(out for out, _, _ in names)), values)


@dataclass
class _Sides:
    """Takes the clock out of the condition of a join of two sides.

    Attributes:
        left_columns, right_columns: name in the condition -> column of that side.
        filters: whether a conjunct that reads one side only may filter that side.
    """

    left: Operator
    right: Operator
    left_columns: dict[str, str]
    right_columns: dict[str, str]
    filters: tuple[bool, bool] = (False, False)

    def __post_init__(self) -> None:
        self.columns = (dict(self.left_columns), dict(self.right_columns))
        self.made = [_Columns(self.left), _Columns(self.right)]

    def operator(self, index: int) -> Operator:
        return self.made[index].operator

    def without_clock(self, on: exp.Expr) -> exp.Expr:
        kept: list[exp.Expr] = []
        for part in conjuncts(on):
            index = self.side(part)
            if clock.reads_clock(part) and index is not None and self.filters[index]:
                below = self.made[index]
                below.child = pushed(below.child, self.on_side(part, index))
            else:
                kept.append(part)
        return sql.conjunction([self.replaced(part) for part in kept]) or exp.Boolean(this=True)

    def replaced(self, part: exp.Expr) -> exp.Expr:
        """`part` with columns in the places of what reads the clock."""
        if not clock.reads_clock(part):
            return part.copy()
        index = self.side(part)
        if index is not None and is_settled(part):
            made = self.made[index].column(self.on_side(part, index)).name
            taken = {name.lower() for columns in self.columns for name in columns}
            names = {inner: out for out, inner in self.columns[index].items()}
            if made not in names:
                names[made] = unique_name(made, taken)
                self.columns[index][names[made]] = made
            return column(names[made])
        if not list(part.iter_expressions()) or clock.reading(part) is not None:
            raise ClockError(part)
        copy = part.copy()
        for child in list(copy.iter_expressions()):
            if clock.reads_clock(child):
                child.replace(self.replaced(child))
        return copy

    def side(self, part: exp.Expr) -> int | None:
        """The one side that `part` reads; the right one if it reads none."""
        read = sql.column_names(part)
        if not read:
            return 1
        found = [index for index in (0, 1) if read <= self.columns[index].keys()]
        return found[0] if found else None

    def on_side(self, part: exp.Expr, index: int) -> exp.Expr:
        columns = self.columns[index]
        return sql.substitute(part, {name: column(columns[name]) for name in sql.column_names(part)})


def aggregated(operator: Aggregate, child: Lifted) -> Lifted:
    columns = _Columns(child.operator)
    keys = tuple((name, timeless(sql.substitute(value, child.values), columns)) for name, value in operator.keys)
    calls = tuple((name, timeless_call(call, child.values, columns)) for name, call in operator.calls)
    return Lifted(replace(operator, child=columns.operator, keys=keys, calls=calls))


def timeless(value: exp.Expr, columns: _Columns) -> exp.Expr:
    return columns.column(value) if clock.reads_clock(value) else value


def timeless_call(call: Call, values: Values, columns: _Columns) -> Call:
    expression = sql.substitute(call.expression, values)
    if not clock.reads_clock(expression):
        return describe(expression) if values else call
    condition = expression.expression.this.copy() if isinstance(expression, exp.Filter) else None

    def visit(node: exp.Expr, top: bool = False) -> exp.Expr:
        if not clock.reads_clock(node):
            return node
        if not top and not isinstance(node, CALL_PARTS):
            value = node.copy()
            if condition is not None and node.find_ancestor(exp.Where) is None:
                # an argument is computed only where FILTER lets the row in
                value = exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])
            return columns.column(value)
        for part in list(node.iter_expressions()):
            found = visit(part, top=top and isinstance(node, exp.Filter) and part is node.this)
            if found is not part:
                part.replace(found)
        return node

    return describe(visit(expression, top=True))


def passed(operator: Operator, child: Lifted) -> Lifted:
    """An operator that adds columns to those of its child, and lets lifted ones through."""
    for value in expressions_of(operator):
        bound = sql.substitute(value, child.values)
        if clock.reads_clock(bound):
            raise ClockError(bound)
    return Lifted(operator.with_inputs((child.operator,)), child.values)

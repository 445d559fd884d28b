"""TemporalFilter and TemporalColumns: what depends on the clock.

    delta = the delta of the input, as the operator took it then  +  what the passing of time made of the new input

The second part are the rows that *crossed*: those of the input that pass now and did not pass then, less those that
passed then and do not now (or rows whose computed columns are others now, as they are now less as they were then). It
is found before the program runs, so that a join whose rows did not cross needs no term for it. Where the predicate is
a comparison with a moving bound, the crossed rows lie between the two positions of the bound: a range that DuckDB finds
by its zone maps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_openivm.compiler import clock, sql
from dbt_openivm.compiler.algebra import Temporal, TemporalColumns, TemporalFilter
from dbt_openivm.compiler.fragment import Fragment, times
from dbt_openivm.compiler.rules.context import Context, SourceState
from dbt_openivm.compiler.rules.forms import Form, Forms
from dbt_openivm.names import MULTIPLICITY


@dataclass(frozen=True)
class ClockState(SourceState):
    """The clock at a refresh: an instant as microseconds since 1970 at the cursor, and another one now."""

    now: int = 0
    then: int = 0

    @property
    def shape(self) -> str:
        return "empty" if self.now == self.then else "mixed"


def clock_state(then: int, now: int) -> ClockState:
    return ClockState("", now=now, then=then)


def crossing_key(number: int) -> str:
    """Under this key a program finds the rows that crossed, as the state of a source."""
    return f"{clock.CLOCK}:{number}"


def crossing_table(number: int) -> str:
    return f"openivm_crossed_{number}"


def delta(operator: Temporal, context: Context, forms: Forms) -> list[Fragment]:
    fragments = as_of(operator, forms.delta(operator.child, context), then(context))
    crossed = context.states.get(crossing_key(operator.number))
    if crossed is not None and crossed.shape != "empty":
        alias = context.alias("crossed")
        columns = {name: sql.qualified(alias, name) for name in operator.columns}
        weight = None if crossed.shape == "insert-only" and crossed.unit else sql.qualified(alias, MULTIPLICITY)
        fragments.append(Fragment((sql.table(crossed.log, alias),), (), columns, weight))
    return fragments


def new(operator: Temporal, context: Context, form: Form) -> list[Fragment]:
    return as_of(operator, form(operator.child, context), now(context))


def old(operator: Temporal, context: Context, form: Form) -> list[Fragment]:
    return as_of(operator, form(operator.child, context), then(context))


def as_of(operator: Temporal, fragments: list[Fragment], instant: int | None) -> list[Fragment]:
    """The operator over rows of its input, with the clock at `instant`."""
    return [applied(operator, fragment, instant) for fragment in fragments]


def applied(operator: Temporal, fragment: Fragment, instant: int | None) -> Fragment:
    if isinstance(operator, TemporalFilter):
        condition = fragment.bind(clock.at(operator.predicate, instant))
        return replace(fragment, conditions=(*fragment.conditions, condition))
    assert isinstance(operator, TemporalColumns)
    computed = {name: fragment.bind(clock.at(value, instant)) for name, value in operator.items}
    return replace(fragment, columns={**fragment.columns, **computed})


def now(context: Context) -> int | None:
    state = context.states.get(clock.CLOCK)
    return state.now if isinstance(state, ClockState) else None


def then(context: Context) -> int | None:
    state = context.states.get(clock.CLOCK)
    return state.then if isinstance(state, ClockState) else None


# --- the rows that crossed --------------------------------------------------------------------------------------------


def crossing(operator: Temporal, context: Context, form: Form) -> exp.Expr:
    """The rows that crossed since the last refresh, with their weights."""
    queries: list[exp.Expr] = []
    for fragment in form(operator.child, context):
        if isinstance(operator, TemporalFilter):
            queries.append(crossed_rows(operator, fragment, context))
        elif isinstance(operator, TemporalColumns):
            queries += changed_rows(operator, fragment, context)
    return sql.union_all(queries)


def crossed_rows(operator: TemporalFilter, fragment: Fragment, context: Context) -> exp.Expr:
    passes, passed = (
        kept(fragment.bind(clock.at(operator.predicate, instant))) for instant in (now(context), then(context))
    )
    change = exp.Case(ifs=[exp.If(this=passes.copy(), true=sql.one())], default=exp.Neg(this=sql.one()))
    conditions = [
        *moved(operator.predicate, context),
        *(fragment.bind(part) for part in between(operator.predicate, context)),
        exp.NEQ(this=passes, expression=passed),
    ]
    weight = times(fragment.weight, change) or change
    items = [*fragment.all_items(), sql.named(weight, MULTIPLICITY)]
    return fragment.select(items, extra=conditions)


def changed_rows(operator: TemporalColumns, fragment: Fragment, context: Context) -> list[exp.Expr]:
    here, before = (applied(operator, fragment, instant) for instant in (now(context), then(context)))
    changes = [
        part
        for name, value in operator.items
        for part in differs(here.columns[name], before.columns[name], isinstance(value, exp.Predicate | exp.Connector))
    ]
    conditions = [any_of(changes), *moved(exp.Tuple(expressions=[value for _, value in operator.items]), context)]
    if len(operator.items) == 1:
        conditions += [fragment.bind(part) for part in between(operator.items[0][1], context)]
    minus = times(before.weight, exp.Neg(this=sql.one()))
    rows = [here, replace(before, weight=minus)]
    return [row.select(row.all_items(), weighted=True, extra=conditions) for row in rows]


def differs(value: exp.Expr, other: exp.Expr, exact: bool) -> list[exp.Expr]:
    """By text too, unless the type is known to be exact: DuckDB calls 30 days and a month equal."""
    changed: list[exp.Expr] = [exp.NullSafeNEQ(this=sql.operand(value.copy()), expression=sql.operand(other.copy()))]
    if not exact:
        texts = (sql.cast(part.copy(), "VARCHAR") for part in (value, other))
        changed.append(exp.NullSafeNEQ(this=next(texts), expression=next(texts)))
    return changed


def any_of(conditions: list[exp.Expr]) -> exp.Expr:
    result = conditions[0]
    for condition in conditions[1:]:
        result = exp.Or(this=result, expression=condition)
    return exp.Paren(this=result)


def kept(predicate: exp.Expr) -> exp.Expr:
    """Whether a filter keeps the row: an unknown predicate does not."""
    return exp.Coalesce(this=sql.cast(predicate, "BOOLEAN"), expressions=[exp.Boolean(this=False)])


def moved(expression: exp.Expr, context: Context) -> list[exp.Expr]:
    """A constant condition: whether any bound in the expression moved. The month that now() is in seldom does."""
    changes: list[exp.Expr] = []
    for bound in dict.fromkeys(moving_parts(expression)):
        changes += differs(clock.at(bound, now(context)), clock.at(bound, then(context)), exact=is_simple(bound))
    return [any_of(changes)]


def moving_parts(expression: exp.Expr) -> list[exp.Expr]:
    """The largest parts that are simple functions of the clock alone."""
    if not clock.reads_clock(expression):
        return []
    if is_simple(expression) or clock.reading(expression) is not None:
        return [expression]
    return [part for child in expression.iter_expressions() for part in moving_parts(child)]


SIMPLE = (
    exp.Add, exp.Sub, exp.Interval, exp.Literal, exp.Var, exp.Paren, exp.Neg, exp.TimestampTrunc, exp.DateTrunc,
    exp.Cast, exp.DataType, exp.AtTimeZone,
)  # fmt: skip
TEMPORAL_TYPES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "INTERVAL")


def is_simple(expression: exp.Expr) -> bool:
    """Whether an expression is arithmetic of the clock and constants on points of time: no text, nothing that fails."""
    for node in expression.walk(prune=lambda part: clock.reading(part) is not None):
        if clock.reading(node) in ("ago()", "current_time"):
            return False
        if clock.reading(node) is not None:
            continue
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        if not isinstance(node, SIMPLE) and name not in ("date_trunc", "datetrunc"):
            return False
        if isinstance(node, exp.Cast) and node.to.sql(sql.DIALECT).upper() not in TEMPORAL_TYPES:
            return False
    return True


COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ)


def between(predicate: exp.Expr, context: Context) -> list[exp.Expr]:
    """For a comparison of something with a moving bound: it lies between the bound's positions then and now."""
    predicate = predicate.unnest()
    if not isinstance(predicate, COMPARISONS):
        return []
    left, right = predicate.this, predicate.expression
    if clock.reads_clock(left):
        left, right = right, left
    if clock.reads_clock(left) or not sql.column_names(left) or not is_bound(right):
        return []
    bounds = [clock.at(right, instant) for instant in (now(context), then(context))]
    ends = [call(*(bound.copy() for bound in bounds)) for call in (least, greatest)]
    inside = exp.Between(this=sql.operand(left.copy()), low=ends[0], high=ends[1])
    unknown = [exp.Is(this=sql.operand(bound), expression=exp.Null()) for bound in bounds]
    return [any_of([*unknown, inside])]


def is_bound(value: exp.Expr) -> bool:
    """Whether a bound is a point of time: texts and numbers could be compared in another order than `least` has."""
    return clock.reads_clock(value) and is_simple(value)


def least(value: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="least", expressions=[value, other])


def greatest(value: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="greatest", expressions=[value, other])

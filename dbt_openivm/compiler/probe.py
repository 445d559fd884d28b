"""Types the compiler needs from DuckDB: of unions (to cast their branches), of both sides of joins, and of aggregate
arguments and results.

The compiler has no connection. It states what it wants as queries and finds the answers in a mapping from query to
types; without an answer a type is None, and the rules that depend on it take the path that is right for every type.

A question is asked of a *sketch*: below an operator whose types are known stands one row of NULLs of these types. So no
question is longer than what lies between two such operators, however deep the query is, and none reads a source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import (
    Aggregate,
    Constant,
    Filter,
    Join,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    Scan,
    SemiJoin,
    Temporal,
    TopK,
    UnionAll,
    Unnest,
    Window,
    column,
)
from dbt_openivm.compiler.rules import Context, SourceState, new

Types = tuple[str, ...]


class Answers(Mapping[str, Types]):
    """Types by query: those that are known, and those that `describe` gives when they are asked for.

    Attributes:
        asked: what `describe` was asked, with its answers, in order.
    """

    def __init__(self, known: Mapping[str, Types], describe: Callable[[str], Types]) -> None:
        self.known = known
        self.describe = describe
        self.asked: dict[str, Types] = {}

    def __getitem__(self, query: str) -> Types:
        if query in self.known:
            return self.known[query]
        if query not in self.asked:
            self.asked[query] = self.describe(query)
        return self.asked[query]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.known, **self.asked})

    def __len__(self) -> int:
        return len({**self.known, **self.asked})


def live_context(operator: Operator) -> Context:
    """A context that reads every source as it stands."""
    states = {op.relation.key: SourceState(op.relation.sql) for op in operator.walk() if isinstance(op, Scan)}
    return Context(states)


def rows_query(operator: Operator) -> str:
    """The operator's rows as a query over the live sources."""
    context = live_context(operator)
    fragment = context.single(new(operator, context), operator.columns)
    return sql.text(fragment.select(fragment.all_items() or [exp.Literal.number(1)]))


def argument_query(aggregate: Aggregate) -> str:
    """One column for each simple argument, then one for each call, then one for each key."""
    context = live_context(aggregate)
    source = context.single(new(aggregate.child, context), aggregate.child.columns)
    values = [source.bind(call.argument) for _, call in aggregate.calls if call.argument is not None]
    items = [any_value(value, f"a{index}") for index, value in enumerate(values)]
    items += [sql.named(source.bind(call.expression), f"c{index}") for index, (_, call) in enumerate(aggregate.calls)]
    items += [any_value(source.bind(value), f"k{index}") for index, (_, value) in enumerate(aggregate.keys)]
    return sql.text(source.select(items))


def any_value(value: exp.Expr, name: str) -> exp.Expr:
    """What may stand beside aggregate calls without being a key."""
    return exp.Alias(this=exp.AnyValue(this=value), alias=sql.identifier(name))


def resolve_types(operator: Operator, types: Mapping[str, Types]) -> Operator:
    """Note the types of aggregate calls and of both sides of joins; cast the branches of every UNION ALL to its types.

    DuckDB coerces branches when they meet; a delta may come from one branch alone and would keep that branch's type.
    """
    return Resolver(types).visit(operator).operator


@dataclass(frozen=True)
class Typed:
    """An operator with its types noted, and a stand-in for it that has columns of the same names and types."""

    operator: Operator
    sketch: Operator


@dataclass
class Resolver:
    """Resolves types from the leaves up."""

    answers: Mapping[str, Types]
    done: dict[int, Typed] = field(default_factory=dict)

    def visit(self, operator: Operator) -> Typed:
        if id(operator) not in self.done:
            self.done[id(operator)] = self.typed(operator, [self.visit(child) for child in operator.inputs])
        return self.done[id(operator)]

    def typed(self, operator: Operator, inputs: list[Typed]) -> Typed:
        resolved = operator.with_inputs(tuple(part.operator for part in inputs))
        sketches = tuple(part.sketch for part in inputs)
        plain = operator.with_inputs(sketches)
        if isinstance(operator, Scan):
            known = {column.name: column.type for column in operator.relation.columns}
            types = tuple(known[source] for _, source in operator.names)
            return Typed(resolved, stand_in(operator.columns, types, plain))
        if isinstance(operator, Filter | SemiJoin | TopK | Temporal):
            return self.as_below(operator, resolved, sketches)
        if isinstance(operator, OuterJoin):
            assert isinstance(resolved, OuterJoin)
            sides = replace(resolved, types=self.types_of_all(sketches))
            return Typed(sides, Join(sketches, operator.names))
        if isinstance(operator, UnionAll):
            return self.union(operator, inputs)
        if isinstance(operator, Aggregate):
            assert isinstance(resolved, Aggregate)
            return self.aggregate(resolved, plain)
        if isinstance(operator, Recursive):
            assert isinstance(resolved, Recursive)
            types_ = self.types_of(sketches[0])
            return Typed(replace(resolved, types=types_), stand_in(operator.columns, types_, plain))
        return Typed(resolved, plain)

    def as_below(self, operator: Operator, resolved: Operator, sketches: tuple[Operator, ...]) -> Typed:
        """What only chooses among the rows of its first input."""
        if isinstance(resolved, SemiJoin):
            resolved = replace(resolved, types=self.types_of_all(sketches))
        elif isinstance(resolved, TopK):
            resolved = replace(resolved, types=self.types_of(sketches[0]))
        same = operator.columns == sketches[0].columns
        return Typed(resolved, sketches[0] if same else operator.with_inputs(sketches))

    def union(self, operator: UnionAll, inputs: list[Typed]) -> Typed:
        sketch = UnionAll(tuple(part.sketch for part in inputs))
        have = [self.types_of(part.sketch) for part in inputs]
        wanted = have[0] if all(types == have[0] for types in have) else self.ask(sketch)
        children = tuple(retyped(part.operator, wanted, types) for part, types in zip(inputs, have, strict=True))
        return Typed(UnionAll(children), stand_in(operator.columns, wanted, sketch))

    def aggregate(self, resolved: Aggregate, plain: Operator) -> Typed:
        assert isinstance(plain, Aggregate)
        below = static_types(plain.child)
        keys = tuple(below.get(value.name) if isinstance(value, exp.Column) else None for _, value in plain.keys)
        answer = None
        if plain.calls or None in keys:
            answer = self.answers.get(argument_query(plain)) or None
        arguments = [name for name, call in plain.calls if call.argument is not None]
        if answer is None:
            types: tuple[tuple[str | None, str | None], ...] = tuple((None, None) for _ in plain.calls)
            whole = None if plain.calls or None in keys else keys
        else:
            found = dict(zip(arguments, answer, strict=False))
            results = answer[len(arguments) : len(arguments) + len(plain.calls)]
            types = tuple((found.get(name), result) for (name, _), result in zip(plain.calls, results, strict=True))
            whole = (*answer[len(arguments) + len(plain.calls) :], *results)
        return Typed(replace(resolved, types=types), stand_in(plain.columns, whole, plain))

    # --- types -------------------------------------------------------------------------------------------------------

    def types_of(self, sketch: Operator) -> Types | None:
        """The types of a sketch's columns; None if DuckDB does not tell."""
        if not sketch.columns:
            return ()
        known = static_types(sketch)
        found = tuple(known.get(name) for name in sketch.columns)
        if all(found):
            return tuple(type_ for type_ in found if type_)
        return self.ask(sketch)

    def types_of_all(self, sketches: tuple[Operator, ...]) -> Types | None:
        """Those of several sketches, one after the other; None if some are unknown."""
        found = [self.types_of(sketch) for sketch in sketches]
        return None if None in found else tuple(type_ for types in found for type_ in types or ())

    def ask(self, sketch: Operator) -> Types | None:
        if not sketch.columns:
            return ()
        found = self.answers.get(rows_query(sketch)) or ()
        return found if found and all(found) else None


def stand_in(columns: tuple[str, ...], types: tuple[str | None, ...] | None, otherwise: Operator) -> Operator:
    """One row of NULLs of the types; `otherwise` where one is not known."""
    if types is None or not columns or not all(types):
        return otherwise
    return Constant((tuple(sql.cast(exp.Null(), type_ or "") for type_ in types),), columns)


def static_types(sketch: Operator) -> dict[str, str]:
    """The types of those columns of a sketch that need no question."""
    if isinstance(sketch, Constant) and len(sketch.rows) == 1:
        pairs = zip(sketch.names, sketch.rows[0], strict=True)
        return {name: sql.text(value.args["to"]) for name, value in pairs if is_typed_null(value)}
    if isinstance(sketch, Project):
        below = static_types(sketch.child)
        bare = {name: value.name for name, value in sketch.items if isinstance(value, exp.Column)}
        return {name: below[inner] for name, inner in bare.items() if inner in below}
    if isinstance(sketch, Join):
        sides = [static_types(child) for child in sketch.children]
        return {out: sides[index][inner] for out, index, inner in sketch.names if inner in sides[index]}
    if isinstance(sketch, Filter | Window | Unnest):
        return static_types(sketch.inputs[0])
    return {}


def is_typed_null(value: exp.Expr) -> bool:
    return isinstance(value, exp.Cast) and isinstance(value.this, exp.Null) and isinstance(value.args["to"], exp.Var)


def retyped(operator: Operator, wanted: Types | None, have: Types | None) -> Operator:
    if wanted is None or wanted == have:
        return operator
    have = have or ("",) * len(wanted)
    items = tuple(
        (name, column(name) if a == b else sql.cast(column(name), a))
        for name, a, b in zip(operator.columns, wanted, have, strict=True)
    )
    return Project(operator, items)

"""Calls that make several rows of one: UNNEST and its kin in a select list, table functions over columns in FROM.

All become the core operator `Unnest`, over the rows that they stand beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbt_openivm.compiler.algebra import Constant, Operator, Unnest, column
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.expressions import function_name
from dbt_openivm.compiler.lower.rows import flat
from dbt_openivm.compiler.lower.scope import Scope
from dbt_openivm.compiler.lower.types import Nested, parse_type, type_of
from dbt_openivm.compiler.places import place
from dbt_openivm.errors import UnsupportedError

Item = tuple[str, exp.Expr]
Bind = Callable[[exp.Expr], exp.Expr]

LISTS = ("range", "generate_series")
"""Table functions that are the elements of what the function of the same name gives as a list."""
OPTIONS = ("recursive", "max_depth", "keep_parent_names")


# --- in a select list -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """A call in a select list.

    Attributes:
        value: its argument, bound.
        levels: how many lists lie in each other that it takes apart.
        fields: (name, path of fields) of the columns that it makes of a struct; empty if it makes none.
        name: of the column of the elements.
    """

    value: exp.Expr
    levels: int
    fields: tuple[tuple[str, tuple[str, ...]], ...]
    name: str


def is_spread(node: exp.Expr) -> bool:
    """Whether `node` makes several rows of one."""
    if isinstance(node, exp.Unnest | exp.Explode):
        return True
    named = isinstance(node, exp.Anonymous)
    return named and function_name(node) in ("unnest", "generate_subscripts", "regexp_split_to_table")


def has_spread(node: exp.Expr) -> bool:
    return any(is_spread(part) for part in node.walk(prune=lambda part: isinstance(part, exp.Query)))


def argument(node: exp.Expr) -> exp.Expr:
    """The list that a call takes apart, unbound."""
    parts = [part for part in node.iter_expressions() if not is_option(part)]
    name = function_name(node)
    if name == "generate_subscripts" and len(parts) == 2:
        length = exp.Anonymous(this="array_length", expressions=parts)
        return exp.GenerateSeries(start=exp.Literal.number(1), end=length)
    if name == "regexp_split_to_table" and len(parts) == 2:
        return exp.Anonymous(this="string_split_regex", expressions=parts)
    if len(parts) != 1 or name in ("generate_subscripts", "regexp_split_to_table"):
        raise UnsupportedError(f"UNNEST of several arguments{place(node)}")
    return parts[0]


def is_option(node: exp.Expr) -> bool:
    return isinstance(node, exp.PropertyEQ | exp.Kwarg) and node.this.name.lower() in OPTIONS


def options(node: exp.Expr) -> dict[str, exp.Expr]:
    return {part.this.name.lower(): part.expression for part in node.iter_expressions() if is_option(part)}


def shape(node: exp.Expr, type_: Nested) -> tuple[int, tuple[tuple[str, tuple[str, ...]], ...]]:
    """(levels, fields) of a call; see `Spread`."""
    given = options(node)
    depth = (
        1_000_000 if is_true(given.get("recursive")) else int(given["max_depth"].name) if "max_depth" in given else 1
    )
    levels = 0
    while depth > 0 and type_.element is not None:
        levels, depth, type_ = levels + 1, depth - 1, parse_type(type_.element)
    found = tuple(paths(type_, depth)) if type_.fields and depth > 0 else ()
    if not levels and not found:
        if type_.text in ('"NULL"', "NULL"):
            return 1, ()
        raise UnsupportedError(f"UNNEST of a {type_.text}{place(node)}")
    parents = is_true(given.get("keep_parent_names"))
    return levels, tuple((".".join(path) if parents else path[-1], path) for path in found)


def is_true(value: exp.Expr | None) -> bool:
    return isinstance(value, exp.Boolean) and bool(value.this)


def paths(type_: Nested, depth: int) -> list[tuple[str, ...]]:
    """The fields of a struct, and of the structs in it down to `depth`."""
    found: list[tuple[str, ...]] = []
    for name, text in type_.fields:
        inner = parse_type(text)
        deeper = paths(inner, depth - 1) if depth > 1 and inner.fields else [()]
        found += [(name, *path) for path in deeper]
    return found


class Spreads:
    """Takes the calls out of a select list.

    Args:
        bind: binds an argument over the rows that the calls stand beside.
        rows: these rows, for types.
        around: the scope around the query.
        prefix: of the names of the elements' columns.
    """

    def __init__(
        self,
        bind: Bind,
        rows: Callable[[], Operator],
        facts: CompileFacts,
        around: Scope | None = None,
        prefix: str = "openivm_element",
    ) -> None:
        self.bind = bind
        self.rows = rows
        self.facts = facts
        self.around = around
        self.prefix = prefix
        self.calls: list[Spread] = []

    def lift(self, items: Sequence[Item], chosen: Callable[[Item], bool] = lambda _item: True) -> list[Item]:
        """The items with columns in the places of the calls; one that makes a struct's fields becomes several."""
        lifted: list[Item] = []
        for item in items:
            lifted += self.fields(item) if chosen(item) and has_spread(item[1]) else [item]
        return lifted

    def fields(self, item: Item) -> list[Item]:
        name, value = item
        if is_spread(value.unnest()):
            spread = self.spread(value.unnest())
            if spread.fields:
                return [(field, dotted(self.element(spread, value.unnest()), path)) for field, path in spread.fields]
            return [(name, self.element(spread, value))]
        copy = value.copy()
        for node in list(copy.walk(prune=lambda part: isinstance(part, exp.Query))):
            if is_spread(node) and node.parent is not None:
                if has_spread(exp.Tuple(expressions=[part.copy() for part in node.iter_expressions()])):
                    raise UnsupportedError(f"UNNEST within UNNEST{place(node)}")
                spread = self.spread(node)
                if spread.fields:
                    raise UnsupportedError(f"UNNEST of a struct within an expression{place(node)}")
                node.replace(self.element(spread, node))
        copy.meta.update(value.meta)
        return [(name, copy)]

    def spread(self, node: exp.Expr) -> Spread:
        if node.find(exp.Window):
            raise UnsupportedError(f"UNNEST of a window call{place(node)}")
        bound = self.bind(argument(node))
        levels, fields = shape(node, type_of(self.rows(), bound, self.facts, f"UNNEST{place(node)}", self.around))
        spread = Spread(bound, levels, fields, f"{self.prefix}_{len(self.calls)}")
        self.calls.append(spread)
        return spread

    def element(self, spread: Spread, node: exp.Expr) -> exp.Expr:
        """What stands in the place of a call: the column of its elements, or the struct itself."""
        if spread.levels:
            return flat(spread.name)
        return argument(node)

    def over(self, operator: Operator) -> Operator:
        """The rows with the elements beside them.

        Lists that lie deepest in others are opened first: what has fewer levels goes side by side with their last ones.
        """
        calls = [call for call in self.calls if call.levels]
        inputs = [call.value for call in calls]
        for level in range(max((call.levels for call in calls), default=0), 0, -1):
            items = []
            for index, call in enumerate(calls):
                if call.levels >= level:
                    name = call.name if level == 1 else f"{call.name}_{level}"
                    items.append((name, inputs[index]))
                    inputs[index] = column(name)
            operator = Unnest(operator, tuple(items))
        return operator


def no_spreads() -> Spreads:
    """Of a select list without such calls."""
    return Spreads(lambda node: node, lambda: Constant((), ()), CompileFacts())


def dotted(value: exp.Expr, path: Sequence[str]) -> exp.Expr:
    for name in path:
        value = exp.Dot(this=value, expression=exp.to_identifier(name, quoted=True))
    return value


# --- in FROM ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Series:
    """A table function that gives the elements of a list.

    Attributes:
        value: the list, unbound.
        alias: what it is called.
        names: of its columns: the elements and, with `numbered`, their numbers.
        function: what the column of the elements may be called besides; see `Binding`.
    """

    value: exp.Expr
    alias: str
    names: tuple[str, ...]
    function: str = ""

    @property
    def numbered(self) -> bool:
        return len(self.names) == 2

    @property
    def is_constant(self) -> bool:
        return not any(isinstance(part, exp.Column | exp.Query) for part in self.value.walk())


def series(item: exp.Expr) -> Series | None:
    """A FROM item as the elements of a list, if it is one."""
    call = item
    while isinstance(call, exp.Lateral | exp.Table):
        call = call.this
    if isinstance(call, exp.Unnest) and len(call.expressions) == 1:
        value, name = call.expressions[0], "unnest"
    elif isinstance(call, exp.Func) and function_name(call) in LISTS:
        value, name = call, function_name(call)
        if isinstance(call, exp.GenerateSeries) and call.args.get("is_end_exclusive"):
            name = "range"
    elif isinstance(call, exp.GenerateSeries):
        value, name = call, "range" if call.args.get("is_end_exclusive") else "generate_series"
    else:
        return None
    offset = call.args.get("offset") if isinstance(call, exp.Unnest) else item.args.get("ordinality")
    given = item.args.get("alias") or call.args.get("alias")
    renamed = tuple(part.name for part in given.columns) if given is not None else ()
    if isinstance(offset, exp.Identifier):
        renamed = (*renamed, offset.name)  # sqlglot takes the last name of the list for that of the numbers
    alias = (given.name if given is not None else "") or name
    names = (name, "ordinality") if offset else (alias,)
    bare = value.copy()
    if isinstance(bare, exp.Unnest):
        bare.set("alias", None)
    return Series(bare, alias, renamed + names[len(renamed) :], "" if renamed or offset else name)


def items_of(found: Series, value: exp.Expr, names: Sequence[str]) -> tuple[Item, ...]:
    """The lists to take apart."""
    lists = [value]
    if found.numbered:
        lists.append(exp.GenerateSeries(start=exp.Literal.number(1), end=length(value)))
    return tuple(zip(names, lists, strict=True))


def left_items(found: Series, value: exp.Expr, names: Sequence[str], condition: exp.Expr) -> tuple[Item, ...]:
    """The lists of a LEFT JOIN: only elements that fulfil its condition, and NULL where there are none."""
    always = is_true(condition.unnest())
    if found.numbered and not always:
        raise UnsupportedError(f"LEFT JOIN of {found.alias} WITH ORDINALITY on a condition")
    if condition.find(exp.Query):
        raise UnsupportedError(f"LEFT JOIN of {found.alias} on a subquery")
    kept = only_where(value, condition, names[0])
    return tuple((name, or_null(kept, each)) for name, each in items_of(found, kept, names))


def length(value: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="len", expressions=[value.copy()])


def or_null(value: exp.Expr, each: exp.Expr) -> exp.Expr:
    """`each`, or one NULL where `value` has no elements."""
    filled = exp.GT(this=length(value), expression=exp.Literal.number(0))
    empty = exp.Array(expressions=[exp.Null()])
    return exp.Case(ifs=[exp.If(this=filled, true=each.copy())], default=empty)


def only_where(value: exp.Expr, condition: exp.Expr, name: str) -> exp.Expr:
    """The elements of a list that fulfil a condition over the column `name`, as a list whatever it was."""
    variable = "openivm_element"

    def local(node: exp.Expr) -> exp.Expr:
        own = isinstance(node, exp.Column) and not node.args.get("table") and node.name == name
        return exp.to_identifier(variable, quoted=True) if own else node

    body = exp.Paren(this=condition.copy()).transform(local)
    function = exp.Lambda(this=body, expressions=[exp.to_identifier(variable, quoted=True)])
    return exp.Anonymous(this="list_filter", expressions=[value.copy(), function])


def series_rows(found: Series, bind: Bind) -> Operator:
    """A series on its own."""
    names = tuple(f"openivm_column_{index}" for index in range(len(found.names)))
    return Unnest(Constant(((),), ()), items_of(found, bind(found.value), names))

"""ORDER BY with LIMIT and OFFSET, and DISTINCT ON: which rows are first.

ORDER BY alone changes nothing, for a view is a bag. What is ordered by and not shown is a hidden column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbt_openivm.compiler.algebra import (
    Aggregate,
    Filter,
    Join,
    Operator,
    Project,
    TopK,
    Window,
    column,
    exactly,
    unique_name,
)
from dbt_openivm.compiler.lower.arrays import is_everything
from dbt_openivm.compiler.lower.reading import LAST
from dbt_openivm.compiler.lower.windows import PARTITION, partition_keys
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import operand
from dbt_openivm.errors import UnsupportedError

Order = tuple[exp.Ordered, ...]
"""Ordered columns of an operator."""
Find = Callable[[exp.Expr], str]
"""The column that holds what is ordered by."""

FIRST_ROW = "openivm_first_row"


@dataclass(frozen=True)
class Limit:
    """LIMIT and OFFSET, which read no column; None where there is none.

    Attributes:
        constant: whether no subquery gives them either.
    """

    limit: exp.Expr | None
    offset: exp.Expr | None
    percent: bool

    @property
    def constant(self) -> bool:
        return not any(value is not None and value.find(exp.Query) for value in (self.limit, self.offset))

    @property
    def first(self) -> bool:
        """Whether the first row stays, whatever its place: no more than it may be asked for."""
        known = isinstance(self.limit, exp.Literal) and self.limit.is_int and int(self.limit.name) > 0
        return self.offset is None and known and not self.percent

    @property
    def nothing(self) -> bool:
        return isinstance(self.limit, exp.Literal) and self.limit.is_int and int(self.limit.name) == 0


def limit_of(node: exp.Expr) -> Limit | None:
    """What a query's LIMIT, FETCH and OFFSET say; None if they leave all rows."""
    clause = node.args.get("limit")
    value = None if clause is None else clause.args.get("count" if isinstance(clause, exp.Fetch) else "expression")
    options = None if clause is None else clause.args.get("limit_options")
    if clause is not None and value is None:
        raise UnsupportedError(f"FETCH without a number{place(clause)}")
    offset = node.args.get("offset")
    found = Limit(
        number_of_rows(value, "LIMIT"),
        number_of_rows(None if offset is None else offset.expression, "OFFSET"),
        options is not None and bool(options.args.get("percent")),
    )
    return None if found.limit is None and found.offset is None else found


def number_of_rows(value: exp.Expr | None, name: str) -> exp.Expr | None:
    """A number of rows, unbound; None for ALL and NULL, which are no limit."""
    if value is None or isinstance(value, exp.Null) or (isinstance(value, exp.Var) and value.name.upper() == "ALL"):
        return None
    value = value if isinstance(value, exp.Subquery) else value.unnest()
    for part in value.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(part, exp.Column | exp.Placeholder | exp.Parameter):
            raise UnsupportedError(f"{name} of what is no constant{place(part)}")
    return value


def find_order(order: exp.Order | None, columns: Sequence[str], find: Find, settings: Sequence[str]) -> Order:
    """ORDER BY over the columns that hold what is ordered by, in words that no setting changes.

    Args:
        columns: those that ALL means.
        settings: of the session, as in the facts.
    """
    found: list[exp.Ordered] = []
    for item in [] if order is None else order.expressions:
        for name in columns if is_everything(item.this) else [find(item.this)]:
            copy = item.copy()
            copy.set("this", column(name))
            found.append(explicit(copy, settings))
    return tuple(found)


def explicit(item: exp.Ordered, settings: Sequence[str]) -> exp.Ordered:
    """`item` with its direction and the place of NULL, which the settings give where the query does not."""
    chosen = dict(setting.split(" = ", 1) for setting in settings if " = " in setting)
    if item.args.get("desc") is None:
        item.set("desc", chosen.get("default_order", "").upper().startswith("DESC"))
    if not item.args.get("nulls_first") and item.args.get("with_fill") is None:
        rule = chosen.get("default_null_order", "").upper()
        if "_ON_" in rule:  # NULLS_FIRST_ON_ASC_LAST_ON_DESC, NULLS_LAST_ON_ASC_FIRST_ON_DESC
            first = rule.startswith("NULLS_FIRST") != bool(item.args["desc"])
        else:
            first = rule.startswith("NULLS_FIRST")
        item.set("nulls_first", first)
        item.set("with_fill", None if first else LAST.copy())
    return item


def limited(operator: Operator, order: Order, limit: Limit | None, node: exp.Expr) -> Operator:
    """The rows that constant LIMIT and OFFSET leave."""
    if limit is None or (limit.first and one_row(operator)):
        return operator
    if limit.nothing:
        return Filter(operator, exp.Boolean(this=False))
    refuse_unordered(order, node)
    return TopK(operator, order, limit.limit, limit.offset, limit.percent)


def refuse_unordered(order: Order, node: exp.Expr) -> None:
    """Which rows are first must be said."""
    if not order:
        name = "LIMIT" if node.args.get("limit") else "OFFSET"
        raise UnsupportedError(f"{name} without ORDER BY{place(node.args[name.lower()])}")


def one_row(operator: Operator) -> bool:
    """Whether there can be no second row."""
    while isinstance(operator, Filter | Project):
        operator = operator.child
    if isinstance(operator, Join):
        return all(map(one_row, operator.children))
    return isinstance(operator, Aggregate) and operator.scalar


def first_of_each(
    operator: Operator, keys: Sequence[str], order: Order, limit: exp.Expr | None, offset: exp.Expr | None = None
) -> Operator:
    """The first rows of each key: `limit` of them after `offset`, constants."""
    numbered, name = numbered_rows(operator, keys, order)
    first: Operator = numbered
    if offset is not None:
        first = Filter(first, exp.GT(this=column(name), expression=operand(offset)))
    if limit is not None:
        last = operand(limit) if offset is None else exp.Add(this=operand(offset), expression=operand(limit))
        first = Filter(first, exp.LTE(this=column(name), expression=last))
    return exactly(first, operator.columns)


def numbered_rows(operator: Operator, keys: Sequence[str], order: Order) -> tuple[Window, str]:
    """(the rows with their place among those of their key, the column that holds it)."""
    taken = {name.lower() for name in operator.columns}
    name = unique_name(FIRST_ROW, taken)
    partition: list[exp.Expr] = [column(key) for key in keys]
    call = exp.Window(this=exp.RowNumber(), partition_by=partition, over="OVER")
    if order:
        call.set("order", exp.Order(expressions=[item.copy() for item in order]))
    hidden = tuple((unique_name(PARTITION, taken), key) for key in partition_keys(call))
    return Window(operator, ((name, call),), hidden), name

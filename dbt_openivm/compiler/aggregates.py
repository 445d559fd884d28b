"""Which nodes are aggregate calls, and what they say."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dbt_openivm.compiler.algebra import Call
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.expressions import function_name

GROUPING = (exp.Grouping, exp.GroupingId)
"""Written like an aggregate call, but a matter of the grouping set alone."""
WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)

NAMES: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Count: "count",
    exp.CountIf: "count_if",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor",
}
SYNONYMS = {
    "mean": "avg",
    "var": "var_samp",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "countif": "count_if",
    "kahan_sum": "fsum",
    "sumkahan": "fsum",
}


def is_call(node: exp.Expr, facts: CompileFacts) -> bool:
    """Whether `node` is an aggregate call, with its FILTER or WITHIN GROUP if it has one."""
    if isinstance(node, WRAPPERS):
        return is_call(node.this, facts)
    if isinstance(node, exp.AggFunc):
        return not isinstance(node, GROUPING)
    return isinstance(node, exp.Func) and function_name(node) in facts.aggregate_functions


def contains_call(node: exp.Expr, facts: CompileFacts) -> bool:
    """Whether an aggregate call stands under `node`, those of subqueries and of macros' bodies not counted.

    The function of a window call is none.
    """
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        return any(contains_call(part, facts) for part in read_by(node))
    return is_call(node, facts) or any(contains_call(part, facts) for part in node.iter_expressions())


def read_by(window: exp.Window) -> Iterator[exp.Expr]:
    """What a window call reads: its arguments, conditions and keys, but not the function itself."""
    inside: exp.Expr = window
    while isinstance(inside, (exp.Window, *WRAPPERS)):
        yield from (part for part in inside.iter_expressions() if part is not inside.this)
        inside = inside.this
    yield from inside.iter_expressions()


def describe(bound: exp.Expr) -> Call:
    """Take a bound aggregate call apart.

    Args:
        bound: the call over the child's columns, possibly wrapped in FILTER.
    """
    inner, condition = bound, None
    if isinstance(bound, exp.Filter):
        inner, condition = bound.this, bound.expression.this
    name = NAMES.get(type(inner)) or function_name(inner)
    name = SYNONYMS.get(name, name)
    arguments = [value for value in inner.iter_expressions() if not isinstance(value, exp.Star)]
    if name in ("count", "count_star") and not arguments:
        return Call("count_star", None, condition, bound, simple=True)
    argument = arguments[0] if len(arguments) == 1 else None
    simple = (
        argument is not None and not isinstance(inner, WRAPPERS) and not isinstance(argument, exp.Distinct | exp.Order)
    )
    return Call(name, argument if simple else None, condition, bound, simple)

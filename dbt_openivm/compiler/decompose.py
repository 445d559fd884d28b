"""Which aggregate calls have additive state, and what each aggregate is decomposed into."""

from __future__ import annotations

from dbt_openivm.compiler import components, sql
from dbt_openivm.compiler.algebra import Aggregate, Call
from dbt_openivm.compiler.components import Decomposition, Rule, count_star, parse
from dbt_openivm.compiler.folds import FOLDS
from dbt_openivm.compiler.statistics import PAIR_RULES, STATISTICS, pair_of

RULES: dict[str, Rule] = {**components.RULES, **STATISTICS, **FOLDS}
"""By DuckDB's name of the function: aggregates of one argument. (`PAIR_RULES` has those of two.)"""


def rule_of(call: Call) -> Rule | None:
    """The rule that decomposes a call; it may still refuse the argument's type."""
    if call.simple:
        return RULES.get(call.function)
    return PAIR_RULES.get(call.function) if pair_of(call) else None


def decompose(aggregate: Aggregate) -> Decomposition:
    """Decompose every call of `aggregate`."""
    result = Decomposition()
    result.add(count_star())
    types = aggregate.types or tuple((None, None) for _ in aggregate.calls)
    for (name, call), (argument_type, type_) in zip(aggregate.calls, types, strict=True):
        rule = rule_of(call)
        final = rule(result, call, argument_type) if rule else None
        if final is None:
            result.recompute[name] = sql.text(call.expression)
        else:
            # a component has the call's own type already
            bare = final.strip('"') in result.components
            result.finals[name] = parse(final) if bare or type_ is None else sql.cast(parse(final), type_)
    return result

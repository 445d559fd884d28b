"""Which aggregate calls have additive state, and what each aggregate is decomposed into."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_openivm.compiler import components, sql
from dbt_openivm.compiler.algebra import Aggregate, Call
from dbt_openivm.compiler.components import Decomposition, Rule, count_star, parse
from dbt_openivm.compiler.dialects import components as postgres
from dbt_openivm.compiler.folds import FOLDS
from dbt_openivm.compiler.statistics import PAIR_RULES, STATISTICS, pair_of

RULES: dict[str, Rule] = {**components.RULES, **STATISTICS, **FOLDS}
"""By DuckDB's name of the function: aggregates of one argument. (`PAIR_RULES` has those of two.)"""


DIALECTS: Mapping[str, tuple[Mapping[str, Rule], Mapping[str, Rule]]] = {
    "duckdb": (RULES, PAIR_RULES),
    "postgres": (postgres.RULES, {}),
}
"""Rules of one argument and of two, by the engine that adds up."""


def rule_of(call: Call, dialect: str = "duckdb") -> Rule | None:
    """The rule that decomposes a call; it may still refuse the argument's type."""
    rules, pair_rules = DIALECTS[dialect]
    if call.simple:
        return rules.get(call.function)
    return pair_rules.get(call.function) if pair_of(call) else None


def decompose(aggregate: Aggregate, dialect: str = "duckdb") -> Decomposition:
    """Decompose every call of `aggregate`."""
    result = Decomposition()
    result.add(count_star())
    types = aggregate.types or tuple((None, None) for _ in aggregate.calls)
    for (name, call), (argument_type, type_) in zip(aggregate.calls, types, strict=True):
        rule = rule_of(call, dialect)
        final = rule(result, call, argument_type) if rule else None
        if final is None:
            result.recompute[name] = sql.text(call.expression)
        else:
            # a component has the call's own type already
            bare = final.strip('"') in result.components
            result.finals[name] = parse(final) if bare or type_ is None else sql.cast(parse(final), type_)
    return result

"""What a query reaches through views and macros: bases, the texts it depends on, and whether it is volatile."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

from dbt_openivm.compiler.clock import reading
from dbt_openivm.compiler.facts import SQL_VIEW, CompileFacts
from dbt_openivm.compiler.lower.expressions import function_name
from dbt_openivm.compiler.lower.query import table_text
from dbt_openivm.compiler.lower.reading import read
from dbt_openivm.compiler.lower.references import operator_names, parse
from dbt_openivm.compiler.places import place

RANDOM: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.CurrentDatetime, "current_localtimestamp()"),
    (exp.Rand, "random()"),
    (exp.Uuid, "uuid()"),
)


FIXED = (exp.GenerateSeries, exp.Unnest)
FIXED_NAMES = frozenset({"range", "generate_series", "unnest", "repeat", "repeat_row"})


@dataclass
class Closure:
    """Attributes:
    bases: keys of the relations that are read, views looked through, in order of appearance.
    functions: names of the functions that the parser left as they are: macros are expanded by these names.
    mentions: how often each base is read.
    unused_cte: whether some CTE is read nowhere, so that what it mentions may be missing from the operator tree.
    texts: definitions of the views and macros on the way.
    volatile: which construct may change its value without a change of data, and where; None if none does.
    clock: whether something reads the clock, whose passing can be maintained in many places (see `lower.temporal`).
    opaque: whether something is read that the compiler does not know (a text it cannot parse, a table function): such a
        query may change at any time.
    """

    bases: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    mentions: Counter[str] = field(default_factory=Counter)
    unused_cte: bool = False
    texts: list[str] = field(default_factory=list)
    volatile: str | None = None
    clock: bool = False
    opaque: bool = False


def closure(query: str, facts: CompileFacts) -> Closure:
    """Follow a query through views and macros.

    Raises:
        QueryError: the text is no single SELECT.
    """
    reached = Closure()
    try:
        _visit(parse(query), facts, None, reached, frozenset())
    except sqlglot.errors.SqlglotError:
        reached.opaque = True
    return reached


def _visit(
    query: exp.Expr,
    facts: CompileFacts,
    context: tuple[str, str] | None,
    reached: Closure,
    above: frozenset[str],
    within: str = "",
) -> None:
    named = {table.name.lower() for table in query.find_all(exp.Table)}
    for node in query.walk():
        if isinstance(node, exp.CTE) and node.alias.lower() not in named:
            reached.unused_cte = True
        if isinstance(node, exp.Table):
            _visit_table(node, facts, context, reached, above)
        name = function_name(node)
        if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
            reached.functions.add(name)
        for called in (name, *operator_names(node)):
            for macro in () if called in above else facts.macros.get(called, ()):
                reached.texts.append(macro.text)
                _visit(read(macro.body), facts, context, reached, above | {called}, f" of the macro {called}")
        if reading(node) is not None:
            reached.clock = True
        elif reached.volatile is None:
            reached.volatile = volatile_construct(node, facts, within)


def _visit_table(
    node: exp.Table, facts: CompileFacts, context: tuple[str, str] | None, reached: Closure, above: frozenset[str]
) -> None:
    if means_cte(node):
        return
    by_text = facts.relations.get(table_text(node))
    by_name = None if isinstance(node.this, exp.Func) else facts.resolve(tuple(p.name for p in node.parts), context)
    relation = by_name or by_text
    if relation is None:
        reached.opaque = reached.opaque or not is_fixed(node)
        return
    if relation.kind != SQL_VIEW:
        reached.mentions[relation.key] += 1
        if relation.key not in reached.bases:
            reached.bases.append(relation.key)
    elif relation.key not in above:
        reached.texts.append(f"view {relation.key}: {relation.definition}")
        inner = read(relation.definition or "")
        _visit(inner, facts, relation.context, reached, above | {relation.key}, f" of the view {relation.key}")


def means_cte(table: exp.Table) -> bool:
    """Whether a name in FROM means a CTE in scope: those of every query around it, but not the one it stands in."""
    if len(table.parts) > 1 or isinstance(table.this, exp.Func):
        return False
    node: exp.Expr = table
    inside: exp.CTE | None = None
    while node.parent is not None:
        inside = node if isinstance(node, exp.CTE) else inside
        clause = None if isinstance(node.parent, exp.With) else with_clause(node.parent)
        if clause is not None and table.name.lower() in visible_ctes(clause, inside if node is clause else None):
            return True
        node = node.parent
    return False


def with_clause(query: exp.Expr) -> exp.With | None:
    clause = query.args.get("with_") or query.args.get("with")
    return clause if isinstance(clause, exp.With) else None


def visible_ctes(clause: exp.With, inside: exp.CTE | None) -> set[str]:
    """The names that a clause defines; for one of its own CTEs those before it (and itself, if it is recursive)."""
    names: set[str] = set()
    for cte in clause.expressions:
        if cte is inside:
            return names | ({cte.alias.lower()} if clause.recursive else set())
        names.add(cte.alias.lower())
    return names


def is_fixed(node: exp.Table) -> bool:
    """Whether an item of FROM that is no relation holds no data of its own: a function of its arguments."""
    if isinstance(node.this, exp.Func):
        return isinstance(node.this, FIXED) or function_name(node.this) in FIXED_NAMES
    return False


def volatile_construct(node: exp.Expr, facts: CompileFacts, within: str = "") -> str | None:
    """A sentence such as ``random() at line 4 cannot be maintained, ..``, if `node` is volatile.

    Args:
        within: which view or macro the line is of, if it is not the query's own.
    """
    where = place(node) + within
    for kind, name in RANDOM:
        if isinstance(node, kind):
            return changing(f"{name}{where}")
    name = function_name(node)
    ages = name == "age" and len(list(node.iter_expressions())) == 1  # age(x) is counted from today
    if ages or (name and name in facts.volatile_functions):
        return changing(f"{name}(){where}")
    if isinstance(node, exp.TableSample) and not node.args.get("seed"):
        return f"a sample without a fixed seed{where} cannot be maintained, since it differs every time"
    return None


def changing(what: str) -> str:
    return f"{what} cannot be maintained, since its value changes without a change of data"

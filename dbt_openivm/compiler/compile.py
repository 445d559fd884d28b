"""compile(sql, facts) -> RefreshPlan: the passes in order."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlglot

from dbt_openivm.__version__ import version
from dbt_openivm.compiler.algebra import Operator, Recursive, Scan, TopK
from dbt_openivm.compiler.bag import BagProgram
from dbt_openivm.compiler.constraints import with_references
from dbt_openivm.compiler.decompose import decompose
from dbt_openivm.compiler.facts import NODE, RECURSION, Column, CompileFacts, Relation
from dbt_openivm.compiler.full import FullProgram
from dbt_openivm.compiler.grouped import GroupedProgram
from dbt_openivm.compiler.keyed import KeyedProgram
from dbt_openivm.compiler.lower.query import lower
from dbt_openivm.compiler.lower.references import parse
from dbt_openivm.compiler.lower.temporal import ClockError, numbered, temporal, temporals
from dbt_openivm.compiler.lower.types import TypeWantedError
from dbt_openivm.compiler.plan import FULL_REFRESH, NodeProgram, PlanNode, RefreshPlan
from dbt_openivm.compiler.probe import Answers, resolve_types
from dbt_openivm.compiler.prune import prune
from dbt_openivm.compiler.pushdown import push_down
from dbt_openivm.compiler.recursion import RecomputeProgram, RecursiveProgram, is_linear
from dbt_openivm.compiler.split import Node, split
from dbt_openivm.compiler.sql import text
from dbt_openivm.compiler.top_k import TopKProgram
from dbt_openivm.compiler.volatile import Closure, changing, closure
from dbt_openivm.errors import UnsupportedError

MARKS = re.compile("\x1b\\[[0-9]*m")
"""What sqlglot underlines in a terminal with."""


@dataclass(frozen=True)
class Analysis:
    """A query understood as far as the facts allow without types.

    Attributes:
        operator: its operator tree, None if some construct has no rule.
        reason: why `operator` is None.
        probes: queries whose result types were asked for, or, `unsettled`, are asked for.
        closure: everything the query reads, through views and macros.
        unsettled: whether `operator` is only missing because lowering needs the types of `probes` first; see `settle`.
        typed: `operator` with the types that were asked for; None before they were.
    """

    sql: str
    operator: Operator | None
    reason: str | None
    probes: tuple[str, ...]
    closure: Closure
    unsettled: bool = False
    typed: Operator | None = None


def analyse(query: str, facts: CompileFacts) -> Analysis:
    """Parse, resolve and normalise.

    Raises:
        QueryError: the text is no single SELECT.
    """
    reached = closure(query, facts)
    if reached.volatile is not None:
        return Analysis(query, None, reached.volatile, (), reached)
    try:
        lowered, idle = lower(query, facts)
        operator = push_down(lowered)
        operator = prune(temporal(operator) if reached.clock else operator)
        if any(relation.foreign_keys for relation in facts.relations.values()):
            operator = with_references(operator)
        check_complete([operator, *idle], reached)
        return Analysis(query, operator, None, (), reached)
    except TypeWantedError as wanted:
        reason = "the type of an expression, which DuckDB was not asked for, cannot be told from the query"
        return Analysis(query, None, reason, (wanted.probe,), reached, unsettled=True)
    except ClockError as error:
        return Analysis(query, None, changing(str(error)), (), reached)
    except UnsupportedError as error:
        return Analysis(query, None, f"{error} cannot be maintained incrementally yet", (), reached)
    except sqlglot.errors.SqlglotError as error:
        return Analysis(
            query, None, f"the SQL could not be parsed by the compiler ({MARKS.sub('', str(error))})", (), reached
        )


def settle(
    query: str, facts: CompileFacts, describe: Callable[[str], tuple[str, ...]]
) -> tuple[Analysis, CompileFacts]:
    """`analyse`, with the types that lowering and the rules want: which fields a struct has, what a sum is.

    Args:
        describe: the types of a query's columns, none where DuckDB refuses it.

    Returns:
        The analysis, whose probes are the questions in the order in which they were asked; the facts with the answers.

    Raises:
        QueryError: the text is no single SELECT.
    """
    asked: dict[str, tuple[str, ...]] = {}
    while (analysis := analyse(query, known := replace(facts, types={**facts.types, **asked}))).unsettled:
        [probe] = analysis.probes
        asked[probe] = describe(probe)
    if analysis.operator is not None:
        answers = Answers(known.types, describe)
        analysis = replace(analysis, typed=resolve_types(analysis.operator, answers))
        asked |= answers.asked
        known = replace(known, types={**known.types, **answers.asked})
    return replace(analysis, probes=tuple(asked)), known


def check_complete(operators: Sequence[Operator], reached: Closure) -> None:
    """Every relation that the query mentions must be scanned: nothing may get lost on the way to the operator tree.

    Args:
        operators: the tree, and those of subqueries that need not stand in it.

    Raises:
        UnsupportedError: one did; the view is then refreshed in full.
    """
    scans = Counter(op.relation.key for tree in operators for op in tree.walk() if isinstance(op, Scan))
    lost = [key for key, count in reached.mentions.items() if scans[key] < count]
    if lost and not reached.unused_cte:
        raise UnsupportedError(
            f"the relation {lost[0]}, which the compiler lost (a bug in dbt-openivm; please report it),"
        )


def finish(analysis: Analysis, facts: CompileFacts) -> RefreshPlan:
    """Make the plan, with the types that DuckDB gave."""
    if analysis.operator is None:
        return full_plan(analysis, facts)
    operator = analysis.typed or resolve_types(analysis.operator, facts.types)
    operator = numbered(operator) if analysis.closure.clock else operator
    nodes = split(operator)
    plan_nodes = tuple(plan_node(node, facts) for node in nodes)
    sources = used_columns(operator)
    return RefreshPlan(
        refresh_type=plan_nodes[-1].program.refresh_type,
        reason=None,
        nodes=plan_nodes,
        sources=sources,
        output=facts.output,
        fingerprint=fingerprint(analysis, sources, facts),
    )


def compile(query: str, facts: CompileFacts) -> RefreshPlan:  # noqa: A001 - the name of this function is the compiler's API
    """Compile a query to a plan.

    Args:
        query: one SELECT.
        facts: what is known about the database. Types may be missing (see `settle`); the plan is
            then right for every type, if dearer for some.

    Raises:
        QueryError: the text is no single SELECT.

    Example:
        >>> from dbt_openivm.compiler.facts import NODE, Column, CompileFacts, Relation
        >>> t = Relation("memory.main.t", '"t"', (Column("g", "INTEGER"), Column("x", "INTEGER")))
        >>> compile("select g, count(*) from t group by g", CompileFacts({t.key: t})).refresh_type
        'AGGREGATE_GROUP'
    """
    return finish(analyse(query, facts), facts)


def plan_node(node: Node, facts: CompileFacts) -> PlanNode:
    names = tuple(c.name for c in facts.output) if node.number is None and facts.output else node.columns
    scans = [op for core in node.cores for op in core.walk() if isinstance(op, Scan) and op.relation.kind != RECURSION]
    keys = tuple(dict.fromkeys(scan.relation.key for scan in scans))
    types = tuple(column.type for column in facts.output) if node.number is None else ()
    program: NodeProgram
    if node.top is None:
        program = BagProgram(node, names, types)
    elif isinstance(node.top, Recursive):
        top = node.top
        maintained = top.distinct and not top.keys and is_linear(top.step, top.working.key)
        program = RecursiveProgram(node, names) if maintained else RecomputeProgram(node, names)
    elif isinstance(node.top, TopK):
        program = TopKProgram(node, names)
    elif node.aggregate is not None:
        program = GroupedProgram(
            node, names, decompose(node.aggregate, facts.dialect), types, keeps_equal=facts.dialect == "duckdb"
        )
    else:
        program = KeyedProgram(node, names)
    moving = {number: op for core in node.cores for number, op in temporals(core).items()}
    return PlanNode(node.number, keys, program, moving)


def full_plan(analysis: Analysis, facts: CompileFacts) -> RefreshPlan:
    sources = {key: facts.relations[key].columns for key in analysis.closure.bases}
    names = tuple(column.name for column in facts.output)
    node = PlanNode(None, tuple(sources), FullProgram(analysis.sql, names))
    return RefreshPlan(
        refresh_type=FULL_REFRESH,
        reason=analysis.reason,
        nodes=(node,),
        sources=sources,
        output=facts.output,
        fingerprint=fingerprint(analysis, sources, facts),
        volatile=analysis.closure.volatile is not None or analysis.closure.opaque or analysis.closure.clock,
    )


def used_columns(operator: Operator) -> dict[str, tuple[Column, ...]]:
    """The columns that are read of every source, in the source's order."""
    used: dict[str, set[str]] = {}
    relations: dict[str, Relation] = {}
    for op in operator.walk():
        if isinstance(op, Scan) and op.relation.kind not in (NODE, RECURSION):
            relations[op.relation.key] = op.relation
            used.setdefault(op.relation.key, set()).update(source for _, source in op.names)
    return {key: tuple(c for c in relation.columns if c.name in used[key]) for key, relation in relations.items()}


def fingerprint(analysis: Analysis, sources: Mapping[str, tuple[Column, ...]], facts: CompileFacts) -> str:
    """``compiler version:query:columns it reads and returns:settings``, hashed from the second on; see `difference`."""
    query = [normalised(analysis.sql), *analysis.closure.texts]
    columns = [
        f"{key}({', '.join(sorted(f'{c.name} {c.type}' for c in used))})" for key, used in sorted(sources.items())
    ]
    columns += [f"{column.name} {column.type}" for column in facts.output]
    return ":".join(
        [version, *(hashlib.sha256("\n".join(part).encode()).hexdigest() for part in (query, columns, facts.settings))]
    )


COLUMNS_CHANGED = "a column that it reads changed"


def difference(old: str, new: str) -> str | None:
    """Why a view with the fingerprint `old` must be rebuilt for a plan with `new`; None if it need not."""
    reasons = (
        "dbt-openivm was upgraded",
        "the query changed",
        COLUMNS_CHANGED,
        (
            "a setting changed that its expressions depend on "
            "(TimeZone, integer_division, default_collation, default_order, default_null_order, "
            "scalar_subquery_error_on_multiple_rows)"
        ),
    )
    parts = old.split(":")
    if len(parts) != len(reasons):
        return "its row in the catalog was edited"
    pairs = zip(parts, new.split(":"), reasons, strict=True)
    changed = [reason for before, after, reason in pairs if before != after]
    return changed[0] if changed else None


def normalised(query: str) -> str:
    """The query without comments, white space and other spellings of the same."""
    try:
        return text(parse(query), comments=False)
    except sqlglot.errors.SqlglotError:
        return " ".join(query.split())

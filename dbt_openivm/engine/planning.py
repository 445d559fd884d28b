"""Make plans, and keep what making them cost: DuckDB's answers, by a digest of everything that a plan depends on.

The same query over the same facts gives the same plan. So the catalog holds the digest with which a view was built and
the types that DuckDB gave then; a later process finds out from the digest alone that a view's plan has not changed,
needs no plan at all where no source changed, and makes it without asking DuckDB where one did.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import sqlglot

from dbt_openivm.__version__ import version
from dbt_openivm.compiler.algebra import Operator
from dbt_openivm.compiler.clock import CLOCK
from dbt_openivm.compiler.compile import Analysis, analyse, finish, settle
from dbt_openivm.compiler.facts import Column, CompileFacts
from dbt_openivm.compiler.lower.reading import called_names, read
from dbt_openivm.compiler.plan import FULL_REFRESH, RefreshPlan
from dbt_openivm.compiler.probe import rows_query
from dbt_openivm.compiler.sql import text
from dbt_openivm.engine.catalog import Cursor, ViewRow
from dbt_openivm.engine.collector import collector_paused
from dbt_openivm.engine.gather import IsView, describe, gather, output_columns
from dbt_openivm.engine.session import Session
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.errors import QueryError
from dbt_openivm.names import PREFIX, literal, quote


@dataclass(frozen=True)
class Outline:
    """What must be known of a plan before it is run; see `RefreshPlan`. `nodes` is their number."""

    refresh_type: str
    reason: str | None
    sources: Mapping[str, tuple[Column, ...]]
    output: tuple[Column, ...]
    fingerprint: str
    volatile: bool
    nodes: int
    clock: bool = False


@dataclass(frozen=True)
class Made:
    """A plan, and the types that DuckDB gave for it, in the order of the compiler's probes."""

    plan: RefreshPlan
    types: tuple[tuple[str, ...], ...]

    @property
    def outline(self) -> Outline:
        plan = self.plan
        return Outline(
            plan.refresh_type, plan.reason, plan.sources, plan.output, plan.fingerprint, plan.volatile,
            len(plan.nodes), plan.clock,
        )  # fmt: skip


class NotCompiledError(Exception):
    """The plan of a view must be made before its transaction begins."""

    def __init__(self, spec: ViewSpec) -> None:
        super().__init__(str(spec.name))
        self.spec = spec


class Planner:
    """Finds the plan of a view: in memory, from the catalog, or by making it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._made: dict[str, Made] = {}

    def make(self, spec: ViewSpec, facts: CompileFacts) -> None:
        """Make a plan with DuckDB's help. Outside a transaction: a probe that DuckDB refuses would end it.

        Raises:
            QueryError: DuckDB refuses the query, or it is no single SELECT.
        """
        self._made[digest(spec.sql, facts)] = make_plan(self.session, spec, facts)

    def outline(
        self,
        spec: ViewSpec,
        facts: CompileFacts,
        family: Mapping[str, ViewRow],
        cursors: Mapping[str, Cursor],
        compiled: bool,
    ) -> Outline:
        """The outline of the plan.

        Raises:
            NotCompiledError: `compiled` is asked for, and the plan must be made anew.
        """
        key = digest(spec.sql, facts)
        found = self._made[key].outline if key in self._made else remembered(spec, key, family, cursors)
        if found is None or self.reshaped(spec, found):
            if compiled:
                raise NotCompiledError(spec)
            self.make(spec, facts)
            found = self._made[key].outline
        return found

    def reshaped(self, spec: ViewSpec, outline: Outline) -> bool:
        """The columns of a query that the compiler does not understand may follow the data, as those of PIVOT do."""
        return outline.refresh_type == FULL_REFRESH and outline.output != output_columns(
            self.session, spec.sql, spec.name
        )

    def plan(self, spec: ViewSpec, facts: CompileFacts, row: ViewRow | None) -> Made:
        """The plan itself, after `outline`."""
        key = digest(spec.sql, facts)
        if key not in self._made:
            made = remade(spec, facts, row) if row and row.digest == key else None
            self._made[key] = made or make_plan(self.session, spec, facts)
        return self._made[key]


def digest(query: str, facts: CompileFacts) -> str:
    """A hash of everything that a plan depends on."""
    relations = [repr(relation) for _, relation in sorted(facts.relations.items())]
    others = [sorted(facts.databases), sorted(facts.volatile_functions), sorted(facts.aggregate_functions)]
    named = [sorted(facts.macros.items()), sorted(facts.names.items())]
    everything = repr((version, query, facts.search_path, facts.settings, relations, others, named))
    return hashlib.sha256(everything.encode()).hexdigest()


def remembered(
    spec: ViewSpec, key: str, family: Mapping[str, ViewRow], cursors: Mapping[str, Cursor]
) -> Outline | None:
    """The outline of the plan that the view was built with, if it was made from the same query and facts."""
    row = family.get(spec.name.key)
    if row is None or row.digest != key or cursors.keys() != set(json.loads(row.sources)):
        return None
    sources = {source: cursor.columns for source, cursor in cursors.items() if source != CLOCK}
    return Outline(
        row.refresh_type, row.reason, sources, row.columns, row.fingerprint, row.volatile, len(family), CLOCK in cursors
    )


@collector_paused
def remade(spec: ViewSpec, facts: CompileFacts, row: ViewRow) -> Made | None:
    """The plan that the view was built with, from DuckDB's answers of that time; None if somebody edited those."""
    shaped = replace(facts, output=row.columns)
    try:
        types = tuple(tuple(answer) for answer in json.loads(row.types))
    except (ValueError, TypeError):
        return None
    if row.refresh_type == FULL_REFRESH:
        analysis = analyse(spec.sql, shaped)
        if analysis.operator is not None or analysis.unsettled:
            analysis = in_full(analysis, row.reason or "")
        return Made(finish(analysis, shaped), types)
    answers = list(types)
    analysis, known = settle(spec.sql, shaped, lambda _probe: answers.pop(0) if answers else ())
    if len(types) != len(analysis.probes):
        return None
    return Made(finish(analysis, known), types)


@collector_paused
def make_plan(session: Session, spec: ViewSpec, facts: CompileFacts) -> Made:
    """Make a plan, asking DuckDB for types.

    Raises:
        QueryError: DuckDB refuses the query, or it is no single SELECT.
    """
    shaped = replace(facts, output=output_columns(session, spec.sql, spec.name))
    refuse_names(spec, shaped)
    analysis, shaped = settle(spec.sql, shaped, lambda probe: told(session, probe))
    if analysis.operator is not None and (name := misread_function(session, analysis)):
        reason = f"the function {name}() is yours, but its name is one that the compiler reads as another function"
        analysis = in_full(analysis, reason)
    if analysis.operator is not None and (fault := rewriting_fault(session, analysis.operator, shaped.output)):
        analysis = in_full(analysis, fault)
    if analysis.operator is None:
        return Made(finish(analysis, shaped), ())
    return Made(finish(analysis, shaped), tuple(shaped.types[probe] for probe in analysis.probes))


def told(session: Session, probe: str) -> tuple[str, ...]:
    """The types of a query's columns; none if DuckDB refuses it."""
    try:
        return tuple(column.type for column in describe(session, probe))
    except Exception:  # DuckDB's errors have no common class that the engine may import
        return ()


def misread_function(session: Session, analysis: Analysis) -> str | None:
    """A user's macro or function that the query calls, but the tree does not: sqlglot has its own idea of the name."""
    texts = [analysis.sql, *analysis.closure.texts]
    called = set().union(*map(called_names, texts)) - analysis.closure.functions
    found = {name for name in built_in_names(session, called) if not is_qualified(name, texts)}
    registered = python_functions(session, found & rewritten_names(texts))
    if registered:
        return min(registered)
    suspects = called - found
    if not suspects:
        return None
    listed = ", ".join(map(literal, sorted(suspects)))
    own = "SELECT min(lower(function_name)) FROM duckdb_functions() WHERE NOT internal AND lower(function_name) IN"
    [(name,)] = session.execute(f"{own} ({listed})")
    return None if name is None else str(name)


def built_in_names(session: Session, names: Iterable[str]) -> list[str]:
    """Those of the names by which DuckDB finds a function of its own, which is much faster than to list functions.

    It is asked to plan a call that cannot fit, and says what it found: a macro, a function, or neither.
    """
    asked = sorted(names)
    calls = [f"SELECT {quote(name)}(openivm_no_such_argument := 0)" for name in asked]
    rows = session.execute(f"SELECT {', '.join(f'json_serialize_plan({literal(call)})' for call in calls) or 'NULL'}")
    return [name for name, answer in zip(asked, rows[0], strict=False) if "No function matches" in answer]


def rewritten_names(texts: Iterable[str]) -> set[str]:
    """Functions that the texts call and sqlglot would call by another name.

    The texts of views and macros begin with what they are: ``view main.v: SELECT ..``.
    """
    result: set[str] = set()
    for query in texts:
        try:
            body = re.sub(r"^(view|macro) .*?: ", "", query, count=1)
            result |= called_names(body) - called_names(text(read(body)))
        except sqlglot.errors.SqlglotError:
            continue
    return result


def python_functions(session: Session, names: set[str]) -> set[str]:
    """Those of the names that Python registered; DuckDB lists them like its own functions, but for a description."""
    if not names:
        return set()
    rows = session.execute(
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE description IS NULL "
        f"AND function_type = 'scalar' AND lower(function_name) IN ({', '.join(map(literal, sorted(names)))})"
    )
    return {str(name) for (name,) in rows} - shipped_functions() if rows else set()


@lru_cache(maxsize=1)
def shipped_functions() -> frozenset[str]:
    """The functions that DuckDB comes with."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        rows = connection.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions()").fetchall()
    return frozenset(name for (name,) in rows)


def is_qualified(name: str, texts: Iterable[str]) -> bool:
    """Whether a name may be called with a schema before it."""
    pattern = re.compile(rf'\.\s*"?{re.escape(name)}"?\s*\(', re.IGNORECASE)
    return any(map(pattern.search, texts))


def in_full(analysis: Analysis, reason: str) -> Analysis:
    return replace(analysis, operator=None, typed=None, reason=reason, probes=())


def rewriting_fault(session: Session, operator: Operator, output: tuple[Column, ...]) -> str | None:
    """What DuckDB finds wrong with the compiler's reading of a query, or None.

    A rewritten query is not trusted because it could be parsed: DuckDB must give it the types of the user's own. What
    fails here is a bug of the compiler, but the view itself can still be refreshed in full.
    """
    try:
        types = [column.type for column in describe(session, rows_query(operator))]
    except Exception as error:  # DuckDB's errors have no common class that the engine may import
        problem = f"DuckDB refuses it ({str(error).splitlines()[0]})"
    else:
        if types == [column.type for column in output]:
            return None
        problem = "its types differ"
    bug = "This is a bug in dbt-openivm; please report the query"
    return f"the compiler's reading of the query is wrong: {problem}. {bug}"


@collector_paused
def compile_view(session: Session, spec: ViewSpec, is_view: IsView) -> tuple[RefreshPlan, CompileFacts]:
    """The plan of a view, from what DuckDB knows now."""
    facts = gather(session, spec.sql, is_view).facts
    return make_plan(session, spec, facts).plan, facts


def types_to_json(types: Iterable[tuple[str, ...]]) -> str:
    return json.dumps([list(answer) for answer in types])


def refuse_names(spec: ViewSpec, facts: CompileFacts) -> None:
    taken = [column.name for column in facts.output if column.name.lower().startswith(PREFIX)]
    if taken:
        raise QueryError(
            f"The view {spec.name} has a column named {', '.join(taken)}. Names that start with {PREFIX} are kept for "
            "internal columns. Give the column another alias."
        )

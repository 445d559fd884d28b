"""`compile_with_facts` for another engine than DuckDB: the query is the engine's SQL, and so are the statements.

No DuckDB takes part. Types are what the engine would make of them (`compiler.dialects.types`), and what the compiler or
the writer cannot say in the engine's words is computed in full, from the text as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_openivm.compiler.algebra import OuterJoin
from dbt_openivm.compiler.compile import Analysis, finish, settle
from dbt_openivm.compiler.dialects import types
from dbt_openivm.compiler.dialects.language import LANGUAGES, Language
from dbt_openivm.compiler.dialects.reading import Reading, read_query
from dbt_openivm.compiler.facts import Column, CompileFacts, ForeignKey, Relation
from dbt_openivm.compiler.lower.reading import read
from dbt_openivm.compiler.plan import FULL_REFRESH, RefreshPlan
from dbt_openivm.compiler.volatile import Closure
from dbt_openivm.engine.given_facts import GivenFacts, GivenTable, Name, key_of
from dbt_openivm.engine.render import render
from dbt_openivm.engine.self_run import Answer, SelfRun, answer, cheaper, sql_of
from dbt_openivm.errors import ConfigError, QueryError
from dbt_openivm.names import PREFIX, dotted

HOME = ("memory", "main")
"""Where the compiler believes that a name of one part lies."""
AGGREGATES = frozenset({"sum", "avg", "min", "max", "count", "bool_and", "bool_or", "every"})

USER_TYPE = re.compile(r'[\w".]+(\[\])?')
"""The name of a type that somebody made, of which nothing is known."""

Types = Mapping[Name, Mapping[str, str]]
"""Types of columns in the compiler's notation, by the name of the table as it is given."""


def compile_for(sql: str, given: GivenFacts) -> Answer:
    """The statements of a view on the engine of `given.dialect`.

    Raises:
        ConfigError: the facts are wrong; the text names the fields.
        QueryError: the query is no single SELECT of the engine over the given tables.
    """
    language = LANGUAGES[given.dialect]
    columns = noted_types(given)
    facts = facts_of(given, columns)
    assert language.writer is not None
    spelled = {table.name: table.columns for table in given.tables.values()}
    reading = read_query(sql, given.dialect, spelled, language.writer)
    tables = read_tables(given, facts, reading)
    analysis, facts = analysed(sql, reading, facts, columns)
    plan = finish(analysis, facts)
    reason = plan.reason or cheaper(tables.values())
    try:
        return written(plan, given, tables, language, reason)
    except SqlglotError as error:
        reason = f"a statement of its refresh cannot be written for {given.dialect} ({error})"
        plan = finish(in_full(analysis, sql, reason), facts)
        return written(plan, given, tables, language, reason)


def written(
    plan: RefreshPlan, given: GivenFacts, tables: Mapping[str, GivenTable], language: Language, reason: str | None
) -> Answer:
    """Raises:
    SqlglotError: some statement cannot be written.
    """

    def renderer(macro: str, arguments: Mapping[str, object]) -> str:
        return render(macro, arguments, given.dialect)

    full = plan.refresh_type == FULL_REFRESH or reason is not None
    program = SelfRun(relations, plan, given, tables, renderer, full, language)
    too_long = [name for name in program.names() if len(name.encode()) > language.longest_name]
    if too_long:
        raise ConfigError(
            f"facts.view: {given.dialect} would cut off the name {too_long[0]} after {language.longest_name} bytes; "
            "give the view or the table a shorter name"
        )
    return answer(program, reason)


def relations(query: str) -> set[Name]:
    """The relations that a query of the compiler reads."""
    tree = read(query)
    within = {cte.alias for cte in tree.find_all(exp.CTE)}
    named = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    names = {tuple(part.name for part in table.parts) for table in named}
    return {name for name in names if len(name) > 1 or name[0] not in within}


# --- facts -----------------------------------------------------------------------------------------------------------


def noted_types(given: GivenFacts) -> Types:
    """Raises:
    ConfigError: a type is none; the text names every field.
    """
    noted: dict[Name, dict[str, str]] = {}
    problems = []
    for table in given.tables.values():
        noted[table.name] = {}
        for column, type_ in table.columns.items():
            try:
                kind = exp.DataType.build(type_, dialect=given.dialect)
                noted[table.name][column] = types.type_of(types.noted(kind))
            except SqlglotError:
                noted[table.name][column] = ""
                if not USER_TYPE.fullmatch(type_):
                    problems.append(f"facts.schemas.{table.label}.{column}: {given.dialect} has no type {type_}")
    if problems:
        raise ConfigError("\n".join(problems))
    return noted


def facts_of(given: GivenFacts, columns: Types) -> CompileFacts:
    keys = {key_of(table.name): relation_key(table.name) for table in given.tables.values()}
    relations_ = {}
    for table in given.tables.values():
        foreign = tuple(ForeignKey(one.columns, keys[one.parent], one.parent_columns) for one in table.foreign_keys)
        listed = tuple(Column(name, type_) for name, type_ in columns[table.name].items())
        key = relation_key(table.name)
        relations_[key] = Relation(key, sql_of(table.name), listed, unique_keys=table.unique_keys, foreign_keys=foreign)
    return CompileFacts(
        relations=relations_,
        search_path=(HOME,),
        aggregate_functions=AGGREGATES,
        dialect=given.dialect,
    )


def relation_key(name: Name) -> str:
    return ".".join((*HOME, *name)[-3:] if len(name) != 2 else (HOME[0], *name)).lower()


def read_tables(given: GivenFacts, facts: CompileFacts, reading: Reading) -> dict[str, GivenTable]:
    """The tables that the query names, by their key.

    Raises:
        ConfigError: facts are given of a table that it does not read, or of the view itself.
        QueryError: it reads a table of which no facts are given.
    """
    by_key = {relation_key(table.name): table for table in given.tables.values()}
    if relation_key(given.view) in by_key:
        raise ConfigError(f"facts.view: the name of the table facts.schemas.{by_key[relation_key(given.view)].label}")
    found = {name: facts.resolve(name) for name in reading.tables}
    unknown = sorted(dotted(name) for name, relation in found.items() if relation is None)
    if unknown:
        raise QueryError(f"The query reads {', '.join(unknown)}, which is not in facts.schemas.")
    read_keys = {relation.key for relation in found.values() if relation is not None}
    unread = [table.label for key, table in by_key.items() if key not in read_keys]
    if unread:
        raise ConfigError("\n".join(f"facts.schemas.{label}: a table that the query does not read" for label in unread))
    return {key: table for key, table in by_key.items() if key in read_keys}


# --- plan ------------------------------------------------------------------------------------------------------------


def analysed(sql: str, reading: Reading, facts: CompileFacts, columns: Types) -> tuple[Analysis, CompileFacts]:
    """The query as the compiler understands it, and the facts with the types of its columns."""
    taken = [name for name in reading.columns if name.lower().startswith(PREFIX)]
    if taken:
        raise QueryError(f"The query has a column named {', '.join(taken)}. Names that start with {PREFIX} are ours.")
    if reading.text is None:
        empty = Closure(bases=list(facts.relations))
        output = tuple(Column(name, "") for name in reading.columns)
        return Analysis(sql, None, reading.reason, (), empty), replace(facts, output=output)
    known = {sql_of(name): types_ for name, types_ in columns.items()}
    found = types.query_types(read(reading.text), known) or ("",) * len(reading.columns)
    output = tuple(Column(name, type_) for name, type_ in zip(reading.columns, found, strict=True))
    facts = replace(facts, output=output)
    analysis, settled = settle(reading.text, facts, types.describe)
    if analysis.operator is None:
        reason = f"{analysis.reason} (on {facts.dialect})"
        return in_full(analysis, sql, reason), facts
    joins = [one for one in (analysis.typed or analysis.operator).walk() if isinstance(one, OuterJoin)]
    if any(join.types is None for join in joins):
        reason = (
            f"an outer join of columns whose types are not known is not maintained incrementally on {facts.dialect}"
        )
        return in_full(analysis, sql, reason), facts
    return analysis, settled


def in_full(analysis: Analysis, sql: str, reason: str) -> Analysis:
    return replace(analysis, sql=sql, operator=None, typed=None, reason=reason, probes=())

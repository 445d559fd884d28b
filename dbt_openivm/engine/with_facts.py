"""`compile_with_facts`: a refresh as statements that a caller runs one by one, with no catalog of ours behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dbt_openivm.compiler.compile import analyse, finish
from dbt_openivm.compiler.facts import CompileFacts, ForeignKey
from dbt_openivm.compiler.plan import FULL_REFRESH, RefreshPlan
from dbt_openivm.compiler.volatile import closure
from dbt_openivm.engine.empty_tables import create_tables, full_name
from dbt_openivm.engine.for_dialect import compile_for
from dbt_openivm.engine.gather import IsView, gather
from dbt_openivm.engine.given_facts import DUCKDB, GivenFacts, GivenTable, an_object, check, key_of
from dbt_openivm.engine.known_facts import known_facts
from dbt_openivm.engine.planning import in_full, make_plan
from dbt_openivm.engine.render import Renderer, render
from dbt_openivm.engine.self_run import Answer, SelfRun, answer, cheaper
from dbt_openivm.engine.session import DuckDBSession, Session
from dbt_openivm.engine.syntax import relations
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.errors import ConfigError, QueryError
from dbt_openivm.names import RelationName

CLOCK = "it reads the clock, and what passing time changes is found only by a refresh that knows when the last one was"


def compile_with_facts(sql: str, facts: Mapping[str, Any]) -> Answer:
    """Compile a query to the statements of its refresh. docs/compile-with-facts.md has the fields of facts and answer.

    Args:
        sql: one SELECT.
        facts: what is known about the tables that it reads and about their changes, as JSON has it.

    Raises:
        ConfigError: the facts are wrong; the text names the fields.
        QueryError: the query is not valid over `facts["schemas"]`, or it is no single SELECT.
    """
    import duckdb  # the engine itself never sees the driver

    given = check(facts)
    if given.dialect != DUCKDB:
        return compile_for(sql, given)
    with duckdb.connect(config={"enable_external_access": "false"}) as connection:
        session = DuckDBSession(connection)
        tables = create_tables(session, given.tables.values())
        spec = ViewSpec(full_name(given.view), sql)
        try:
            return compiled(session, spec, given, tables, lambda _name, _text: False, render)
        except QueryError as error:
            raise QueryError(
                f"{error}\nThe query was read over the tables of facts.schemas, and nothing else."
            ) from error
        except duckdb.Error as error:  # there is nothing here that DuckDB could refuse but the query
            raise QueryError(
                f"DuckDB refuses the query: {error}\nIt was read over the tables of facts.schemas, and nothing else."
            ) from error


def compile_known(
    session: Session, spec: ViewSpec, is_view: IsView, facts: Mapping[str, Any], renderer: Renderer
) -> Answer:
    """The same for a view of a database that is at hand: schemas, keys and sizes are what the database says.

    Args:
        facts: more facts; those about tables are added to what is known of them.

    Returns:
        The answer, and all the facts that it was made from.

    Raises:
        ConfigError: the facts are wrong, or give what the database knows better.
        QueryError: DuckDB refuses the query, or it is no single SELECT.
    """
    facts = an_object(facts)
    problems = [f"facts.{name}: is told by the database" for name in ("schemas", "view") if name in facts]
    if problems:
        raise ConfigError("\n".join(problems))
    everything = known_facts(session, spec, is_view)
    for name, more in facts.items():
        everything[name] = added(everything.get(name), more)
    given = check(everything)
    if given.dialect != DUCKDB:
        raise ConfigError(f"facts.target_dialect: got {given.dialect!r}, but the database of the view is a DuckDB")
    tables = {RelationName(*table.name).key: table for table in given.tables.values()}
    return {**compiled(session, spec, given, tables, is_view, renderer), "facts": everything}


def added(known: Any, more: Any) -> Any:
    """Entries of an object or a list beside the known ones; `check` has to say what is wrong with anything else."""
    if isinstance(known, dict) and isinstance(more, dict):
        return {**known, **more}
    return [*known, *more] if isinstance(known, list) and isinstance(more, list) else more


def compiled(
    session: Session,
    spec: ViewSpec,
    given: GivenFacts,
    tables: Mapping[str, GivenTable],
    is_view: IsView,
    renderer: Renderer,
) -> Answer:
    """Args:
    tables: the tables of `given` by their key in the session's database.
    """
    if spec.name.key in tables:
        raise ConfigError(f"facts.view: the name of the table facts.schemas.{tables[spec.name.key].label}")
    facts = gather(session, spec.sql, is_view).facts
    plan = planned(session, spec, with_keys(facts, tables))
    read = read_tables(spec.sql, facts, plan, tables)
    unread = [table.label for key, table in tables.items() if key not in read]
    if unread:
        raise ConfigError("\n".join(f"facts.schemas.{label}: a table that the query does not read" for label in unread))
    reason = plan.reason if plan.refresh_type == FULL_REFRESH else cheaper(tables.values())
    full = plan.refresh_type == FULL_REFRESH or reason is not None
    program = SelfRun(partial(relations, session), plan, given, {key: tables[key] for key in read}, renderer, full)
    return answer(program, reason)


def planned(session: Session, spec: ViewSpec, facts: CompileFacts) -> RefreshPlan:
    plan = make_plan(session, spec, facts).plan
    if not plan.clock:
        return plan
    shaped = replace(facts, output=plan.output)
    return finish(in_full(analyse(spec.sql, shaped), CLOCK), shaped)


def with_keys(facts: CompileFacts, tables: Mapping[str, GivenTable]) -> CompileFacts:
    """The relations with the keys that are given for them."""
    keys = {key_of(table.name): key for key, table in tables.items()}
    relations = dict(facts.relations)
    for key in relations.keys() & tables.keys():
        foreign = tuple(
            ForeignKey(one.columns, keys[one.parent], one.parent_columns) for one in tables[key].foreign_keys
        )
        relations[key] = replace(relations[key], unique_keys=tables[key].unique_keys, foreign_keys=foreign)
    return replace(facts, relations=relations)


def read_tables(query: str, facts: CompileFacts, plan: RefreshPlan, tables: Mapping[str, GivenTable]) -> list[str]:
    """Keys of the tables that the query reads, all of them where the compiler cannot tell."""
    reached = closure(query, facts)
    read = {*reached.bases, *reached.mentions, *plan.sources}
    return [key for key in tables if key in read or reached.opaque]

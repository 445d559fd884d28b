"""`compile_with_facts`: a refresh as statements that a caller runs one by one, with no database of ours behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from dbt_openivm.compiler import publish
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.plan import FULL_REFRESH, PlanNode, RefreshPlan, Step, Target
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.compiler.split import node_key
from dbt_openivm.engine.given_facts import SHAPES, VERSION, GivenFacts, check
from dbt_openivm.engine.planning import compile_view
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.engine.types import ViewSpec
from dbt_openivm.errors import ConfigError, UnsupportedError
from dbt_openivm.names import RelationName, data_table, delta_table, node_view, quote, visible_view

Statement = dict[str, Any]


def compile_with_facts(sql: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Compile a query; see docs/compile-with-facts.md for facts and answer.

    Raises:
        ConfigError: the facts are wrong; the text names the fields.
        QueryError: the query is not valid over `facts.schemas`.
        UnsupportedError: the query reads the clock or is volatile.
    """
    given = check(facts)
    plan, known = planned(sql, given)
    if plan.clock or plan.volatile:
        raise UnsupportedError("A query that reads the clock or is volatile cannot be compiled with facts yet")
    names = {key: table for table in given.schemas for key in known.relations if key == f"memory.main.{table.lower()}"}
    unread = [table for table in given.schemas if table not in names.values()]
    if unread:
        raise ConfigError("\n".join(f"facts.schemas.{table}: a table that the query does not read" for table in unread))
    return {
        "version": VERSION,
        "refresh_type": {"code": plan.refresh_type, "name": plan.refresh_type.replace("_", " ").lower()},
        "reason": plan.reason,
        "setup": setup(plan, given, names),
        "statements": refresh(plan, given, names),
    }


def planned(sql: str, given: GivenFacts) -> tuple[RefreshPlan, CompileFacts]:
    """The plan; an empty database of the given schemas answers what the compiler asks of types."""
    with duckdb.connect(config={"enable_external_access": "false"}) as connection:
        for table, columns in given.schemas.items():
            body = ", ".join(f"{quote(name)} {type_}" for name, type_ in columns.items())
            try:
                connection.execute(f"CREATE TABLE {quote(table)} ({body})")
            except duckdb.Error as error:
                raise ConfigError(f"facts.schemas.{table}: {error}") from error
        spec = ViewSpec(RelationName("memory", "main", given.view), sql)
        return compile_view(DuckDBSession(connection), spec, lambda _name, _text: False)


def target_of(given: GivenFacts, node: PlanNode, plan: RefreshPlan) -> Target:
    name = given.view if node.number is None else node_view(given.view, node.number)
    consumed = node.number is not None or given.publish
    columns = plan.output if node.number is None else ()
    return Target(quote(data_table(name)), quote(visible_view(name)), quote(delta_table(name)), 1, consumed, columns)


def setup(plan: RefreshPlan, given: GivenFacts, names: Mapping[str, str]) -> list[Statement]:
    """Create the logs of the sources, and state, boundary and log of each node."""
    states = {key: SourceState(quote(table)) for key, table in names.items()}
    steps = [log_step(quote(delta_table(table)), quote(table)) for table in names.values()]
    for node in plan.nodes:
        target = target_of(given, node, plan)
        steps += [*publish.build(node.program, states, target), log_step(target.log, target.visible)]
        if node.number is not None:
            states[node_key(node.number)] = SourceState(target.visible)
    return [statement(step) for step in steps]


def log_step(log: str, source: str) -> Step:
    return Step("ivm_create_log", {"log": log, "source": source}, f"create the log of {source}")


def refresh(plan: RefreshPlan, given: GivenFacts, names: Mapping[str, str]) -> list[Statement]:
    """Bring each node up to its sources, whose changes lie in their logs without a number; then empty the logs."""
    states = {}
    for key, table in names.items():
        inserts, deletes = SHAPES[given.delta_shape.get(table, given.shape)]
        log = quote(delta_table(table))
        states[key] = SourceState(quote(table), log, inserts=inserts, deletes=deletes, unit=False, unnumbered=True)
    made = []
    for node in plan.nodes:
        target = target_of(given, node, plan)
        full = plan.refresh_type == FULL_REFRESH
        steps = publish.full(node.program, states, target) if full else node.program.incremental(states, target)
        if target.publish:
            made.append(cleared(target.log, "forget what was published last"))
        made += [statement(step) for step in steps]
        if node.number is not None:
            shape = (1, 1) if steps else (0, 0)
            states[node_key(node.number)] = SourceState(target.visible, target.log, 0, 1, *shape)
    return [*made, *(cleared(quote(delta_table(table)), "forget the consumed changes") for table in names.values())]


def cleared(log: str, label: str) -> Statement:
    return marked(f"DELETE FROM {log}", label)


def statement(step: Step) -> Statement:
    return marked(render(step.macro, step.arguments), step.label)


def marked(text: str, label: str) -> Statement:
    """The statement with the relations that it reads and the one that it changes."""
    tree = sqlglot.parse_one(text, dialect="duckdb")
    target = None if isinstance(tree, exp.Query) else tree.find(exp.Table)
    within = {cte.alias for cte in tree.find_all(exp.CTE)}
    reads = {table.name for table in tree.find_all(exp.Table) if table is not target and table.name} - within
    return {"sql": text, "label": label, "reads": sorted(reads), "writes": [target.name] if target else []}

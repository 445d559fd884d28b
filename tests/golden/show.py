"""Write what the compiler made of a query, for people: algebra, plan, SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import sqlglot

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import (
    Aggregate,
    Constant,
    Filter,
    Join,
    Operator,
    OuterJoin,
    Project,
    Scan,
    SemiJoin,
    TemporalColumns,
    TemporalFilter,
    Unnest,
    Window,
)
from dbt_openivm.compiler.crossings import crossing_steps, example_states
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.grouped import GroupedProgram
from dbt_openivm.compiler.plan import FULL_REFRESH, PlanNode, RefreshPlan, Step
from dbt_openivm.engine.render import render
from tests.golden.cases import Case
from tests.golden.compiled import SHAPES, Compiled, node_name, source_states, target_of, with_node


def show(case: Case, made: Compiled) -> str:
    """The golden file of a query."""
    parts = [heading(case), section("query", case.sql), section("tables", tables(made.facts, made.plan))]
    if made.operator is not None:
        parts.append(section("algebra", "\n".join(Tree().lines(made.operator, 0))))
    parts.append(section("plan", plan(made.plan)))
    if made.plan.refresh_type != FULL_REFRESH:
        parts.append(section("state", states(made)))
        parts += Programs(made, case.apply).sections()
    return "\n".join(parts)


def heading(case: Case) -> str:
    title = f"{case.group} / {case.name.replace('_', ' ')}"
    return f"{title}\n{case.about}\n" if case.about else f"{title}\n"


def section(title: str, body: str) -> str:
    return f"--- {title} {'-' * (100 - len(title))}\n{body.rstrip()}\n"


# --- facts and plan ---------------------------------------------------------------------------------------------------


def tables(facts: CompileFacts, made: RefreshPlan) -> str:
    """The columns that are read of each base."""
    used = {key: ", ".join(f"{c.name} {c.type}" for c in columns) for key, columns in made.sources.items()}
    return "\n".join(f"{key}: {columns or '(the number of rows)'}" for key, columns in used.items()) or "(none)"


def plan(made: RefreshPlan) -> str:
    lines = [f"refresh type: {made.refresh_type}"]
    if made.reason:
        lines.append(f"reason: {made.reason}")
    if made.volatile:
        lines.append("volatile: refreshed even if no source changed")
    lines.append("output: " + ", ".join(f"{column.name} {column.type}" for column in made.output))
    for node in made.nodes:
        lines += node_lines(node)
    return "\n".join(lines)


def node_lines(node: PlanNode) -> list[str]:
    program = node.program
    lines = [f"{node_name(node)}: {program.refresh_type}, reads {', '.join(node.sources) or 'nothing'}"]
    if isinstance(program, GroupedProgram):
        shown = set(program.visible_columns())
        hidden = [name for name in program.state_columns if name not in shown]
        lines.append(f"  hidden columns: {', '.join(hidden)}")
        if program.recomputes:
            lines.append(f"  recomputes touched groups because of: {', '.join(program.parts.recompute.values())}")
    return lines


# --- algebra ----------------------------------------------------------------------------------------------------------


class Tree:
    """One line an operator, children below; an operator that two parents share is written once."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}

    def lines(self, operator: Operator, depth: int) -> list[str]:
        indent = "  " * depth
        if id(operator) in self.seen:
            return [f"{indent}(the same {type(operator).__name__} #{self.seen[id(operator)]})"]
        number = ""
        if isinstance(operator, Aggregate):
            self.seen[id(operator)] = len(self.seen) + 1
            number = f" #{self.seen[id(operator)]}"
        result = [f"{indent}{type(operator).__name__}{number} {detail(operator)}".rstrip()]
        for child in operator.inputs:
            result += self.lines(child, depth + 1)
        return result


def detail(operator: Operator) -> str:
    if isinstance(operator, Scan):
        return f"{operator.relation.key} ({', '.join(map(renamed, operator.names))})"
    if isinstance(operator, Constant):
        rows = ", ".join(f"({', '.join(sql.text(value) for value in row)})" for row in operator.rows)
        return f"({', '.join(operator.names)}) = {rows}"
    if isinstance(operator, Filter):
        return sql.text(operator.predicate)
    if isinstance(operator, TemporalFilter):
        return sql.text(operator.predicate)
    if isinstance(operator, Project | TemporalColumns):
        return items(operator.items)
    if isinstance(operator, Join):
        return ", ".join(f"{out} = {index}.{name}" for out, index, name in operator.names)
    if isinstance(operator, Aggregate):
        return aggregate_detail(operator)
    if isinstance(operator, Unnest):
        return items(operator.items)
    if isinstance(operator, SemiJoin | OuterJoin):
        return f"on {sql.text(operator.on)}"
    if isinstance(operator, Window):
        return f"by {items(operator.keys) or '()'}; {items(operator.calls)}"
    return f"({', '.join(operator.columns)})"


def renamed(pair: tuple[str, str]) -> str:
    out, source = pair
    return out if out == source else f"{out} = {source}"


def items(pairs: Any) -> str:
    return ", ".join(name if sql.text(value) == f'"{name}"' else f"{name} = {sql.text(value)}" for name, value in pairs)


def aggregate_detail(operator: Aggregate) -> str:
    keys = "one row" if operator.scalar else f"by {items(operator.keys) or '()'}"
    types = operator.types or ((None, None),) * len(operator.calls)
    calls = [
        f"{name} = {sql.text(call.expression)} :: {result}"
        for (name, call), (_, result) in zip(operator.calls, types, strict=True)
    ]
    return "; ".join([f"distinct {keys}" if operator.distinct else keys, *calls])


# --- SQL --------------------------------------------------------------------------------------------------------------


def states(made: Compiled) -> str:
    """The query of each node's whole state."""
    known = source_states(made.plan, made.facts, "insert-only")
    lines = []
    for node in made.plan.nodes:
        lines += [f"-- {node_name(node)}", pretty(node.program.state_query(known)), ""]
        known = with_node(known, node)
    return "\n".join(lines)


class Programs:
    """The statements of refreshes; what was written once is only referred to later."""

    def __init__(self, made: Compiled, apply_strategy: str) -> None:
        self.made = made
        self.apply_strategy = apply_strategy
        self.queries: dict[str, int] = {}
        self.statements: dict[str, int] = {}

    def sections(self) -> list[str]:
        """By shape of the deltas, and whether someone consumes the view's changes."""
        return [
            section(f"refresh, {shape}, {'with' if consumed else 'without'} consumers", self.program(shape, consumed))
            for shape in SHAPES
            for consumed in (False, True)
        ]

    def program(self, shape: str, consumed: bool) -> str:
        known = source_states(self.made.plan, self.made.facts, shape)
        lines = []
        for node in self.made.plan.nodes:
            columns = self.made.plan.output if node.number is None else ()
            known |= example_states(node)
            moving = [step for op in node.moving.values() for step in crossing_steps(op, known)]
            target = target_of(node, consumed, columns, self.apply_strategy)
            for step in [*moving, *node.program.incremental(known, target)]:
                lines += self.step(node, step)
            known = with_node(known, node)
        return "\n".join(lines) or "(nothing: no source can change)"

    def step(self, node: PlanNode, step: Step) -> list[str]:
        text = render(step.macro, step.arguments)
        known = text in self.statements
        number = self.statements.setdefault(text, len(self.statements) + 1)
        title = f"-- [{number}] {node_name(node)}: {step.label}{notes(step)}"
        if known:
            return [f"{title}: as above", ""]
        return [title, self.laid_out(step) + ";", ""]

    def laid_out(self, step: Step) -> str:
        """The rendered step; the queries among its arguments are laid out for reading, and written once."""
        arguments: Mapping[str, Any] = {
            name: self.query(value) if name in ("query", "source") and isinstance(value, str) else value
            for name, value in step.arguments.items()
        }
        return render(step.macro, arguments)

    def query(self, text: str) -> str:
        bare = text[1:-1] if text.startswith("(") and text.endswith(")") else text
        if not bare.lower().startswith("select "):
            return text
        known = bare in self.queries
        number = self.queries.setdefault(bare, len(self.queries) + 1)
        body = f"/* query {number}, as above */" if known else f"/* query {number} */\n{pretty(bare)}"
        return body if bare is text else "(\n  " + body.replace("\n", "\n  ") + "\n)"


def notes(step: Step) -> str:
    found = []
    if step.after:
        found.append(f"if {step.after} is not zero")
    if step.counts:
        found.append("counts the changed rows")
    if step.expect is not None:
        found.append(f"expects {step.expect} rows")
    return f" ({', '.join(found)})" if found else ""


def pretty(query: str) -> str:
    """`query` with line breaks, if they are all that would change; else as it is."""
    try:
        parsed = sqlglot.parse_one(query, dialect=sql.DIALECT)
    except sqlglot.errors.SqlglotError:
        return query
    laid_out = parsed.sql(dialect=sql.DIALECT, pretty=True, max_text_width=110)
    if " AS HUGEINT)" in query:  # sqlglot has its own spelling of some types
        laid_out = laid_out.replace(" AS INT128)", " AS HUGEINT)")
        query = query.replace(" AS INT128)", " AS HUGEINT)")
    laid_out = laid_out.replace(" AS INT)", " AS INTEGER)")
    return laid_out if squeezed(laid_out) == squeezed(query) else query


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text).lower()

"""The part of docs/operators.md that is made from the golden queries: what is maintained, how, at what cost."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_openivm.compiler.explain import RULES
from dbt_openivm.compiler.grouped import GroupedProgram
from dbt_openivm.compiler.plan import FULL_REFRESH, PlanNode
from tests.golden.cases import Case, cases
from tests.golden.compiled import Compiled, compiled
from tests.golden.costs import COSTS

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
START = "<!-- made by `python -m tests.golden.update` from tests/golden/queries: do not edit -->"
END = "<!-- end of the made part -->"

#: Operators that every query has, and that say nothing about it.
PLAIN = ("Scan", "Project", "Constant")

#: The files of tests/golden/queries in the order of the page; others come after them.
FIRST = ("rows", "joins", "unions", "groups", "aggregates", "nested", "ctes")

#: Hidden columns by the kind that their names show: what they hold.
HIDDEN = {
    "key": "keys",
    "partition": "partition keys",
    "count star": "number of rows",
    "count": "numbers of values",
    "sum": "sums",
    "total": "sums",
    "squares": "sums of squares",
    "having": "flags",
    "stale": "flags",
    "rewritten": "flags",
}

HEADS = ("construct", "operators", "refresh type", "state kept", "cost of a refresh", "example")
FULL_HEADS = ("construct", "reason", "example")


@dataclass(frozen=True)
class Row:
    """What the page says of one query. Queries that differ in the example alone share a line."""

    cells: tuple[str, ...]
    example: str
    full: bool


def page(connection: Any) -> str:
    """The whole page, with the made part as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    assert end, f"{PAGE} has lost its marks"
    return f"{before}{START}\n\n{part(connection)}\n\n{END}{after}"


def part(connection: Any) -> str:
    ordered = sorted(cases(), key=lambda case: FIRST.index(case.group) if case.group in FIRST else len(FIRST))
    rows = [row(case, compiled(connection, case.sql)) for case in ordered]
    incremental = table(HEADS, (one for one in rows if not one.full))
    full = table(FULL_HEADS, (one for one in rows if one.full))
    return "\n".join(
        [
            *incremental,
            "",
            "The operators, and what a refresh does for them:",
            "",
            *lines(("operator", "rule"), [(name, rule) for name, rule in RULES.items()]),
            "",
            "The words for costs say what is read:",
            "",
            *lines(("cost", "what is read"), list(COSTS.items())),
            "",
            "## Full refreshes",
            "",
            "What has the refresh type FULL_REFRESH: the query is run again whenever a source changed.",
            "",
            *full,
        ]
    )


def row(case: Case, made: Compiled) -> Row:
    link = os.path.relpath(case.path, PAGE.parent)
    example = f"[{case.name.replace('_', ' ')}]({link})"
    if made.plan.refresh_type == FULL_REFRESH:
        reason = re.sub(r" (at|in) line \d+", "", made.plan.reason or "")
        return Row((case.construct, reason), example, full=True)
    cells = (case.construct, operators(made), made.plan.refresh_type, state(made), ", ".join(case.cost))
    return Row(cells, example, full=False)


def operators(made: Compiled) -> str:
    """The kinds of operators, the outermost first."""
    names = [type(operator).__name__ for operator in made.operator.walk()] if made.operator else []
    telling = [name for name in dict.fromkeys(names) if name not in PLAIN]
    return ", ".join(telling or dict.fromkeys(names))


def state(made: Compiled) -> str:
    """What is kept for the view, then for its internal views."""
    [*inner, view] = [kept(node) for node in made.plan.nodes]
    return "; ".join([view, *(f"internal view: {text}" for text in inner)])


def kept(node: PlanNode) -> str:
    program = node.program
    what = "rows"
    if isinstance(program, GroupedProgram):
        what = "one row" if program.aggregate.scalar else "groups"
    columns = getattr(program, "state_columns", ())
    hidden = [name for name in columns if name not in set(program.visible_columns())]
    kinds = [re.sub(r"^openivm_|(_arg|_agg)?_?\d+$|_arg$", "", name).replace("_", " ") for name in hidden]
    return " + ".join([what, *dict.fromkeys(HIDDEN.get(kind, kind) for kind in kinds)])


def table(heads: tuple[str, ...], rows: Iterable[Row]) -> Iterator[str]:
    """A line for each different row, with all its examples, by construct."""
    examples: dict[tuple[str, ...], list[str]] = {}
    for one in rows:
        examples.setdefault(one.cells, []).append(one.example)
    first = {cells[0]: place for place, cells in reversed(list(enumerate(examples)))}
    ordered = sorted(examples, key=lambda cells: first[cells[0]])
    return iter(lines(heads, [(*cells, ", ".join(examples[cells])) for cells in ordered]))


def lines(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    cells = [heads, tuple("---" for _ in heads), *rows]
    return [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in cells]

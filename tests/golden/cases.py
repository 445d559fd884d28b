"""The queries that have a golden file, and where it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dbt_openivm.choices import MERGE

HERE = Path(__file__).parent
QUERIES = HERE / "queries"
EXPECTED = HERE / "expected"
SCHEMA = HERE / "schema.sql"


@dataclass(frozen=True)
class Case:
    """One query.

    Attributes:
        group: the name of its file in queries/.
        about: a sentence for people who read the golden file; may be empty.
        construct: what docs/operators.md calls it; queries may share one.
        cost: words of `tests.golden.costs` for what a refresh has to read.
        apply: how its groups take their delta.
    """

    group: str
    name: str
    about: str
    sql: str
    construct: str = ""
    cost: tuple[str, ...] = ()
    apply: str = MERGE

    @cached_property
    def path(self) -> Path:
        return EXPECTED / self.group / f"{self.name}.txt"

    @property
    def title(self) -> str:
        return f"{self.group}/{self.name}"


def cases() -> list[Case]:
    """All queries, in the order of their files."""
    return [case for path in sorted(QUERIES.glob("*.sql")) for case in read(path)]


def read(path: Path) -> Iterator[Case]:
    """A block is ``-- name:``, ``-- construct:``, ``-- cost:``, maybe ``-- about:``, ``-- apply:``, then one query."""
    for block in re.split(r"^-- name: ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, rest = block.partition("\n")
        said = {"construct": "", "cost": "", "about": "", "apply": ""}
        lines = []
        for line in rest.splitlines():
            header = re.fullmatch(r"-- (construct|cost|about|apply): (.*)", line)
            if header:
                said[header[1]] = f"{said[header[1]]} {header[2]}".strip()
            else:
                lines.append(line)
        cost = tuple(word.strip() for word in said["cost"].split(",") if word.strip())
        query = "\n".join(lines).strip()
        yield Case(path.stem, name.strip(), said["about"], query, said["construct"], cost, said["apply"] or MERGE)


def schema() -> list[str]:
    """The statements that create the tables, views and macros of the queries."""
    return [statement for statement in SCHEMA.read_text(encoding="utf-8").split(";\n") if statement.strip()]

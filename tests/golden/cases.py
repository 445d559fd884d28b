"""The queries that have a golden file, and where it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent
QUERIES = HERE / "queries"
EXPECTED = HERE / "expected"
SCHEMA = HERE / "schema.sql"


@dataclass(frozen=True)
class Case:
    """One query.

    Attributes:
        group: the construct it shows; the name of its file in queries/.
        about: a sentence for people who read the golden file; may be empty.
    """

    group: str
    name: str
    about: str
    sql: str

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
    """A block starts with ``-- name:``, may say more after ``-- about:``, and then is one query."""
    for block in re.split(r"^-- name: ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, rest = block.partition("\n")
        lines = rest.splitlines()
        about = [line.removeprefix("-- about: ") for line in lines if line.startswith("-- about: ")]
        sql = "\n".join(line for line in lines if not line.startswith("-- about: ")).strip()
        yield Case(path.stem, name.strip(), " ".join(about), sql)


def schema() -> list[str]:
    """The statements that create the tables, views and macros of the queries."""
    return [statement for statement in SCHEMA.read_text(encoding="utf-8").split(";\n") if statement.strip()]

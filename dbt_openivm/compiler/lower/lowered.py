"""What lowering makes of a query."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_openivm.compiler.algebra import Operator


@dataclass(frozen=True)
class Lowered:
    """A query's operator tree, with the names of its columns as the user wrote them (not necessarily unique)."""

    operator: Operator
    names: tuple[str, ...]

"""UNION ALL adds Z-sets: every form is the sum of that form of its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dbt_openivm.compiler.algebra import Operator, UnionAll
from dbt_openivm.compiler.fragment import Fragment


def apply(operator: UnionAll, form: Callable[[Operator], list[Fragment]]) -> list[Fragment]:
    """Sum the inputs' fragments, with the columns renamed by position to those of the first input."""
    return [
        replace(
            fragment, columns=dict(zip(operator.columns, (fragment.columns[c] for c in child.columns), strict=True))
        )
        for child in operator.children
        for fragment in form(child)
    ]

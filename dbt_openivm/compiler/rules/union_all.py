"""UNION ALL adds Z-sets: every form is the sum of that form of its inputs."""

from __future__ import annotations

from dataclasses import replace

from dbt_openivm.compiler.algebra import UnionAll
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form, Forms


def delta(operator: UnionAll, context: Context, forms: Forms) -> list[Fragment]:
    return whole(operator, context, forms.delta)


def whole(operator: UnionAll, context: Context, form: Form) -> list[Fragment]:
    """The inputs' fragments, with the columns renamed by position to those of the first input."""
    return [
        replace(
            fragment, columns=dict(zip(operator.columns, (fragment.columns[c] for c in child.columns), strict=True))
        )
        for child in operator.children
        for fragment in form(child, context)
    ]

"""Project is linear: each row maps to one row of the same weight (equal results add up later)."""

from __future__ import annotations

from dataclasses import replace

from dbt_openivm.compiler.algebra import Project
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form, Forms


def delta(operator: Project, context: Context, forms: Forms) -> list[Fragment]:
    return whole(operator, context, forms.delta)


def whole(operator: Project, context: Context, form: Form) -> list[Fragment]:
    return [
        replace(fragment, columns={name: fragment.bind(value) for name, value in operator.items})
        for fragment in form(operator.child, context)
    ]

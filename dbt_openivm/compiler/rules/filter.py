"""Filter is linear: it keeps or drops a row whatever its weight, so every form is the filter of that form."""

from __future__ import annotations

from dataclasses import replace

from dbt_openivm.compiler.algebra import Filter
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form, Forms


def delta(operator: Filter, context: Context, forms: Forms) -> list[Fragment]:
    return whole(operator, context, forms.delta)


def whole(operator: Filter, context: Context, form: Form) -> list[Fragment]:
    return [
        replace(fragment, conditions=(*fragment.conditions, fragment.bind(operator.predicate)))
        for fragment in form(operator.child, context)
    ]

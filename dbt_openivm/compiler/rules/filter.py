"""Filter is linear: it keeps or drops a row whatever its weight, so every form is the filter of that form."""

from __future__ import annotations

from dataclasses import replace

from dbt_openivm.compiler.algebra import Filter
from dbt_openivm.compiler.fragment import Fragment


def apply(operator: Filter, fragments: list[Fragment]) -> list[Fragment]:
    return [
        replace(fragment, conditions=(*fragment.conditions, fragment.bind(operator.predicate)))
        for fragment in fragments
    ]

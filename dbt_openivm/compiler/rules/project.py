"""Project is linear: each row maps to one row of the same weight (equal results add up later)."""

from __future__ import annotations

from dataclasses import replace

from dbt_openivm.compiler.algebra import Project
from dbt_openivm.compiler.fragment import Fragment


def apply(operator: Project, fragments: list[Fragment]) -> list[Fragment]:
    return [
        replace(fragment, columns={name: fragment.bind(value) for name, value in operator.items})
        for fragment in fragments
    ]

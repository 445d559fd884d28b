"""What a rule may ask of the operators below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dbt_openivm.compiler.algebra import Operator
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.rules.context import Context

Form = Callable[[Operator, Context], list[Fragment]]
"""One of the three forms of a relation: its delta, its new rows, its old rows."""


class Forms(NamedTuple):
    """All three."""

    delta: Form
    new: Form
    old: Form

"""One operator a file; each answers three questions: its delta, its new rows, its old rows.

The functions below are the one dispatch from an operator's class to its file. They check what comes back: a fragment
must offer exactly the operator's columns.
"""

from __future__ import annotations

from dbt_openivm.compiler.algebra import (
    Aggregate,
    Constant,
    Filter,
    Join,
    Operator,
    Project,
    Scan,
    UnionAll,
)
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.rules import aggregate as _aggregate
from dbt_openivm.compiler.rules import constant as _constant
from dbt_openivm.compiler.rules import filter as _filter
from dbt_openivm.compiler.rules import join as _join
from dbt_openivm.compiler.rules import project as _project
from dbt_openivm.compiler.rules import scan as _scan
from dbt_openivm.compiler.rules import union_all as _union_all
from dbt_openivm.compiler.rules.context import Context as Context
from dbt_openivm.compiler.rules.context import SourceState as SourceState
from dbt_openivm.errors import InternalError


def delta(operator: Operator, context: Context) -> list[Fragment]:
    """The operator's delta as a sum of fragments; empty if no source below it changed."""
    if isinstance(operator, Scan):
        return _checked(operator, _scan.delta(operator, context))
    if isinstance(operator, Constant):
        return []
    if isinstance(operator, Join):
        return _checked(operator, _join.delta(operator, context, new, old, delta))
    return _linear(operator, context, delta)


def new(operator: Operator, context: Context) -> list[Fragment]:
    """The operator's rows over the versions that this refresh reads."""
    return (
        _checked(operator, _scan.new(operator, context))
        if isinstance(operator, Scan)
        else _whole(operator, context, new)
    )


def old(operator: Operator, context: Context) -> list[Fragment]:
    """The operator's rows over the versions that the view has consumed."""
    return (
        _checked(operator, _scan.old(operator, context))
        if isinstance(operator, Scan)
        else _whole(operator, context, old)
    )


def _whole(operator: Operator, context: Context, form: _join.Form) -> list[Fragment]:
    if isinstance(operator, Constant):
        return _constant.rows(operator, context)
    if isinstance(operator, Join):
        return _checked(operator, _join.whole(operator, context, form))
    if isinstance(operator, Aggregate):
        return _aggregate.rows(operator, context, form(operator.child, context))
    return _linear(operator, context, form)


def _linear(operator: Operator, context: Context, form: _join.Form) -> list[Fragment]:
    if isinstance(operator, Filter):
        return _checked(operator, _filter.apply(operator, form(operator.child, context)))
    if isinstance(operator, Project):
        return _checked(operator, _project.apply(operator, form(operator.child, context)))
    if isinstance(operator, UnionAll):
        return _checked(operator, _union_all.apply(operator, lambda child: form(child, context)))
    raise InternalError(f"No delta rule for the operator {type(operator).__name__}.")


def _checked(operator: Operator, fragments: list[Fragment]) -> list[Fragment]:
    for fragment in fragments:
        if tuple(fragment.columns) != operator.columns:
            raise InternalError(
                f"The rule of {type(operator).__name__} returned the columns {tuple(fragment.columns)} "
                f"instead of {operator.columns}."
            )
    return fragments

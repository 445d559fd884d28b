"""One operator a file; each answers three questions: its delta, its new rows, its old rows.

The functions below are the one dispatch from an operator's class to its file. They check what comes back: a fragment
must offer exactly the operator's columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from sqlglot import exp

from dbt_openivm.compiler import algebra
from dbt_openivm.compiler.algebra import NODES, Keyed, Operator, Scan, Temporal
from dbt_openivm.compiler.fragment import Fragment
from dbt_openivm.compiler.rules import (
    aggregate,
    asof,
    constant,
    join,
    outer_join,
    project,
    recursive,
    semi_join,
    temporal,
    top_k,
    union_all,
    unnest,
    window,
)
from dbt_openivm.compiler.rules import filter as filtering
from dbt_openivm.compiler.rules import scan as scan
from dbt_openivm.compiler.rules.context import Context as Context
from dbt_openivm.compiler.rules.context import SourceState as SourceState
from dbt_openivm.compiler.rules.forms import Form, Forms
from dbt_openivm.errors import InternalError

RULES: Mapping[type[Operator], ModuleType] = {
    algebra.Constant: constant,
    algebra.Filter: filtering,
    algebra.Project: project,
    algebra.Join: join,
    algebra.SemiJoin: semi_join,
    algebra.OuterJoin: outer_join,
    algebra.UnionAll: union_all,
    algebra.Unnest: unnest,
    algebra.Aggregate: aggregate,
    algebra.Window: window,
    algebra.Asof: asof,
    algebra.TemporalFilter: temporal,
    algebra.TemporalColumns: temporal,
    algebra.TopK: top_k,
    algebra.Recursive: recursive,
}
"""Each has ``whole(operator, context, form)``, and a core operator's ``delta(operator, context, forms)``; scans and
what reads the clock differ in every form."""


def delta(operator: Operator, context: Context) -> list[Fragment]:
    """The operator's delta as a sum of fragments; empty if no source below it changed."""
    if isinstance(operator, Scan):
        return _checked(operator, scan.delta(operator, context))
    if isinstance(operator, NODES):
        raise InternalError(f"The operator {type(operator).__name__} was not split off into a view of its own.")
    if id(operator) in context.shared and is_costly(operator):
        return _checked(operator, once(operator, context))
    return _checked(operator, _rule(operator).delta(operator, context, FORMS))


def once(operator: Operator, context: Context) -> list[Fragment]:
    """The delta of an operator that several others read: computed once, into a temporary table."""
    if id(operator) not in context.deltas:
        fragments = _rule(operator).delta(operator, context, FORMS)
        label = "keep changes that are read several times"
        rows = context.kept_rows(fragments, operator.columns, "changes", label) if fragments else None
        context.deltas[id(operator)] = rows
    rows = context.deltas[id(operator)]
    return [] if rows is None else [context.read(rows)]


def is_costly(operator: Operator) -> bool:
    """Whether a delta is more than some rows of change logs: whether anything is joined for it."""
    joins = (algebra.Join, algebra.SemiJoin, algebra.OuterJoin)
    return any(isinstance(op, joins) for op in operator.walk())


def new(operator: Operator, context: Context) -> list[Fragment]:
    """The operator's rows over the versions that this refresh reads."""
    if isinstance(operator, Scan):
        return _checked(operator, scan.new(operator, context))
    if isinstance(operator, Temporal):
        return _checked(operator, temporal.new(operator, context, new))
    return _whole(operator, context, new)


def old(operator: Operator, context: Context) -> list[Fragment]:
    """The operator's rows over the versions that the view has consumed."""
    if isinstance(operator, Scan):
        return _checked(operator, scan.old(operator, context))
    if isinstance(operator, Temporal):
        return _checked(operator, temporal.old(operator, context, old))
    return _whole(operator, context, old)


FORMS = Forms(delta, new, old)


def crossed(operator: Temporal, context: Context) -> exp.Expr:
    """The rows of a temporal operator that the passing of time alone added or took, with weights."""
    return temporal.crossing(operator, context, new)


def keyed_rows(operator: Keyed, inputs: list[list[Fragment]], context: Context) -> Fragment:
    """The rows of a `Keyed` operator with its keys beside them, over rows of its inputs."""
    fragment: Fragment = _rule(operator).rows(operator, inputs, context)
    return fragment


def _whole(operator: Operator, context: Context, form: Form) -> list[Fragment]:
    return _checked(operator, _rule(operator).whole(operator, context, form))


def _rule(operator: Operator) -> ModuleType:
    try:
        return RULES[type(operator)]
    except KeyError:
        raise InternalError(f"No delta rule for the operator {type(operator).__name__}.") from None


def _checked(operator: Operator, fragments: list[Fragment]) -> list[Fragment]:
    for fragment in fragments:
        if tuple(fragment.columns) != operator.columns:
            raise InternalError(
                f"The rule of {type(operator).__name__} returned the columns {tuple(fragment.columns)} "
                f"instead of {operator.columns}."
            )
    return fragments

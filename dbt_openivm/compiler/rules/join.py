"""Join: the delta of an n-way product by telescoping.

    delta(R1 x .. x Rn) = sum over i of  new(R1) x .. x new(Ri-1) x delta(Ri) x old(Ri+1) x .. x old(Rn)

n terms instead of the 2^n - 1 of inclusion-exclusion, since old = new - delta is at hand as a Z-set. A term whose
delta is empty vanishes. (The rule is the discrete Leibniz rule; DBSP, Budiu et al., VLDB 2023, has it for two inputs.)
The sum holds in any order of the inputs; one that has the parents of foreign keys first has empty terms for those that
only gain rows (see `constraints`).
"""

from __future__ import annotations

from sqlglot import exp

from dbt_openivm.compiler.algebra import Join
from dbt_openivm.compiler.fragment import Fragment, times
from dbt_openivm.compiler.rules.context import Context
from dbt_openivm.compiler.rules.forms import Form, Forms
from dbt_openivm.compiler.rules.references import empty_products, parents_first

MANY = 4
"""From so many changed inputs on, cancelling rows in the old ones would multiply to more than consolidating costs."""


def delta(join: Join, context: Context, forms: Forms) -> list[Fragment]:
    deltas = [forms.delta(child, context) for child in join.children]
    past = context.with_positive() if sum(map(bool, deltas)) >= MANY else context
    order, empty = parents_first(len(deltas), empty_products(join, context))
    terms: list[Fragment] = []
    for place, changed in enumerate(order):
        if not deltas[changed] or changed in empty:
            continue
        parts = []
        for index, child in enumerate(join.children):
            if index == changed:
                rows = deltas[index]
            else:
                rows = forms.new(child, context) if order.index(index) < place else forms.old(child, past)
            parts.append(context.single(rows, child.columns))
        terms.append(product(join, parts))
    return terms


def whole(join: Join, context: Context, form: Form) -> list[Fragment]:
    """The product of one form of all inputs."""
    return [product(join, [context.single(form(child, context), child.columns) for child in join.children])]


def product(join: Join, parts: list[Fragment]) -> Fragment:
    weight: exp.Expr | None = None
    for part in parts:
        weight = times(weight, part.weight)
    return Fragment(
        tuple(source for part in parts for source in part.sources),
        tuple(condition for part in parts for condition in part.conditions),
        {out: parts[index].columns[name] for out, index, name in join.names},
        weight,
    )

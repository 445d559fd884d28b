"""Name resolution within one FROM clause, by DuckDB's rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from dbt_openivm.compiler.algebra import Operator
from dbt_openivm.errors import UnsupportedError


@dataclass(frozen=True)
class Binding:
    """One relation of a FROM clause: its alias, and (name as written, output column of the scope's operator).

    Attributes:
        function: the table function whose only column may also be called so, as in ``unnest(l) AS u``: ``u.unnest``.
    """

    alias: str
    columns: tuple[tuple[str, str], ...]
    qualifiers: tuple[str, ...] = ()
    function: str = ""

    def find(self, name: str) -> str | None:
        lowered = name.lower()
        found = next((flat for written, flat in self.columns if written.lower() == lowered), None)
        return self.columns[0][1] if found is None and lowered == self.function else found

    def matches(self, qualifiers: tuple[str, ...]) -> bool:
        """Whether ``schema.alias`` or ``database.schema.alias`` means this relation."""
        if qualifiers[-1].lower() != self.alias.lower():
            return False
        rest = tuple(part.lower() for part in qualifiers[:-1])
        return not rest or tuple(part.lower() for part in self.qualifiers)[-len(rest) :] == rest


@dataclass(frozen=True)
class Merged:
    """A name that USING or NATURAL merged.

    Attributes:
        parts: the columns that it merged, from left to right. A star shows the name where the first stands.
        value: the column that the name means: one of the parts, or their COALESCE after a full join.
    """

    parts: tuple[str, ...]
    value: str


class BindsSubqueries(Protocol):
    """What joins the subqueries in expressions to the rows of a scope."""

    def value(self, node: exp.Expr, bind: Callable[[exp.Expr], exp.Expr]) -> exp.Expr | None:
        """The value of an expression that is a subquery or compares with one; None for any other."""
        ...


@dataclass
class Scope:
    """The relations visible to an expression, and the operator whose output columns they are.

    Attributes:
        merged: the names that USING or NATURAL merged, in lower case.
        number: no other scope of the query has it.
        outer: the scope around the query, which a correlated subquery refers to.
        subqueries: joins subqueries to the operator; None where there is no place for one.
        aggregates: takes a bound aggregate call that a subquery has for this query to compute, and names its column.
    """

    operator: Operator
    bindings: list[Binding]
    merged: dict[str, Merged] = field(default_factory=dict)
    number: int = 0
    outer: Scope | None = None
    subqueries: BindsSubqueries | None = None
    aggregates: Callable[[exp.Expr], str] | None = None

    def qualified(self, qualifiers: tuple[str, ...], name: str) -> str | None:
        for binding in self.bindings:
            if binding.matches(qualifiers):
                return binding.find(name)
        return None

    def unqualified(self, name: str) -> str | None:
        if name.lower() in self.merged:
            # a name that USING merged means the merged column, whatever else has the name
            return self.merged[name.lower()].value
        found = [flat for binding in self.bindings if (flat := binding.find(name)) is not None]
        if len(found) > 1:
            raise UnsupportedError(f"the column name {name} is ambiguous")
        return found[0] if found else None

    def has_alias(self, name: str) -> bool:
        return any(binding.alias.lower() == name.lower() for binding in self.bindings)

    def star(self, alias: str | None = None) -> list[tuple[str, str, str]]:
        """The columns of ``*`` or ``alias.*`` as (alias of the relation, name, output column)."""
        chosen = [b for b in self.bindings if alias is None or b.alias.lower() == alias.lower()]
        columns = [(b.alias, name, flat) for b in chosen for name, flat in b.columns]
        if alias is not None:
            return columns
        shown = {merged.parts[0]: merged.value for merged in self.merged.values()}
        hidden = {part for merged in self.merged.values() for part in merged.parts[1:]}
        return [(b, name, shown.get(flat, flat)) for b, name, flat in columns if flat not in hidden]

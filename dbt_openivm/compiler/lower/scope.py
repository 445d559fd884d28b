"""Name resolution within one FROM clause, by DuckDB's rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt_openivm.compiler.algebra import Operator
from dbt_openivm.errors import UnsupportedError


@dataclass(frozen=True)
class Binding:
    """One relation of a FROM clause: its alias, and (name as written, output column of the scope's operator)."""

    alias: str
    columns: tuple[tuple[str, str], ...]
    qualifiers: tuple[str, ...] = ()

    def find(self, name: str) -> str | None:
        lowered = name.lower()
        return next((flat for written, flat in self.columns if written.lower() == lowered), None)

    def matches(self, qualifiers: tuple[str, ...]) -> bool:
        """Whether ``schema.alias`` or ``database.schema.alias`` means this relation."""
        if qualifiers[-1].lower() != self.alias.lower():
            return False
        rest = tuple(part.lower() for part in qualifiers[:-1])
        return not rest or tuple(part.lower() for part in self.qualifiers)[-len(rest) :] == rest


@dataclass
class Scope:
    """The relations visible to an expression, and the operator whose output columns they are.

    `merged` holds the names that USING or NATURAL merged (lower case), each with the columns hidden from stars and from
    unqualified names.
    """

    operator: Operator
    bindings: list[Binding]
    merged: dict[str, set[str]] = field(default_factory=dict)

    def qualified(self, qualifiers: tuple[str, ...], name: str) -> str | None:
        for binding in self.bindings:
            if binding.matches(qualifiers):
                return binding.find(name)
        return None

    def unqualified(self, name: str) -> str | None:
        hidden = self.merged.get(name.lower(), set())
        if hidden:
            # a name that USING merged means the merged column, whatever else has the name
            binding = next(b for b in self.bindings if b.find(name) is not None)
            return binding.find(name)
        found = [flat for binding in self.bindings if (flat := binding.find(name)) is not None and flat not in hidden]
        if len(found) > 1:
            raise UnsupportedError(f"the column name {name} is ambiguous")
        return found[0] if found else None

    def has_alias(self, name: str) -> bool:
        return any(binding.alias.lower() == name.lower() for binding in self.bindings)

    def star(self, alias: str | None = None) -> list[tuple[str, str, str]]:
        """The columns of ``*`` or ``alias.*`` as (alias of the relation, name, output column)."""
        hidden = set().union(*self.merged.values()) if alias is None and self.merged else set()
        chosen = [b for b in self.bindings if alias is None or b.alias.lower() == alias.lower()]
        return [(b.alias, name, flat) for b in chosen for name, flat in b.columns if flat not in hidden]

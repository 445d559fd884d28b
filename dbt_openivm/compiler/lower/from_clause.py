"""Lower a FROM clause: relations, derived tables, and every spelling of inner, cross and theta joins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from dbt_openivm.compiler.algebra import Filter, Join, Operator, column, unique_name
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.lower.expressions import Binder
from dbt_openivm.compiler.lower.scope import Binding, Scope
from dbt_openivm.compiler.places import place
from dbt_openivm.errors import UnsupportedError

Source = Callable[[exp.Expr], tuple[Operator, str, tuple[str, ...], tuple[str, ...]]]
"""FROM item -> (operator, alias, names of its columns as written, qualifiers)."""

INNER_KINDS = ("", "INNER", "CROSS")


@dataclass
class FromClause:
    """Collects the inputs of one n-ary join from left to right."""

    facts: CompileFacts
    source: Source
    inputs: list[Operator] = field(default_factory=list)
    names: list[tuple[str, int, str]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    bindings: list[Binding] = field(default_factory=list)
    merged: dict[str, set[str]] = field(default_factory=dict)
    conditions: list[exp.Expr] = field(default_factory=list)

    def add(self, item: exp.Expr) -> None:
        """Add one relation, then the joins written inside it."""
        if is_parenthesised_join(item):
            if item.args.get("alias"):
                raise UnsupportedError(f"an alias on a parenthesised join{place(item)}")
            self.add(item.this)
        else:
            self.add_source(item)
        for join in item.args.get("joins") or []:
            self.join(join)

    def add_source(self, item: exp.Expr) -> None:
        operator, alias, written, qualifiers = self.source(item)
        position = len(self.inputs)
        columns = []
        for name, inner in zip(written, operator.columns, strict=True):
            flat = unique_name(inner, self.taken)
            self.names.append((flat, position, inner))
            columns.append((name, flat))
        self.inputs.append(operator)
        self.bindings.append(Binding(alias, tuple(columns), qualifiers))

    def join(self, join: exp.Join) -> None:
        refuse_join(join)
        left = len(self.bindings)
        self.add(join.this)
        using = [part.name for part in join.args.get("using") or []]
        if join.method == "NATURAL":
            using = self.common_names(left)
        for name in using:
            self.merge(name, left)
        on = join.args.get("on")
        if on is not None:
            self.conditions.append(Binder(self.scope(), self.facts).bind(on))

    def common_names(self, left: int) -> list[str]:
        before = {name.lower() for binding in self.bindings[:left] for name, _ in binding.columns}
        after = [name for binding in self.bindings[left:] for name, _ in binding.columns]
        common = [name for name in after if name.lower() in before]
        if not common:
            raise UnsupportedError("a NATURAL JOIN without common columns")
        return common

    def merge(self, name: str, left: int) -> None:
        """USING (name): equal values, and the left column stands for both."""
        hidden = self.merged.setdefault(name.lower(), set())
        lefts = [flat for b in self.bindings[:left] if (flat := b.find(name)) is not None and flat not in hidden]
        rights = [flat for b in self.bindings[left:] if (flat := b.find(name)) is not None]
        if len(lefts) != 1 or len(rights) != 1:
            raise UnsupportedError(f"USING ({name}) where the column is not found once on either side")
        self.conditions.append(exp.EQ(this=column(lefts[0]), expression=column(rights[0])))
        hidden.add(rights[0])

    def operator(self) -> Operator:
        """The join of all inputs, without its conditions."""
        if len(self.inputs) == 1:
            return self.inputs[0]
        return Join(tuple(self.inputs), tuple(self.names))

    def scope(self) -> Scope:
        return Scope(self.operator(), self.bindings, self.merged)

    def finish(self) -> Scope:
        """The scope over the joined and filtered rows."""
        scope = self.scope()
        for condition in self.conditions:
            scope.operator = Filter(scope.operator, condition)
        return scope


def is_parenthesised_join(item: exp.Expr) -> bool:
    """Whether `item` is a relation or a join in parentheses, any number of them, and no query.

    The join may start with a query: ``((SELECT ..) AS q JOIN u ON ..)`` is how DuckDB writes views.
    """
    inner = item
    while isinstance(inner, exp.Subquery | exp.Paren):
        inner = inner.this
        named = isinstance(inner, exp.Subquery) and (inner.args.get("alias") or inner.args.get("joins"))
        if named or isinstance(inner, exp.Table):
            return True
    return False


def refuse_join(join: exp.Join) -> None:
    side, kind, method = (str(join.args.get(key) or "").upper() for key in ("side", "kind", "method"))
    if side or kind not in INNER_KINDS or method not in ("", "NATURAL"):
        words = " ".join(word for word in (method, side, kind) if word)
        raise UnsupportedError(f"{words} JOIN{place(join)}")

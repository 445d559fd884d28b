"""Window calls of one SELECT block: read them, and group them into Window operators.

A Window recomputes the partitions that a change touches, so it needs keys that stand in the PARTITION BY of each of its
calls. Calls that have some in common share one; the others follow in a chain, each an internal view to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from dbt_openivm.compiler.aggregates import WRAPPERS
from dbt_openivm.compiler.algebra import Operator, Window, column, unique_name
from dbt_openivm.compiler.lower.expressions import rebuild
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.sql import column_names
from dbt_openivm.errors import UnsupportedError

Bind = Callable[[exp.Expr], exp.Expr]

CALL = "openivm_window"
PARTITION = "openivm_partition"


def settle_windows(node: exp.Select) -> None:
    """Write the WINDOW clause of a SELECT block into the calls that use it."""
    named: dict[str, exp.Window] = {}
    for definition in node.args.get("windows") or []:
        settle(definition, named)
        named[definition.name.lower()] = definition
    if named:
        for window in windows_of(node):
            settle(window, named)
        node.set("windows", None)


def windows_of(node: exp.Select) -> Iterator[exp.Window]:
    """The window calls of a SELECT block, those of its subqueries left out."""
    pending = [value for key, value in node.args.items() if key not in ("windows", "with_", "from_", "joins")]
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending += part
        elif isinstance(part, exp.Expr) and not isinstance(part, exp.Query):
            if isinstance(part, exp.Window):
                yield part
            pending += part.args.values()


def settle(window: exp.Window, named: Mapping[str, exp.Window]) -> None:
    """Write what the window's base says into it."""
    base = window.args.get("alias")
    if base is None:
        return
    definition = named.get(base.name.lower())
    if definition is None:
        raise UnsupportedError(f"the window {base.name}, which was not found{place(window)}")
    window.set("alias", None)
    for key in ("partition_by", "order", "spec"):
        value = definition.args.get(key)
        if value and not window.args.get(key):
            window.set(key, [part.copy() for part in value] if isinstance(value, list) else value.copy())


def bind_window(window: exp.Window, bind: Bind) -> exp.Window:
    """A copy of a window call whose arguments, conditions and keys went through `bind`."""

    def function(node: exp.Expr) -> exp.Expr:
        if isinstance(node, WRAPPERS):
            return rebuild(node, lambda part: function(part) if part is node.this else bind(part))
        return rebuild(node, bind)

    bound = rebuild(window, lambda part: function(part) if part is window.this else bind(part))
    assert isinstance(bound, exp.Window)
    return bound


@dataclass
class Shared:
    """Calls, and the keys that stand in the PARTITION BY of each."""

    keys: list[exp.Expr]
    calls: list[tuple[str, exp.Window]] = field(default_factory=list)

    def common(self, keys: list[exp.Expr]) -> list[exp.Expr]:
        return [key for key in self.keys if key in keys]


@dataclass
class Windows:
    """The bound window calls of one block: (name, call)."""

    calls: list[tuple[str, exp.Window]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def bound(self, call: exp.Window, bind: Bind) -> exp.Expr:
        """The column that will hold the value of a call."""
        call = bind_window(call, bind)
        for name, known in self.calls:
            if known == call:
                return column(name)
        name = unique_name(CALL, self.taken)
        self.calls.append((name, call))
        return column(name)

    def over(self, operator: Operator) -> Operator:
        """The operator's rows with the values of all calls."""
        taken = {name.lower() for name in operator.columns} | self.taken
        for group in self.shared():
            keys = tuple((unique_name(PARTITION, taken), key) for key in group.keys)
            operator = Window(operator, tuple(group.calls), keys)
        return operator

    def shared(self) -> list[Shared]:
        """The calls in groups that have keys in common."""
        groups: list[Shared] = []
        # those with most keys first, so that what is alike meets before what has little in common
        for name, call in sorted(self.calls, key=lambda entry: -len(partition_keys(entry[1]))):
            keys = partition_keys(call)
            alike = [group for group in groups if group.common(keys) or group.keys == keys]
            best = max(alike, key=lambda group: len(group.common(keys)), default=None)
            if best is None:
                best = Shared(keys)
                groups.append(best)
            best.keys = best.common(keys)
            best.calls.append((name, call))
        return groups


def partition_keys(call: exp.Window) -> list[exp.Expr]:
    """What a call partitions by, apart from constants."""
    found: list[exp.Expr] = []
    pending = list(call.args.get("partition_by") or [])
    while pending:
        key = pending.pop(0).unnest()
        if isinstance(key, exp.Tuple):
            pending = [*key.expressions, *pending]
        elif column_names(key) and key not in found:
            found.append(key)
    return found

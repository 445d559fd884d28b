"""What the delta rules are given: the state of each source at this refresh, and fresh aliases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbt_openivm.compiler.fragment import Fragment, combine, over


@dataclass(frozen=True)
class SourceState:
    """One source as this refresh reads it.

    Attributes:
        current: SQL for FROM: the relation at its latest version.
        log: SQL of its change log.
        cursor: the view has consumed the batches up to this one.
        version: the refresh reads the source at this batch.
        inserts, deletes: rows of positive and negative weight in the delta.
        later: whether the log holds rows after `version`, which reads of the current relation must undo.
        unit: whether all weights of the delta are +1 or -1.
        unnumbered: whether the delta is the rows of the log that have no batch number, instead of a range of batches.
    """

    current: str
    log: str = ""
    cursor: int = 0
    version: int = 0
    inserts: int = 0
    deletes: int = 0
    later: bool = False
    unit: bool = True
    unnumbered: bool = False

    @property
    def shape(self) -> str:
        """``empty``, ``insert-only`` or ``mixed``."""
        if not self.inserts and not self.deletes:
            return "empty"
        return "mixed" if self.deletes else "insert-only"


@dataclass
class Context:
    """Hands out source states and aliases.

    Attributes:
        bag: ask for relations whose rows all weigh 1, whatever it costs.
        consolidated: ask for old rows without rows that cancel, see `scan.old`.
    """

    states: Mapping[str, SourceState]
    bag: bool = False
    consolidated: bool = False
    _aliases: dict[str, int] = field(default_factory=dict)

    def alias(self, hint: str) -> str:
        hint = hint.lower()
        number = self._aliases.get(hint, 0)
        self._aliases[hint] = number + 1
        return hint if number == 0 else f"{hint}_{number}"

    def single(self, fragments: list[Fragment], columns: tuple[str, ...]) -> Fragment:
        """One fragment for a sum of fragments."""
        if len(fragments) == 1:
            return fragments[0]
        query, weighted = combine(fragments)
        return over(query, self.alias("openivm_sum"), columns, weighted)

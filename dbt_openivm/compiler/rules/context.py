"""What the delta rules are given: the state of each source at this refresh, and fresh aliases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.fragment import Fragment, combine, over
from dbt_openivm.names import MULTIPLICITY


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
        whole: whether the delta is all that came after `cursor`, numbered or not.
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
    whole: bool = False

    @property
    def shape(self) -> str:
        """``empty``, ``insert-only`` or ``mixed``."""
        if not self.inserts and not self.deletes:
            return "empty"
        return "mixed" if self.deletes else "insert-only"


@dataclass(frozen=True)
class Kept:
    """Rows that a program puts into a temporary table before its main statement."""

    table: str
    query: str
    label: str


@dataclass(frozen=True)
class KeptRows:
    """A temporary table of rows with these columns, and a weight if `weighted`."""

    table: str
    hint: str
    columns: tuple[str, ...]
    weighted: bool


@dataclass(frozen=True)
class Context:
    """Hands out source states, aliases and temporary tables.

    Attributes:
        bag: ask for relations whose rows all weigh 1, whatever it costs.
        positive: ask for relations all of whose rows have positive weights, so that a row that is there exists.
        shared: ids of operators that several others read: their deltas are computed once.
        kept: the temporary tables that the fragments made so far read, in the order in which they must be filled.
        deltas: the kept deltas of shared operators, by id.
    """

    states: Mapping[str, SourceState]
    bag: bool = False
    positive: bool = False
    shared: frozenset[int] = frozenset()
    kept: list[Kept] = field(default_factory=list)
    deltas: dict[int, KeptRows | None] = field(default_factory=dict)
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

    def with_positive(self) -> Context:
        """This context, asking for positive weights."""
        return replace(self, positive=True)

    def keep(self, query: exp.Expr, hint: str, label: str) -> str:
        """Have the rows of `query` put into a temporary table; returns its name."""
        table = self.alias(f"openivm_{hint}")
        self.kept.append(Kept(table, sql.text(query), label))
        return table

    def keep_rows(self, fragments: list[Fragment], columns: Sequence[str], hint: str, label: str) -> Fragment:
        """Have a sum of fragments put into a temporary table, which the result reads."""
        return self.read(self.kept_rows(fragments, columns, hint, label))

    def kept_rows(self, fragments: list[Fragment], columns: Sequence[str], hint: str, label: str) -> KeptRows:
        query, weighted = combine(fragments)
        return KeptRows(self.keep(query, hint, label), hint, tuple(columns), weighted)

    def read(self, rows: KeptRows) -> Fragment:
        """Read kept rows, under an alias of their own."""
        alias = self.alias(rows.hint)
        weight = sql.qualified(alias, MULTIPLICITY) if rows.weighted else None
        columns = {name: sql.qualified(alias, name) for name in rows.columns}
        return Fragment((sql.table(rows.table, alias),), (), columns, weight)

"""What every capture offers: the change log of one base, its current relation, and the versions between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from dbt_openivm.compiler.facts import Column
from dbt_openivm.engine.render import Renderer
from dbt_openivm.engine.session import Session
from dbt_openivm.names import RelationName


@dataclass(frozen=True)
class Base:
    """One base as the catalog knows it.

    Attributes:
        key: its identity in the catalog, lower case: ``database.schema.name``, or the text of a table function.
        from_sql: what stands in FROM to read it live: ``"db"."main"."sales"`` or ``read_parquet('x/*.parquet')``.
        columns: the captured columns, in order: those that views use.
        schema: the internal schema (database and schema) that holds its objects.
        objects: names of its internal objects by role, such as ``{"delta": ..., "copy": ..., "buckets": ...}``.
        version: number of the last captured batch; 0 when installed.
        relation: the table it is, None for a table function or a view that is no table.
    """

    key: str
    from_sql: str
    columns: tuple[Column, ...]
    schema: RelationName
    objects: dict[str, RelationName]
    version: int
    relation: RelationName | None


@dataclass(frozen=True)
class Probe:
    """What a look at a base before capturing it says.

    Attributes:
        broken: what happened if changes may have been missed; the caller then uninstalls, installs anew, and has every
            consumer rebuild.
        pending: whether there is something to collect; True also where only collecting can tell.
    """

    broken: str | None
    pending: bool


class Capture(ABC):
    """How the delta of a base is obtained.

    All methods run inside a transaction that the caller opened and will commit, under the lock of the database, so no
    other capture runs at the same time. Writers of the base may commit at any moment. An object of this class serves
    one such transaction: it may keep what it has read of the catalog.
    """

    kind: ClassVar[str]
    #: roles of the objects it needs, besides "delta"
    roles: ClassVar[tuple[str, ...]] = ()

    def __init__(self, session: Session, render: Renderer) -> None:
        self.session = session
        self.render = render

    @abstractmethod
    def refusal(self, base: Base) -> str | None:
        """Why this capture cannot serve `base` (a sentence with a remedy), or None."""

    @abstractmethod
    def install(self, base: Base) -> None:
        """Create the change log and whatever else is needed; the current relation then is the base at version 0."""

    @abstractmethod
    def widen(self, base: Base, wider: Base) -> None:
        """Capture more columns from now on. `collect` has just run for `base` in this very transaction.

        Rows already in the log get NULL in the new columns: no consumer that uses them will read those rows.
        """

    @abstractmethod
    def collect(self, base: Base, batch: int) -> int:
        """Give all changes since the last capture the number `batch`; return how many log rows that were (0: none)."""

    @abstractmethod
    def probe(self, base: Base) -> Probe:
        """Look whether changes may have been missed (a dropped trigger, an edited copy), and whether there are any.

        The objects of the capture are there: the caller has seen to that.
        """

    @abstractmethod
    def uninstall(self, base: Base) -> None:
        """Drop every object of this capture; missing ones are no error."""

    @abstractmethod
    def current(self, base: Base) -> str:
        """The relation to read (SQL for FROM): the base itself, or the copy."""

"""A view's program outside the engine, statement by statement, each in a session of its own: no temporary tables.

The change logs of the sources are written by comparing each table with a copy of it from before the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt_openivm.compiler import companion, companion_groups, publish
from dbt_openivm.compiler.grouped import GroupedProgram
from dbt_openivm.compiler.plan import Companion, RefreshPlan, Step, Target
from dbt_openivm.compiler.rules import SourceState
from dbt_openivm.engine.render import render
from tests.companions.views import TABLES as TABLES_OF_VIEWS
from tests.golden.compiled import compiled
from tests.helpers import connect

COMPANION = "openivm_delta_mv"


class Program:
    """One view `mv`.

    Args:
        tables: statements that create what it reads.


    Attributes:
        net, split: of the target; see there.
        one_session: whether all statements run in one session.
        batch: of the last round.
        statements: the texts of the last refresh.
    """

    def __init__(
        self,
        query: str,
        net: bool = False,
        split: bool = True,
        published: bool = False,
        tables: Sequence[str] = TABLES_OF_VIEWS,
    ) -> None:
        self.connection = connect()
        for statement in tables:
            self.connection.execute(statement)
        self.tables = [row[0] for row in self.query("SELECT table_name FROM duckdb_tables() ORDER BY ALL")]
        self.plan: RefreshPlan = compiled(self.connection, query).plan
        [self.node] = self.plan.nodes
        self.net = net
        self.split = split
        self.one_session = not split
        self.published = published
        self.batch = 0
        self.statements: list[str] = []
        for table in self.tables:
            self.connection.execute(
                f"CREATE TABLE log_{table} AS SELECT *, 1::BIGINT AS openivm_multiplicity, now()::TIMESTAMP AS "
                f"openivm_timestamp, 0::BIGINT AS openivm_batch FROM {table} LIMIT 0"
            )
        for step in publish.build(self.node.program, self.states(live=True), self.target):
            self.execute(step)
        for log in ("log_mv", COMPANION):
            self.execute(Step("ivm_create_log", {"log": log, "source": "mv"}, "create a log"))

    @property
    def target(self) -> Target:
        return Target(
            "data_mv", "mv", "log_mv", self.batch, self.published, self.plan.output,
            companion=Companion(COMPANION, "mv", self.net), split=self.split,
        )  # fmt: skip

    def states(self, live: bool = False) -> dict[str, SourceState]:
        found = {}
        for key in self.plan.sources:
            table = key.rsplit(".", 1)[-1]
            inserts, deletes = self.query(
                f"SELECT count(*) FILTER (WHERE openivm_multiplicity > 0), count(*) FILTER (WHERE openivm_multiplicity "
                f"< 0) FROM log_{table} WHERE openivm_batch = {self.batch}"
            )[0]
            shape = (0, 0) if live else (inserts, deletes)
            found[key] = SourceState(table, f"log_{table}", self.batch - 1, self.batch, *shape)
        return found

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return rows

    def execute(self, step: Step) -> None:
        """One statement in a session of its own, unless the program is for one session."""
        text = render(step.macro, step.arguments)
        self.statements.append(text)
        session = self.connection.cursor() if not self.one_session else self.connection
        session.execute(text)

    def change(self, *statements: str) -> None:
        """A round: the tables change, and their logs say how."""
        self.batch += 1
        for table in self.tables:
            self.connection.execute(f"CREATE OR REPLACE TABLE before_{table} AS FROM {table}")
        for statement in statements:
            self.connection.execute(statement)
        for table in self.tables:
            for sign, here, there in ((1, table, f"before_{table}"), (-1, f"before_{table}", table)):
                self.connection.execute(
                    f"INSERT INTO log_{table} SELECT *, {sign}, now()::TIMESTAMP, {self.batch} "
                    f"FROM (FROM {here} EXCEPT ALL FROM {there})"
                )

    def steps(self, full: bool = False) -> list[Step]:
        refresh = companion.full if full else companion.incremental
        return refresh(self.node.program, self.states(), self.target)

    def refresh(self, full: bool = False) -> list[Step]:
        """Run the program of this round; returns its steps. Stale groups are left out where there are none."""
        self.connection.execute("CREATE OR REPLACE TABLE old_mv AS FROM mv")
        self.statements = []
        steps = self.steps(full)
        counts: dict[str, int] = {}
        for step in steps:
            if step.after is not None and not counts.get(step.after, 1):
                continue
            if step.returns:
                [row] = self.query(render(step.macro, step.arguments))
                counts.update(zip(step.returns, map(int, row), strict=True))
            else:
                self.execute(step)
        return steps

    def relative(self) -> Step:
        """Writes the relative delta of this round, without companions."""
        grouped = self.node.program
        assert isinstance(grouped, GroupedProgram)
        return companion_groups.inline(grouped, self.states(), self.target)[0]

    @property
    def written(self) -> str:
        """A query for the companion rows of this round."""
        return f"SELECT * FROM {COMPANION} WHERE openivm_batch = {self.batch}"

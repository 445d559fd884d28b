from __future__ import annotations

import random
from dataclasses import replace

import duckdb
import pytest

from dbt_openivm.engine.capture.base import Base, Probe
from dbt_openivm.engine.capture.trigger import TriggerCapture
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.names import RelationName
from tests.unit.captures import MAJOR, VALUES, Rig, make_base, random_change, random_columns

needs_triggers = pytest.mark.skipif(MAJOR < 2, reason="DuckDB has triggers since 2.0")


@pytest.fixture
def rig() -> Rig:
    rig = Rig(TriggerCapture, {"a": "INTEGER", "b": "VARCHAR"})
    rig.run("INSERT INTO base_table VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 3, NULL)")
    rig.install()
    return rig


@pytest.fixture
def writer(rig: Rig) -> duckdb.DuckDBPyConnection:
    return rig.connection.cursor()


@needs_triggers
@pytest.mark.parametrize("seed", range(20))
def test_random_changes(seed: int) -> None:
    rng = random.Random(seed)
    columns = random_columns(rng)
    rig = Rig(TriggerCapture, columns, captured=rng.sample(list(columns), rng.randint(0, len(columns))))
    for _ in range(rng.randint(0, 3)):
        rig.run(random_change(rng, columns))
    rig.install()
    for _ in range(8):
        rolled_back = rng.random() < 0.2
        rig.session.begin()
        for _ in range(rng.randint(0, 4)):
            rig.run(random_change(rng, columns))
        if rolled_back:
            rig.session.rollback()
        else:
            rig.session.commit()
        collect_or_start_anew(rig)
        assert rig.collect() == 0


def collect_or_start_anew(rig: Rig) -> None:
    broken = rig.capture.probe(rig.base).broken
    if broken is None:
        rig.collect()
        return
    assert "calls equal" in broken
    rig.capture.uninstall(rig.base)
    rig.install()


@needs_triggers
@pytest.mark.parametrize("kind", VALUES)
def test_an_update_between_any_two_values_is_captured_or_noticed(kind: str) -> None:
    plain = kind.split(" COLLATE", maxsplit=1)[0]
    rig = Rig(TriggerCapture, {"x": kind})
    rig.run(f"INSERT INTO base_table VALUES (1, CAST({VALUES[kind][0]} AS {plain})), (2, NULL)")
    rig.install()
    for value in [*VALUES[kind], *reversed(VALUES[kind])]:
        rig.run(f"UPDATE base_table SET x = CAST({value} AS {plain}) WHERE openivm_id = 1")
        collect_or_start_anew(rig)


@needs_triggers
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO base_table VALUES (4, 4, 'z'), (4, 4, 'z')",
        "INSERT INTO BASE_TABLE BY NAME SELECT 5 AS A",
        "INSERT INTO base_table SELECT * FROM base_table",
        "UPDATE base_table SET a = a + 1",
        "UPDATE base_table SET a = u.n FROM (VALUES (1, 10), (2, 20)) AS u(k, n) WHERE u.k = base_table.a",
        "DELETE FROM base_table WHERE a IN (SELECT max(a) FROM base_table)",
        "DELETE FROM base_table USING (VALUES (1)) AS u(k) WHERE a = k",
        "DELETE FROM base_table",
        "TRUNCATE base_table",
        "INSERT INTO base_table VALUES (4, 4, 'z') RETURNING a",
        "WITH i AS (INSERT INTO base_table VALUES (7, 7, 'w') RETURNING a) FROM i",
    ],
)
def test_statements(rig: Rig, statement: str) -> None:
    rig.run(statement)
    assert rig.collect() > 0
    assert rig.collect() == 0


@needs_triggers
def test_bulk_ways_in(rig: Rig, tmp_path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("6,6,c\n7,7,d\n")
    rig.run(f"COPY base_table FROM '{path}' (HEADER false)")
    assert rig.collect() == 2
    rig.connection.executemany("INSERT INTO base_table VALUES (?, ?, ?)", [(8, 8, "e"), (9, 9, "f")])
    assert rig.collect() == 2
    rig.connection.table("base_table").insert([10, 10, "g"])
    assert rig.collect() == 1
    rig.connection.sql("SELECT 11, 11, 'h'").insert_into("base_table")
    assert rig.collect() == 1


@needs_triggers
def test_append_of_a_data_frame(rig: Rig) -> None:
    pandas = pytest.importorskip("pandas")
    rig.connection.append("base_table", pandas.DataFrame({"openivm_id": [8], "a": [8], "b": ["e"]}))
    assert rig.collect() == 1


@needs_triggers
def test_constraints_defaults_and_generated_columns() -> None:
    rig = Rig(TriggerCapture, {"unused": "INTEGER"})
    rig.run("DROP TABLE base_table")
    rig.run(
        "CREATE TABLE base_table (openivm_id INTEGER PRIMARY KEY, a INTEGER NOT NULL DEFAULT 7,"
        " twice INTEGER GENERATED ALWAYS AS (a * 2), b VARCHAR CHECK (b <> 'no'))"
    )
    rig.base = make_base(rig.connection, "base_table", ["a", "twice", "b"])
    assert rig.capture.refusal(rig.base) is None
    rig.install()
    rig.run("INSERT INTO base_table (openivm_id) VALUES (1), (2)")
    assert rig.collect() == 2
    rig.run("UPDATE base_table SET a = 8, openivm_id = openivm_id + 10")
    assert rig.collect() == 4
    rig.run("INSERT OR IGNORE INTO base_table (openivm_id, a) VALUES (11, 5), (99, 6)")
    assert rig.collect() == 1
    for failing in ("(1, NULL, 'x')", "(1, 1, 'no')", "(11, 1, 'x')"):
        with pytest.raises(duckdb.ConstraintException):
            rig.run(f"INSERT INTO base_table (openivm_id, a, b) VALUES {failing}")
    assert rig.collect() == 0
    for upsert in (
        "INSERT OR REPLACE INTO base_table (openivm_id, a) VALUES (11, 5)",
        "MERGE INTO base_table USING (SELECT 11 AS k) ON k = openivm_id WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(duckdb.NotImplementedException):
            rig.run(upsert)
    assert rig.collect() == 0


@needs_triggers
def test_no_captured_column_counts_rows() -> None:
    rig = Rig(TriggerCapture, {"a": "INTEGER"}, captured=[])
    rig.install()
    rig.run("INSERT INTO base_table VALUES (1, 1), (1, 2)")
    rig.run("DELETE FROM base_table WHERE a = 1")
    rig.run("UPDATE base_table SET a = 5")
    rig.collect()
    assert rig.run(f"SELECT sum(openivm_multiplicity) FROM {rig.base.objects['delta'].sql}") == [(1,)]


@needs_triggers
def test_rows_of_an_open_writer_wait_for_the_next_batch(rig: Rig, writer: duckdb.DuckDBPyConnection) -> None:
    writer.execute("BEGIN; INSERT INTO base_table VALUES (5, 5, 'late')")
    rig.run("INSERT INTO base_table VALUES (6, 6, 'early')")
    assert rig.collect() == 1
    writer.execute("COMMIT")
    assert rig.collect() == 1


@needs_triggers
def test_a_writer_that_commits_during_collect_waits_too(rig: Rig, writer: duckdb.DuckDBPyConnection) -> None:
    rig.session.begin()
    rig.run("FROM base_table")
    writer.execute("INSERT INTO base_table VALUES (5, 5, 'late')")
    assert rig.capture.collect(rig.base, 1) == 0
    rig.session.commit()
    rig.batch = 1
    assert rig.collect() == 1


@needs_triggers
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO base_table VALUES (9, 9, 'z')",
        "UPDATE base_table SET b = 'z'",
        "DELETE FROM base_table WHERE a = 1",
    ],
)
def test_no_writer_slips_past_install(statement: str, early: bool) -> None:
    """A transaction older than the triggers does not fire them; it must fail rather than be lost."""
    rig = Rig(TriggerCapture, {"a": "INTEGER", "b": "VARCHAR"})
    rig.run("INSERT INTO base_table VALUES (1, 1, 'x')")
    rig.run("COMMENT ON TABLE base_table IS 'it''s mine'")
    writer = rig.connection.cursor()
    writer.execute("BEGIN; FROM base_table")
    if early:
        writer.execute(statement)
    rig.install()
    with pytest.raises(duckdb.Error):
        writer.execute("COMMIT" if early else f"{statement}; COMMIT")
    assert rig.collect() == 0
    assert rig.run("SELECT comment FROM duckdb_tables() WHERE table_name = 'base_table'") == [("it's mine",)]


@needs_triggers
@pytest.mark.parametrize("early", [True, False])
def test_no_writer_slips_past_widen(early: bool) -> None:
    rig = Rig(TriggerCapture, {"a": "INTEGER", "b": "VARCHAR COLLATE NOCASE"}, captured=["b"])
    rig.install()
    rig.run("INSERT INTO base_table VALUES (1, 1, 'x')")
    writer = rig.connection.cursor()
    writer.execute("BEGIN; FROM base_table")
    statement = "INSERT INTO base_table VALUES (2, 2, 'y')"
    if early:
        writer.execute(statement)
    wider = make_base(rig.connection, "base_table", ["a", "b"])
    rig.session.begin()
    assert rig.capture.collect(rig.base, 1) == 1
    rig.capture.widen(rig.base, wider)
    rig.session.commit()
    with pytest.raises(duckdb.Error):
        writer.execute("COMMIT" if early else f"{statement}; COMMIT")
    log = wider.objects["delta"].sql
    assert rig.run(f"SELECT a, b, openivm_batch FROM {log}") == [(None, "x", 1)]
    rig.base, rig.batch = wider, 1
    rig.refresh_shadow()
    rig.run("INSERT INTO base_table VALUES (3, 3, 'Z'), (3, 3, 'z')")
    assert rig.collect() == 2


@needs_triggers
def test_writing_in_the_transaction_of_install() -> None:
    rig = Rig(TriggerCapture, {"a": "INTEGER"})
    rig.session.begin()
    rig.run("INSERT INTO base_table VALUES (1, 1)")
    rig.capture.install(rig.base)
    rig.run("INSERT INTO base_table VALUES (2, 2)")
    rig.session.commit()
    assert rig.capture.collect(rig.base, 1) == 1


@needs_triggers
@pytest.mark.parametrize(
    "damage",
    [
        "DROP TRIGGER openivm_delta_base_table_update ON base_table",
        "CREATE OR REPLACE TABLE base_table AS SELECT 1 AS a, 'x' AS b",
        "DROP TABLE base_table",
    ],
)
def test_broken(rig: Rig, damage: str) -> None:
    assert rig.capture.probe(rig.base).broken is None
    rig.run(damage)
    assert "is gone" in (rig.capture.probe(rig.base).broken or "")
    rig.capture.uninstall(rig.base)
    rig.run("CREATE SCHEMA IF NOT EXISTS openivm_main")
    rig.run("CREATE TABLE IF NOT EXISTS base_table (a INTEGER, b VARCHAR)")
    rig.install()
    assert rig.capture.probe(rig.base).broken is None


@needs_triggers
@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE base_table RENAME TO other",
        "ALTER TABLE base_table RENAME a TO c",
        "ALTER TABLE base_table DROP COLUMN b",
        "ALTER TABLE base_table ALTER a TYPE BIGINT",
        "DROP TABLE openivm_main.openivm_delta_base_table",
    ],
)
def test_what_duckdb_refuses_while_there_are_triggers(rig: Rig, change: str) -> None:
    with pytest.raises(duckdb.Error, match="depend"):
        rig.run(change)


@needs_triggers
def test_a_new_column_of_the_table_does_no_harm(rig: Rig) -> None:
    rig.run("ALTER TABLE base_table ADD COLUMN c INTEGER")
    rig.run("UPDATE base_table SET c = 1")
    rig.run("INSERT INTO base_table VALUES (4, 4, 'z', 4)")
    assert rig.collect() == 7


@needs_triggers
def test_a_database_file_opened_under_another_name(tmp_path) -> None:
    """Triggers spell out the name of their database: under another one they fail loudly, and installing anew heals."""
    first = duckdb.connect(tmp_path / "first.duckdb")
    first.execute("CREATE TABLE base_table (a INTEGER); CREATE SCHEMA openivm_main")
    base = make_base(first, "base_table", ["a"])
    TriggerCapture(DuckDBSession(first), render).install(_in_database(base, "first"))
    first.close()
    (tmp_path / "first.duckdb").rename(tmp_path / "second.duckdb")
    second = duckdb.connect(tmp_path / "second.duckdb")
    with pytest.raises(duckdb.CatalogException):
        second.execute("INSERT INTO base_table VALUES (1)")
    capture, base = TriggerCapture(DuckDBSession(second), render), _in_database(base, "second")
    capture.uninstall(base)
    capture.install(base)
    second.execute("INSERT INTO base_table VALUES (1)")
    assert capture.collect(base, 1) == 1


def _in_database(base: Base, database: str) -> Base:
    relation = RelationName(database, "main", "base_table")
    objects = {role: replace(name, database=database) for role, name in base.objects.items()}
    schema = replace(base.schema, database=database)
    return replace(base, relation=relation, from_sql=relation.sql, objects=objects, schema=schema)


@needs_triggers
def test_statements_of_an_unchanged_base(rig: Rig) -> None:
    capture = TriggerCapture(counting := CountingSession(rig.connection), render)
    assert capture.probe(rig.base) == Probe(None, pending=False)
    assert counting.count == 2  # the log, the triggers


class CountingSession(DuckDBSession):
    count = 0

    def execute(self, sql: str) -> list[tuple]:
        self.count += 1
        return super().execute(sql)


def test_refusals() -> None:
    rig = Rig(TriggerCapture, {"a": "INTEGER"})
    rig.run("ATTACH ':memory:' AS elsewhere")
    rig.run("CREATE TABLE elsewhere.main.t (a INTEGER)")
    rig.run("CREATE VIEW v AS FROM base_table")
    rig.run("CREATE TEMPORARY TABLE scratch (a INTEGER)")

    def refusal(relation: RelationName | None) -> str:
        text = rig.capture.refusal(_on(rig.base, relation))
        assert text is not None
        assert "capture: diff" in text
        return text

    assert "no table" in refusal(None)
    assert "another database" in refusal(RelationName("elsewhere", "main", "t"))
    assert "another database" in refusal(RelationName("temp", "main", "scratch"))
    if MAJOR < 2:
        assert "2.0" in refusal(rig.base.relation)
        return
    assert "no table" in refusal(RelationName("memory", "main", "v"))
    assert "no table" in refusal(RelationName("memory", "main", "missing"))
    assert rig.capture.refusal(rig.base) is None
    assert rig.capture.refusal(_on(rig.base, RelationName("MEMORY", "Main", "BASE_TABLE"))) is None


def _on(base: Base, relation: RelationName | None) -> Base:
    return replace(base, relation=relation)

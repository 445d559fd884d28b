from __future__ import annotations

import random
from dataclasses import replace

import duckdb
import pytest

from dbt_openivm.compiler.facts import Column
from dbt_openivm.compiler.keys import key_expressions, row_hash
from dbt_openivm.engine.capture import diff
from dbt_openivm.engine.capture.diff import DiffCapture, bucket_count
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.errors import UnsafeError
from tests.unit.captures import VALUES, Rig, make_base, random_change, random_columns


@pytest.fixture
def many_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets from the first row on, as a large base has them."""
    monkeypatch.setattr(diff, "SMALL", 0)
    monkeypatch.setattr(diff, "ROWS_PER_BUCKET", 1)


@pytest.mark.parametrize("kind", VALUES)
def test_keys_and_hash_tell_all_values_apart(kind: str) -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (n INTEGER, x {kind})")
    plain = kind.split(" COLLATE", maxsplit=1)[0]
    for number, value in enumerate([*VALUES[kind], "NULL"]):
        connection.execute(f"INSERT INTO t SELECT {number}, CAST({value} AS {plain})")
    ((_, described, *_),) = connection.execute("DESCRIBE SELECT x FROM t").fetchall()
    keys = ", ".join(key_expressions("x", described))
    different = connection.execute("SELECT count(DISTINCT n) FROM t").fetchall()
    assert connection.execute(f"SELECT count(*) FROM (SELECT 1 FROM t GROUP BY {keys})").fetchall() == different
    hashed = row_hash([Column("x", described)])
    assert connection.execute(f"SELECT count(DISTINCT {hashed}) FROM t").fetchall() == different


@pytest.mark.parametrize("kind", VALUES)
def test_every_change_of_a_value_is_seen(kind: str) -> None:
    rig = Rig(DiffCapture, {"x": kind})
    rig.install()
    plain = kind.split(" COLLATE", maxsplit=1)[0]
    for value in [*VALUES[kind], "NULL", *reversed(VALUES[kind])]:
        # by DELETE and INSERT: an UPDATE keeps a stored value that DuckDB calls equal to the new one
        before = rig.run("SELECT encode(x::VARCHAR) FROM base_table")
        rig.run("DELETE FROM base_table")
        rig.run(f"INSERT INTO base_table SELECT 1, CAST({value} AS {plain})")
        after = rig.run("SELECT encode(x::VARCHAR) FROM base_table")
        assert rig.collect() > 0 or before == after
        assert rig.collect() == 0


@pytest.mark.parametrize("seed", range(20))
def test_random_changes(seed: int) -> None:
    _random_changes(seed)


@pytest.mark.parametrize("seed", range(20, 40))
@pytest.mark.usefixtures("many_buckets")
def test_random_changes_with_many_buckets(seed: int) -> None:
    _random_changes(seed)


def _random_changes(seed: int) -> None:
    rng = random.Random(seed)
    columns = random_columns(rng)
    rig = Rig(DiffCapture, columns, captured=rng.sample(list(columns), rng.randint(0, len(columns))))
    for _ in range(rng.randint(0, 3)):
        rig.run(random_change(rng, columns))
    rig.install()
    for _ in range(10):
        for _ in range(rng.randint(0, 4)):
            rig.run(random_change(rng, columns))
        rig.collect()
        assert rig.collect() == 0


def test_no_captured_column_counts_rows() -> None:
    rig = Rig(DiffCapture, {"a": "INTEGER"}, captured=[])
    rig.install()
    rig.run("INSERT INTO base_table SELECT i, i FROM range(100) r(i)")
    assert rig.collect() == 1
    assert rig.run(f"SELECT openivm_multiplicity FROM {rig.base.objects['delta'].sql}") == [(100,)]
    rig.run("DELETE FROM base_table WHERE a < 30")
    assert rig.collect() == 1
    assert rig.run(f"SELECT count(*) FROM {rig.capture.current(rig.base)}") == [(70,)]


@pytest.mark.parametrize("name", ["rowid", "ROWID"])
def test_a_column_called_rowid(name: str) -> None:
    rig = Rig(DiffCapture, {name: "INTEGER", "b": "VARCHAR"})
    rig.run("INSERT INTO base_table SELECT 1, i % 3, 'x' FROM range(30) r(i)")
    rig.install()
    rig.run("INSERT INTO base_table VALUES (2, 1, 'x'), (1, NULL, NULL)")
    assert rig.collect() == 2
    rig.run(f'UPDATE base_table SET "{name}" = 2 WHERE openivm_id = 2')
    assert rig.collect() == 2
    rig.run("DELETE FROM base_table")
    assert rig.collect() == 4


def test_a_large_base_changes_in_a_few_places() -> None:
    rig = Rig(DiffCapture, {"a": "BIGINT", "b": "VARCHAR"})
    rig.run("INSERT INTO base_table SELECT 1, i, 'v' || i FROM range(100_000) r(i)")
    rig.install()
    rig.run("UPDATE base_table SET b = 'new' WHERE a % 10_000 = 5")
    rig.run("DELETE FROM base_table WHERE a = 77")
    rig.run("INSERT INTO base_table VALUES (1, -1, NULL), (1, -1, NULL)")
    assert rig.collect() == 22
    assert rig.collect() == 0


def test_buckets_follow_the_size() -> None:
    assert bucket_count(0) == bucket_count(19_999) == 1
    rig = Rig(DiffCapture, {"a": "BIGINT"})
    rig.install()
    buckets = f"SELECT openivm_buckets FROM {rig.base.objects['buckets'].sql} WHERE openivm_bucket = -1"
    assert rig.run(buckets) == [(1,)]
    rig.run("INSERT INTO base_table SELECT 1, i FROM range(100_000) r(i)")
    rig.collect()
    assert rig.run(buckets) == [(512,)]
    rig.run("DELETE FROM base_table WHERE a > 10")
    rig.collect()
    assert rig.run(buckets) == [(1,)]


def test_fingerprints_of_another_version_are_computed_anew() -> None:
    rig = Rig(DiffCapture, {"a": "INTEGER"})
    rig.run("INSERT INTO base_table VALUES (1, 1), (1, 2)")
    rig.install()
    buckets = rig.base.objects["buckets"].sql
    rig.run(f"UPDATE {buckets} SET openivm_version = 'v0.1', openivm_fingerprint = openivm_fingerprint + 1")
    rig.run("INSERT INTO base_table VALUES (1, 3)")
    assert rig.collect() == 1
    rig.run(f"UPDATE {buckets} SET openivm_version = 'v0.1', openivm_fingerprint = openivm_fingerprint + 1")
    assert rig.collect() == 0


def test_a_setting_that_changes_text_is_no_change() -> None:
    rig = Rig(DiffCapture, {"a": "TIMESTAMPTZ[]"})
    rig.run("SET TimeZone = 'UTC'")
    rig.run("INSERT INTO base_table VALUES (1, [TIMESTAMPTZ '2024-01-31 00:00:00+00'])")
    rig.install()
    rig.run("SET TimeZone = 'Asia/Tokyo'")
    assert rig.collect() == 0
    before = rig.run(f"FROM {rig.base.objects['buckets'].sql}")
    assert rig.collect() == 0
    assert rig.run(f"FROM {rig.base.objects['buckets'].sql}") == before


def test_widen() -> None:
    rig = Rig(DiffCapture, {"a": "INTEGER", "b": "VARCHAR COLLATE NOCASE", "c": "DOUBLE"}, captured=["c"])
    rig.run("INSERT INTO base_table VALUES (1, 1, 'a', 1.5), (1, 1, 'A', 2.5)")
    rig.install()
    rig.run("INSERT INTO base_table VALUES (1, 2, 'b', 3.5)")
    rig.collect()
    wider = make_base(rig.connection, "base_table", ["a", "b", "c"])
    rig.session.begin()
    rig.capture.collect(rig.base, 9)
    rig.capture.widen(rig.base, wider)
    rig.session.commit()
    log = wider.objects["delta"].sql
    assert rig.run(f"SELECT a, b, c, openivm_multiplicity, openivm_batch FROM {log}") == [(None, None, 3.5, 1, 1)]
    rig.base = wider
    rig.refresh_shadow()
    rig.run("UPDATE base_table SET b = 'B' WHERE a = 2")
    assert rig.collect() == 2
    assert "COLLATE" in rig.run("SELECT sql FROM duckdb_tables() WHERE table_name = 'openivm_delta_base_table'")[0][0]


def test_widen_of_a_base_that_moved() -> None:
    rig = Rig(DiffCapture, {"a": "INTEGER", "b": "INTEGER"}, captured=["a"])
    rig.install()
    rig.run("INSERT INTO base_table VALUES (1, 1, 1)")
    with pytest.raises(UnsafeError, match="Run again"):
        rig.capture.widen(rig.base, make_base(rig.connection, "base_table", ["a", "b"]))


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        ("DELETE FROM openivm_main.openivm_copy_base_table WHERE a = 1", "edited"),
        ("DROP TABLE openivm_main.openivm_copy_base_table", "dropped"),
        ("DROP TABLE openivm_main.openivm_delta_base_table", "dropped"),
        ("DROP TABLE openivm_main.openivm_buckets_base_table", "dropped"),
        ("DELETE FROM openivm_main.openivm_buckets_base_table", "edited"),
        ("ALTER TABLE openivm_main.openivm_delta_base_table DROP COLUMN a", "altered"),
    ],
)
def test_broken(damage: str, text: str) -> None:
    rig = Rig(DiffCapture, {"a": "INTEGER"})
    rig.run("INSERT INTO base_table VALUES (1, 1), (1, 2)")
    rig.install()
    assert rig.capture.probe(rig.base).broken is None
    rig.run(damage)
    broken = rig.capture.probe(rig.base).broken
    assert broken is not None
    assert text in broken
    rig.capture.uninstall(rig.base)
    rig.install()
    assert rig.capture.probe(rig.base).broken is None


def test_rollback_leaves_everything_as_it_was() -> None:
    rig = Rig(DiffCapture, {"a": "INTEGER"})
    rig.install()
    rig.run("INSERT INTO base_table VALUES (1, 1)")
    rig.session.begin()
    assert rig.capture.collect(rig.base, 1) == 1
    rig.session.rollback()
    assert rig.collect() == 1


def test_sources_that_are_no_table(tmp_path) -> None:
    rig = Rig(DiffCapture, {"a": "INTEGER", "b": "VARCHAR"})
    path = tmp_path / "it's.parquet"
    literal = str(path).replace("'", "''")
    rig.run("ATTACH ':memory:' AS \"other-db\"")
    rig.run("CREATE TABLE \"other-db\".main.t AS SELECT 1 AS a, 'x' AS b")
    rig.run('CREATE VIEW some_view AS SELECT a + 1 AS a, b FROM "other-db".main.t')
    rig.run(f"COPY (SELECT 1 AS a, 'x' AS b) TO '{literal}'")
    for source, change in {
        '"other-db"."main"."t"': 'INSERT INTO "other-db".main.t VALUES (2, NULL)',
        '"memory"."main"."some_view"': 'DELETE FROM "other-db".main.t WHERE a = 2',
        f"read_parquet('{literal}')": f"COPY (SELECT 5 AS a, 'y' AS b FROM range(3)) TO '{literal}'",
    }.items():
        rig.base = replace(rig.base, from_sql=source, relation=None)
        assert rig.capture.refusal(rig.base) is None
        rig.install()
        assert rig.collect() == 0
        rig.run(change)
        assert rig.collect() in {1, 2}
        rig.capture.uninstall(rig.base)


def test_uninstall_twice_and_without_a_schema() -> None:
    rig = Rig(DiffCapture, {"a": "INTEGER"})
    rig.install()
    rig.capture.uninstall(rig.base)
    rig.capture.uninstall(rig.base)
    rig.run("DROP SCHEMA openivm_main")
    rig.capture.uninstall(rig.base)


def test_statements_of_an_unchanged_base() -> None:
    rig = Rig(DiffCapture, {"a": "INTEGER"})
    rig.install()
    capture = DiffCapture(counting := CountingSession(rig.connection), render)
    assert capture.collect(rig.base, 1) == 0
    assert counting.count == 1


class CountingSession(DuckDBSession):
    count = 0

    def execute(self, sql: str) -> list[tuple]:
        self.count += 1
        return super().execute(sql)

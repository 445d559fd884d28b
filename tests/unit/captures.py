"""What the tests of the captures share: a base with its capture, an oracle that trusts text only, random changes."""

from __future__ import annotations

import random
from collections.abc import Iterable

import duckdb

from dbt_openivm.compiler.facts import Column
from dbt_openivm.engine.capture.base import Base, Capture
from dbt_openivm.engine.render import render
from dbt_openivm.engine.session import DuckDBSession
from dbt_openivm.names import RelationName, quote

#: type -> SQL of values; pairs that DuckDB calls equal stand beside each other
VALUES: dict[str, list[str]] = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["1", "-1"],
    "SMALLINT": ["1", "-1"],
    "INTEGER": ["1", "2", "-3"],
    "BIGINT": ["1", "9223372036854775807"],
    "HUGEINT": ["0", "-1", "1", "18446744073709551616", "170141183460469231731687303715884105727"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["0", "65535"],
    "UINTEGER": ["0", "4294967295"],
    "UBIGINT": ["0", "18446744073709551615"],
    "UHUGEINT": ["0", "18446744073709551617", "340282366920938463463374607431768211455"],
    "FLOAT": ["'0.0'", "'-0.0'", "'nan'", "'inf'", "1.5"],
    "DOUBLE": ["'0.0'", "'-0.0'", "'nan'", "'-inf'", "0.1"],
    "DECIMAL(9,2)": ["1.00", "1.01"],
    "DECIMAL(38,10)": ["0", "-0.0000000001", "1.0", "12345678901234567890.0000000001"],
    "VARCHAR": ["''", "'a'", "'A'", "'NULL'", "'it''s'", "chr(233)"],
    "VARCHAR COLLATE NOCASE": ["'a'", "'A'", "'b'"],
    "BLOB": ["'a'", "'\\x00'", "''"],
    "BIT": ["'1'", "'01'"],
    "UUID": [
        "'91111111-1111-1111-1111-111111111111'",
        "'a2222222-2222-2222-2222-222222222222'",
        "'4ac7a9e9-607c-4c8a-84f3-843f0191e3fd'",
        "'5ac7a9e9-607c-4c8a-84f3-843f0191e3fd'",
    ],
    "DATE": ["'2024-01-31'", "'infinity'"],
    "TIME": ["'00:00:01'", "'24:00:00'"],
    "TIMETZ": ["'10:00:00+01'", "'09:00:00+00'"],
    "TIMESTAMP": ["'2024-01-31 00:00:00'", "'-infinity'"],
    "TIMESTAMP_S": ["'2024-01-31 00:00:00'", "'2024-01-31 00:00:01'"],
    "TIMESTAMP_MS": ["'2024-01-31 00:00:00'", "'2024-01-31 00:00:00.001'"],
    "TIMESTAMP_NS": ["'2024-01-31 00:00:00'", "'2024-01-31 00:00:00.000000001'"],
    "TIMESTAMPTZ": ["'2024-01-31 00:00:00+00'", "'2024-01-31 00:00:00+01'"],
    "INTERVAL": ["'30 days'", "'1 month'", "'720 hours'"],
    "ENUM('x', 'y, z')": ["'x'", "'y, z'"],
    "JSON": ["'{}'", "'{ }'", "'[1]'"],
    "INTEGER[]": ["[]", "[NULL]", "[1]", "[1, NULL]", "[NULL, NULL]"],
    "INTEGER[][]": ["[[1], [2]]", "[[1, 2]]", "[[], [1, 2]]", "[[]]", "[NULL]"],
    "INTEGER[2]": ["[1, 2]", "[NULL, 2]"],
    "INTERVAL[]": ["[INTERVAL '30 days']", "[INTERVAL '1 month']"],
    "HUGEINT[]": ["[0]", "[-1]"],
    "DOUBLE[]": ["['0.0'::DOUBLE]", "['-0.0'::DOUBLE]"],
    "VARCHAR[]": ["['a, b']", "['a', 'b']", "['NULL']", "[NULL]", "['']", "[]"],
    "STRUCT(a INTEGER)": ["{'a': NULL}", "{'a': 1}"],
    "STRUCT(d DOUBLE, i INTERVAL)": ["{'d': '0.0', 'i': '30 days'}", "{'d': '-0.0', 'i': '1 month'}"],
    "MAP(VARCHAR, INTEGER)": ["MAP {'a': 1, 'b': 2}", "MAP {'b': 2, 'a': 1}", "MAP {}", "MAP {'a': NULL}"],
    "UNION(n INTEGER, b BIGINT, t VARCHAR)": [
        "union_value(n := 1)",
        "union_value(b := 1::BIGINT)",
        "union_value(t := '1')",
    ],
    "VARIANT": ["1::INTEGER::VARIANT", "1::BIGINT::VARIANT", "'1'::VARIANT", "[1]::VARIANT", "[1::BIGINT]::VARIANT"],
}
#: only in DuckDB 2.0, or only complete there
NEW_TYPES: dict[str, list[str]] = {
    "TIME_NS": ["'00:00:01'", "'00:00:01.000000001'"],
    "BIGNUM": ["'1'", "'123456789012345678901234567890123456789012345'"],
    "VARIANT[]": ["[1::INTEGER::VARIANT]", "[1::BIGINT::VARIANT]"],
    "STRUCT(v VARIANT)": ["{'v': {'k': 1::INTEGER}::VARIANT}", "{'v': {'k': 1::BIGINT}::VARIANT}"],
}
MAJOR = int(duckdb.__version__.split(".")[0])
if MAJOR >= 2:
    VALUES.update(NEW_TYPES)

#: column names that break careless SQL
NAMES = ["a", "order", "with space", 'quo"te', "dot.ted", "Größe", "openivm", "kept", "gone", "live", "range", "stored"]


class Rig:
    """A table `table` and one capture of it, with a shadow that only ever sees the change log."""

    def __init__(self, kind: type[Capture], columns: dict[str, str], captured: list[str] | None = None) -> None:
        self.connection = duckdb.connect()
        self.session = DuckDBSession(self.connection)
        self.kind = kind
        self.batch = 0
        definition = ", ".join(f"{quote(name)} {type_name}" for name, type_name in columns.items())
        self.run(f"CREATE TABLE base_table (openivm_id INTEGER, {definition})")
        self.run("CREATE SCHEMA openivm_main")
        self.base = make_base(self.connection, "base_table", list(columns) if captured is None else captured)

    @property
    def capture(self) -> Capture:
        """A new one each time: it serves one transaction."""
        return self.kind(self.session, render)

    def run(self, sql: str) -> list[tuple]:
        return self.session.execute(sql)

    def install(self) -> None:
        self.session.begin()
        self.capture.install(self.base)
        self.session.commit()
        self.refresh_shadow()

    def refresh_shadow(self) -> None:
        self.run(f"CREATE OR REPLACE TABLE shadow AS {self._select(self.base.from_sql)}")

    def collect(self) -> int:
        """Collect, apply the batch to the shadow, and compare with the base."""
        self.batch += 1
        self.session.begin()
        assert self.capture.probe(self.base).broken is None
        count = self.capture.collect(self.base, self.batch)
        self.session.commit()
        self.check(count)
        return count

    def check(self, count: int) -> None:
        log = self.base.objects["delta"].sql
        where = f"WHERE openivm_batch = {self.batch}"
        assert self.run(f"SELECT count(*) FROM {log} {where}") == [(count,)]
        live = self._text(self.base.from_sql)
        plus = f"{self._text(f'(FROM {log} {where})', 'openivm_multiplicity')}"
        minus = f"{self._text(f'(FROM {log} {where})', '-openivm_multiplicity')}"
        new, old = f"{self._text('shadow')} UNION ALL {plus}", f"{live} UNION ALL {minus}"
        assert_same_bag(self.connection, new, old)
        assert_same_bag(self.connection, live, self._text(self.capture.current(self.base)))
        self.refresh_shadow()

    def _select(self, source: str) -> str:
        columns = [quote(column.name) for column in self.base.columns]
        return f"SELECT {', '.join([*columns, '0 AS openivm_row'])} FROM {source}"

    def _text(self, source: str, copies: str = "1") -> str:
        """The rows of `source` as bytes of their text, each `copies` times (none where that is negative)."""
        shown = [f"encode(CAST({quote(column.name)} AS VARCHAR)) AS c{i}" for i, column in enumerate(self.base.columns)]
        shown += [
            f"variant_typeof({quote(column.name)}) AS v{i}"
            for i, column in enumerate(self.base.columns)
            if column.type == "VARIANT"
        ]
        columns = ", ".join([*shown, "0 AS z", f"unnest(range({copies})) AS n"])
        return f"SELECT * EXCLUDE (n) FROM (SELECT {columns} FROM {source})"


def make_base(connection: duckdb.DuckDBPyConnection, table: str, captured: Iterable[str]) -> Base:
    described = connection.execute(f"DESCRIBE {quote(table)}").fetchall()
    types = {name: type_name for name, type_name, *_ in described}
    roles = ("delta", "copy", "buckets")
    return Base(
        key=f"memory.main.{table}",
        from_sql=RelationName("memory", "main", table).sql,
        columns=tuple(Column(name, types[name]) for name in captured),
        schema=RelationName("memory", "openivm_main", ""),
        objects={role: RelationName("memory", "openivm_main", f"openivm_{role}_{table}") for role in roles},
        version=0,
        relation=RelationName("memory", "main", table),
    )


def assert_same_bag(connection: duckdb.DuckDBPyConnection, left: str, right: str) -> None:
    lonely_left = connection.execute(f"({left}) EXCEPT ALL ({right})").fetchall()
    lonely_right = connection.execute(f"({right}) EXCEPT ALL ({left})").fetchall()
    assert (lonely_left, lonely_right) == ([], [])


def random_columns(rng: random.Random, avoid: Iterable[str] = ()) -> dict[str, str]:
    names = rng.sample(NAMES, rng.randint(1, 5))
    kinds = [kind for kind in VALUES if kind not in avoid]
    return {name: rng.choice(kinds) for name in names}


def random_value(rng: random.Random, kind: str) -> str:
    if rng.random() < 0.2:
        return "NULL"
    return f"CAST({rng.choice(VALUES[kind])} AS {kind.split(' COLLATE', maxsplit=1)[0]})"


def random_change(rng: random.Random, columns: dict[str, str]) -> str:
    """One statement: mostly inserts, so that there is something to update and delete."""
    some = f"openivm_id % {rng.randint(2, 5)} = {rng.randint(0, 1)}"
    kind = rng.choices(["insert", "again", "update", "delete", "truncate", "nothing"], [6, 2, 4, 3, 0.3, 1])[0]
    if kind == "insert":
        rows = (
            ", ".join([str(rng.randint(0, 9)), *(random_value(rng, kind) for kind in columns.values())])
            for _ in range(rng.randint(1, 6))
        )
        return f"INSERT INTO base_table VALUES ({'), ('.join(rows)})"
    if kind == "again":
        return f"INSERT INTO base_table SELECT * FROM base_table WHERE {some}"
    if kind == "update":
        name = rng.choice(list(columns))
        return f"UPDATE base_table SET {quote(name)} = {random_value(rng, columns[name])} WHERE {some}"
    if kind == "delete":
        return f"DELETE FROM base_table WHERE {some}"
    return "TRUNCATE base_table" if kind == "truncate" else "DELETE FROM base_table WHERE false"

"""A view is rebuilt when its fingerprint changes, so it changes where it must and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt_openivm.compiler import compile as compiler
from dbt_openivm.compiler.compile import compile as compile_query
from dbt_openivm.compiler.compile import difference
from dbt_openivm.compiler.facts import SQL_VIEW, Column, CompileFacts, Macro
from tests.unit.compiling import facts, relation

KNOWN = facts(t="k INTEGER, x INTEGER, unused VARCHAR", u="k INTEGER, y DOUBLE")
QUERY = "SELECT k, sum(x) AS s FROM t GROUP BY k"


def changed(query: str, known: CompileFacts, from_query: str = QUERY, from_known: CompileFacts = KNOWN) -> str | None:
    return difference(compile_query(from_query, from_known).fingerprint, compile_query(query, known).fingerprint)


def with_table(name: str, columns: str, known: CompileFacts = KNOWN) -> CompileFacts:
    made = relation(name, columns)
    return replace(known, relations={**known.relations, made.key: made})


@pytest.mark.parametrize(
    "same",
    [
        QUERY.lower().replace("t group", "t  group"),
        f"{QUERY};",
        f"  {QUERY}\n",
        f"-- why\n{QUERY} /* because */",
        f"({QUERY})",
        "select k, SUM(x) as s\nfrom t\ngroup by k",
    ],
)
def test_another_spelling_is_the_same_query(same: str) -> None:
    assert changed(same, KNOWN) is None


@pytest.mark.parametrize(
    "other",
    [
        "SELECT k, sum(x) AS total FROM t GROUP BY k",
        "SELECT k, sum(x + 0) AS s FROM t GROUP BY k",
        "SELECT k, sum(x) AS s FROM t WHERE x > 0 GROUP BY k",
        "SELECT k, min(x) AS s FROM t GROUP BY k",
        "SELECT k, sum(x) AS s FROM t GROUP BY k HAVING sum(x) > 1",
    ],
)
def test_another_query(other: str) -> None:
    assert changed(other, KNOWN) == "the query changed"


def test_text_in_quotes_keeps_its_case_and_spaces() -> None:
    known = facts(t="k VARCHAR")
    first, other = "SELECT k FROM t WHERE k = 'A b'", "SELECT k FROM t WHERE k = 'a  b'"
    assert changed(other, known, first, known) == "the query changed"


def test_a_retyped_used_column() -> None:
    assert changed(QUERY, with_table("t", "k INTEGER, x BIGINT, unused VARCHAR")) == "a column that it reads changed"


@pytest.mark.parametrize(
    "columns",
    [
        "k INTEGER, x INTEGER, unused DATE",
        "k INTEGER, x INTEGER",
        "k INTEGER, x INTEGER, unused VARCHAR, added VARCHAR",
    ],
)
def test_a_change_of_unused_columns_is_none(columns: str) -> None:
    assert changed(QUERY, with_table("t", columns)) is None


def test_a_star_uses_every_column() -> None:
    wider = with_table("t", "k INTEGER, x INTEGER, unused VARCHAR, added VARCHAR")
    assert changed("SELECT * FROM t", wider, "SELECT * FROM t") is not None


def test_another_relation_of_the_same_name() -> None:
    """A new table earlier in the search path means something else by the same text."""
    other = replace(relation("t", "k INTEGER, x INTEGER, unused VARCHAR"), key="memory.dev.t")
    known = replace(KNOWN, relations={**KNOWN.relations, other.key: other}, search_path=(("memory", "dev"),))
    assert changed(QUERY, known) == "a column that it reads changed"


def test_the_definition_of_a_plain_view() -> None:
    def view(definition: str) -> CompileFacts:
        made = replace(
            relation("v", "k INTEGER, x INTEGER"), kind=SQL_VIEW, definition=definition, context=("memory", "main")
        )
        return replace(KNOWN, relations={**KNOWN.relations, made.key: made})

    query = "SELECT k FROM v"
    first = view("SELECT k, x FROM t")
    assert changed(query, view("SELECT k, x FROM t WHERE x > 0"), query, first) == "the query changed"
    assert changed(query, first, query, first) is None


def test_the_body_of_a_macro() -> None:
    def macro(body: str) -> CompileFacts:
        return replace(KNOWN, macros={"twice": (Macro("twice", ("a",), body, is_table=False),)})

    query = "SELECT twice(x) AS z FROM t"
    assert changed(query, macro("a + a + 0"), query, macro("a + a")) == "the query changed"
    assert changed(QUERY, macro("a + a + 0"), QUERY, macro("a + a")) is None


def test_the_types_of_the_result() -> None:
    before = replace(KNOWN, output=(Column("k", "INTEGER"), Column("s", "HUGEINT")))
    after = replace(KNOWN, output=(Column("k", "INTEGER"), Column("s", "DOUBLE")))
    assert changed(QUERY, after, QUERY, before) == "a column that it reads changed"


def test_another_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compile_query(QUERY, KNOWN).fingerprint
    monkeypatch.setattr(compiler, "version", "99.0.0")
    assert difference(before, compile_query(QUERY, KNOWN).fingerprint) == "dbt-openivm was upgraded"

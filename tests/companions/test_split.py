"""Companion rows for callers that run each statement in a session of its own: no temporary tables."""

from __future__ import annotations

from typing import Any

import pytest

from tests.companions.bags import assert_transition, cancelling
from tests.companions.program import Program
from tests.companions.views import ROUNDS, VIEWS
from tests.helpers import assert_view_is_exact

INLINE = ("sums", "two_keys", "joined", "keys_only")
EXACT = ("averages", "floats", "extremes", "median", "hidden_key", "expression_key", "shown_groups", "total")


def assert_no_temporary_tables(program: Program) -> None:
    assert not any("TEMP" in statement for statement in program.statements), program.statements


def macros(program: Program) -> list[str]:
    return [step.macro for step in program.refresh()]


@pytest.mark.parametrize("view", EXACT)
def test_old_and_new_rows_around_the_program(view: str) -> None:
    """Where the relative delta does not add up, the rows of the affected keys are written before and after."""
    program = Program(VIEWS[view][1])
    for number, statements in enumerate(ROUNDS):
        program.net = bool(number % 2)
        program.change(*statements)
        assert "ivm_companion_inline" not in macros(program)
        assert_no_temporary_tables(program)
        assert_view_is_exact(program.connection, "mv", VIEWS[view][1])
        assert_transition(program.connection, "old_mv", program.written, "mv")
        if program.net:
            assert not cancelling(program.connection, program.written)


@pytest.mark.parametrize("view", ["sums", "shown_groups", "total"])
def test_the_boundary_is_published_from_the_companion_rows(view: str) -> None:
    program = Program(VIEWS[view][1], published=True)
    for statements in ROUNDS:
        program.change(*statements)
        program.refresh()
        assert_no_temporary_tables(program)
        log = f"SELECT * FROM log_mv WHERE openivm_batch = {program.batch}"
        assert_transition(program.connection, "old_mv", program.written, "mv")
        assert_transition(program.connection, "old_mv", log, "mv")
        assert not cancelling(program.connection, log)


def totals(program: Program, rows: str, by: list[str]) -> set[tuple[Any, ...]]:
    """COUNT(*), and SUM of each column that is no key, of weighted rows; without groups in which all are zero."""
    values = [column.name for column in program.plan.output if column.name not in ("g", "h")]
    sums = ["sum(openivm_multiplicity)", *(f"sum({name} * openivm_multiplicity)" for name in values)]
    items = [*by, *(f"coalesce({value}, 0)::DECIMAL(20, 2)" for value in sums)]
    found = program.query(f"SELECT {', '.join(items)} FROM ({rows}) GROUP BY {', '.join(by) or '()'}")
    return {row for row in found if any(row[len(by) :])}


@pytest.mark.parametrize("view", INLINE)
def test_inline_retractions_keep_counts_and_sums(view: str) -> None:
    """For each key and for all: COUNT(*), and SUM of each column, follow by what the companion rows add up to."""
    program = Program(VIEWS[view][1])
    keys = [column.name for column in program.plan.output if column.name in ("g", "h")]
    for number, statements in enumerate(ROUNDS):
        program.net = bool(number % 2)
        program.change(*statements)
        assert "ivm_companion_inline" in macros(program)
        assert_no_temporary_tables(program)
        assert_view_is_exact(program.connection, "mv", VIEWS[view][1])
        for by in [keys, *([key] for key in keys), []]:
            followed = "SELECT *, 1 AS openivm_multiplicity FROM old_mv UNION ALL " + program.written.replace(
                "*", "* EXCLUDE (openivm_timestamp, openivm_batch)"
            )
            assert totals(program, followed, by) == totals(program, "SELECT *, 1 AS openivm_multiplicity FROM mv", by)
        if program.net:
            assert not cancelling(program.connection, program.written)


def test_full_refresh() -> None:
    """Every old row with -1 before the recompute, every new one with 1 after it."""
    program = Program("SELECT g, x, h FROM t LIMIT 6")
    assert program.plan.refresh_type == "FULL_REFRESH"
    for number, statements in enumerate(ROUNDS):
        program.net = bool(number % 2)
        program.change(*statements)
        steps = program.refresh(full=True)
        assert [step.macro for step in steps][:3] == ["ivm_companion_rows", "ivm_create_state", "ivm_companion_rows"]
        assert_no_temporary_tables(program)
        assert_transition(program.connection, "old_mv", program.written, "mv")
        if program.net:
            assert not cancelling(program.connection, program.written)
        else:
            [(rows,)] = program.query("SELECT (SELECT count(*) FROM old_mv) + (SELECT count(*) FROM mv)")
            assert len(program.query(program.written)) == rows


def test_a_join_that_needs_temporary_tables_runs_in_one_session() -> None:
    query = "SELECT t.g, AVG(w) AS w FROM t LEFT JOIN u ON t.g = u.g GROUP BY t.g"
    program = Program(query)
    program.one_session = True
    for statements in ROUNDS:
        program.change(*statements)
        program.refresh()
        assert_view_is_exact(program.connection, "mv", query)
        assert_transition(program.connection, "old_mv", program.written, "mv")

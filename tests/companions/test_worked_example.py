"""The worked example of companion rows, and their table "Effect on downstream views".

A downstream view is played by a reader that only adds up what it is handed. It is handed companion rows, in each of
their forms, and, to show what they prevent, the relative delta alone. A real chained view, which reads the boundary,
must come to the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.companions.program import Program
from tests.helpers import World, connect

TABLES = ("CREATE TABLE sales (region VARCHAR, amount INTEGER)", "INSERT INTO sales VALUES ('US', 100), ('EU', 200)")
CHANGE = "INSERT INTO sales VALUES ('US', 50)"
TOTALS = "SELECT region, SUM(amount) AS total FROM sales GROUP BY region"
LARGEST = "SELECT region, MAX(amount) AS total FROM sales GROUP BY region"
#: in one session or without temporary tables, as they are or net
FORMS: list[dict[str, bool]] = [{"split": False}, {"split": False, "net": True}, {}, {"net": True}]

Rows = list[tuple[Any, ...]]


def changed(query: str, *statements: str, **form: bool) -> Program:
    program = Program(query, tables=TABLES, **form)
    program.change(*(statements or (CHANGE,)))
    program.refresh()
    return program


def companion_rows(query: str, *statements: str, **form: bool) -> Rows:
    """(columns of the view, weight) that a consumer reads."""
    program = changed(query, *statements, **form)
    return sorted(
        program.query(f"SELECT * EXCLUDE (openivm_timestamp, openivm_batch) FROM ({program.written})"), key=str
    )


def relative_delta(query: str, *statements: str) -> Rows:
    """What a refresh adds to groups, without companion rows."""
    program = Program(query, tables=TABLES)
    program.change(*(statements or (CHANGE,)))
    relative = program.relative()
    program.execute(relative)
    return sorted(
        program.query(f"SELECT * EXCLUDE (openivm_timestamp, openivm_batch) FROM ({program.written})"), key=str
    )


def chained(query: str, downstream: str) -> Rows:
    """What a chained view shows, which reads the boundary."""
    with connect() as connection:
        world = World(connection, "diff")
        world.run(*TABLES)
        world.create("mv1", query)
        world.create("mv2", downstream)
        world.run(CHANGE)
        world.refresh("mv1")
        assert world.refresh("mv2").strategy in ("incremental", "none")
        return world.rows("mv2")


def count(rows: Rows) -> int:
    """COUNT(*): 2 before."""
    return 2 + sum(weight for *_, weight in rows)


def total(rows: Rows, base: int = 300) -> int:
    """SUM(total): 300 before."""
    return base + sum(value * weight for _, value, weight in rows if value is not None)


def projected(rows: Rows) -> Rows:
    """SELECT region, total: rows that went are deleted, rows that came inserted."""
    kept = [("US", 100), ("EU", 200)]
    for *row, weight in sorted(rows, key=lambda row: row[-1]):
        if weight > 0:
            kept.append(tuple(row))
        else:
            kept.remove(tuple(row))
    return sorted(kept)


def test_the_worked_example() -> None:
    """US +50: the relative delta looks like a new region, the companion row says that it was there."""
    assert relative_delta(TOTALS) == [("US", 50, 1)]
    assert count(relative_delta(TOTALS)) == 3  # wrong
    rows = companion_rows(TOTALS, split=False)
    assert rows == [("US", 100, -1), ("US", 150, 1)]
    assert count(rows) == 2
    assert chained(TOTALS, "SELECT COUNT(*) AS num_regions FROM mv1") == [(2,)]


def test_a_new_key_has_a_row_that_comes_only() -> None:
    rows = companion_rows(TOTALS, "INSERT INTO sales VALUES ('JP', 1)", split=False)
    assert rows == [("JP", 1, 1)]
    assert count(rows) == 3


def test_a_group_that_empties_has_a_row_that_goes_only() -> None:
    gone = "DELETE FROM sales WHERE region = 'US'"
    assert companion_rows(TOTALS, gone, split=False) == [("US", 100, -1)]
    assert companion_rows(TOTALS, gone) == [("US", 100, -1)]  # the negative row of the relative delta: no add-back


def test_inline_retraction_and_add_back() -> None:
    """Keys kept, every other column NULL."""
    assert companion_rows(TOTALS) == [("US", 50, 1), ("US", None, -1)]
    grown = ("INSERT INTO sales VALUES ('US', 50)", "DELETE FROM sales WHERE amount = 100")
    assert companion_rows(TOTALS, *grown) == [
        ("US", 100, -1),
        ("US", 50, 1),
        ("US", None, -1),
        ("US", None, 1),
    ]


def test_count_over_groups() -> None:
    assert count(relative_delta(TOTALS)) == 3  # takes a value change for a new group
    for form in FORMS:
        assert count(companion_rows(TOTALS, **form)) == 2
    assert chained(TOTALS, "SELECT COUNT(*) AS n FROM mv1") == [(2,)]


def test_sum_over_groups() -> None:
    """A sum of sums would come out right without; of anything else the delta is added on top of a stale base."""
    assert total(relative_delta(LARGEST)) == 350  # 100 is still the largest of US
    for form in FORMS:
        assert total(companion_rows(TOTALS, **form)) == 350
        assert total(companion_rows(LARGEST, **form)) == 300
    assert chained(LARGEST, "SELECT SUM(total)::INTEGER AS n FROM mv1") == [(300,)]


def test_sum_over_groups_above_a_condition() -> None:
    """Even of sums, where the reader looks at single rows: US comes over 120."""

    def above(rows: Rows) -> Rows:
        return [row for row in rows if row[1] is not None and row[1] > 120]

    assert total(above(relative_delta(TOTALS)), base=200) == 200  # 50 is not above 120
    assert total(above(companion_rows(TOTALS, split=False)), base=200) == 350
    assert chained(TOTALS, "SELECT SUM(total)::INTEGER AS n FROM mv1 WHERE total > 120") == [(350,)]
    # the inline form is for COUNT(*) and SUM alone; readers of single rows need old and new rows
    assert total(above(companion_rows(TOTALS)), base=200) == 200


@pytest.mark.parametrize("net", [False, True])
def test_a_projection_chain(net: bool) -> None:
    assert projected(relative_delta(TOTALS)) == [("EU", 200), ("US", 50), ("US", 100)]  # a delete is missing
    assert projected(companion_rows(TOTALS, split=False, net=net)) == [("EU", 200), ("US", 150)]
    assert chained(TOTALS, "SELECT region, total FROM mv1") == [("EU", 200), ("US", 150)]


def test_the_program_has_the_names_of_the_page() -> None:
    """Affected keys and old rows before the MERGE, signed rows after it, and both dropped."""
    program = changed(TOTALS, split=False)
    temporary = '"openivm_old_affected_mv"', '"openivm_old_snapshot_mv"'
    mentioned = [[name for name in temporary if name in statement] for statement in program.statements]
    assert [statement.split()[0] for statement in program.statements] == [
        "CREATE", "CREATE", "CREATE", "MERGE", "INSERT", "INSERT", "DROP", "DROP", "DROP",
    ]  # fmt: skip
    assert mentioned == [
        [], [temporary[0]], [*temporary], [], [temporary[1]], [temporary[0]], [temporary[1]], [temporary[0]], [],
    ]  # fmt: skip
    assert all("IS NOT DISTINCT FROM" in program.statements[i] for i in (2, 3, 5))


def test_all_old_rows_are_kept_under_the_name_of_the_page() -> None:
    program = changed("SELECT COUNT(*) AS n, SUM(amount) AS total FROM sales", split=False)
    assert [statement.split("(")[0].split("AS")[0].strip() for statement in program.statements] == [
        'CREATE OR REPLACE TEMPORARY TABLE "openivm_old_mv"',
        "UPDATE data_mv",
        "INSERT INTO openivm_delta_mv",
        'DROP TABLE temp."openivm_old_mv"',
    ]


def test_an_unchanged_result_is_an_empty_delta() -> None:
    """openivm_skip_empty_deltas: +5 and -5 leave the group as it was."""
    nothing = ("INSERT INTO sales VALUES ('US', 5), ('US', -5)",)
    assert companion_rows(TOTALS, *nothing, split=False) == [("US", 100, -1), ("US", 100, 1)]
    assert companion_rows(TOTALS, *nothing, split=False, net=True) == []

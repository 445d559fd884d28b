"""The fuzzer's checks notice what they are for: each runs against an engine that breaks just that promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.property import engines
from tests.property.case import Case, CreateTable, Insert, Step, ViewDef
from tests.property.generate import generate
from tests.property.runner import run_case
from tests.property.script import script
from tests.property.shrink import Shrinker


def small_case(sql: str = "SELECT x FROM t", *, supported: bool = True, risky: bool = False) -> Case:
    table = CreateTable('"t"', (("g", "INTEGER"), ("x", "BIGINT")))
    rows = Insert('"t"', ("g", "x"), (("1", "1"), ("1", "1"), ("2", "5")))
    steps = (
        Step(("INSERT INTO t VALUES (3, 7)",), ("mv",)),
        Step(("DELETE FROM t WHERE x = 1", "INSERT INTO t VALUES (9, 9), (9, 9)"), ("mv",)),
        Step(("INSERT INTO t VALUES (0, 9223372036854775807)",), ("mv",)),
        Step(("DELETE FROM t WHERE g = 0",), ("mv",)),
    )
    return Case(0, (table, rows), (ViewDef("mv", sql, supported=supported),), steps, risky=risky)


def test_a_right_engine_passes() -> None:
    assert run_case(small_case(), engines.Recompute, all_logged=True).failure is None


@pytest.mark.parametrize(
    ("engine", "check"),
    [
        (engines.ForgetsDeletes, "wrong rows"),
        (engines.DropsDuplicates, "wrong rows"),
        (engines.PublishesNothingNet, "delta not net"),
        (engines.LosesDelta, "wrong delta"),
        (engines.NeverRests, "second refresh"),
        (engines.WritesWhenIdle, "second refresh"),
        (engines.WidensTypes, "wrong columns"),
        (engines.GivesUp, "no reason"),
        (engines.Crashes, "refresh error"),
        (engines.TouchesOthers, "touched"),
    ],
)
def test_each_check_notices(engine: engines.EngineFactory, check: str) -> None:
    failure = run_case(small_case(), engine, all_logged=True).failure
    assert failure is not None
    assert failure.check == check


def test_an_error_of_the_query_must_be_an_error_of_the_refresh() -> None:
    case = small_case("SELECT x + 1 AS y FROM t", risky=True)
    assert run_case(case, engines.Recompute, all_logged=True).failure is None
    failure = run_case(case, engines.HidesErrors, all_logged=True).failure
    assert failure is not None
    assert failure.check == "error hidden"


def test_a_full_refresh_of_an_unsupported_query_is_fine() -> None:
    class GivesUpWithReason(engines.GivesUp):
        reason = "too hard"

    assert run_case(small_case(supported=False), GivesUpWithReason, all_logged=True).failure is None
    failure = run_case(small_case(), GivesUpWithReason, all_logged=True).failure
    assert failure is not None
    assert failure.check == "full refresh"


def test_the_same_seed_gives_the_same_case() -> None:
    assert generate(11) == generate(11)


@pytest.mark.parametrize("seed", range(12))
def test_generated_cases_run(seed: int) -> None:
    report = run_case(generate(seed), engines.Recompute, all_logged=True)
    assert report.failure is None
    assert report.refreshes


def test_the_shrinker_makes_a_case_small_and_its_script_compiles() -> None:
    case = small_case("SELECT g + 1 AS h, x, abs(x) AS a FROM t WHERE x > 0 OR g > 0")
    table = CreateTable('"other"', (("z", "INTEGER"),))
    case = replace(case, setup=(*case.setup, table), views=(ViewDef("more", "SELECT g FROM t"), *case.views))
    case = replace(case, steps=tuple(replace(step, refresh=("more", "mv")) for step in case.steps))
    failure = run_case(case, engines.ForgetsDeletes, all_logged=True).failure
    assert failure is not None
    small, failure = Shrinker(failure, engines.ForgetsDeletes, seconds=120, all_logged=True).shrink(case)
    assert failure.check == "wrong rows"
    assert [len(small.setup), len(small.views), len(small.steps)] == [2, 1, 1]
    assert small.views[0].sql.count(",") == 0
    compile(script(small, failure), "script", "exec")

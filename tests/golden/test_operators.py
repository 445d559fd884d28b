"""docs/operators.md says what the compiler does with the golden queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from dbt_openivm.compiler.explain import RULES
from tests.golden.cases import Case, cases, schema
from tests.golden.compiled import compiled
from tests.golden.costs import COSTS, cost_of
from tests.golden.operators import PAGE, page


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with duckdb.connect() as opened:
        for statement in schema():
            opened.execute(statement)
        yield opened


@pytest.mark.skipif(not duckdb.__version__.startswith("2."), reason="DuckDB 1 types some results differently")
def test_the_page_is_what_the_queries_make_of_it(connection: Any) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(connection), "run `python -m tests.golden.update`"


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.title)
def test_queries_say_what_they_show_and_cost(connection: Any, case: Case) -> None:
    assert case.construct, f"say `-- construct: ..` in the header of {case.title}, as docs/operators.md shall call it"
    cost = cost_of(compiled(connection, case.sql))
    assert case.cost == cost, f"the plan of {case.title} costs `-- cost: {', '.join(cost)}` ({', '.join(COSTS)})"


def test_every_operator_has_a_rule_and_an_example(connection: Any) -> None:
    made = [compiled(connection, case.sql).operator for case in cases()]
    seen = {type(operator).__name__ for root in made if root for operator in root.walk()}
    assert seen == RULES.keys()

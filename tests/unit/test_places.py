"""Lines of compiled SQL as lines of the model's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbt_openivm.adapter.places import locator, source_line

MODEL = """

{{ config(materialized='ivm_view') }}
{# several
   lines #}
select
  id,
  random() as r,  -- {{ var('why') }}
  {% for n in [1, 2] %}
  price * {{ n }} as p{{ n }},
  {% endfor %}
  {{ some_macro() }}
from {{ source('src', 'sales') }}
"""
COMPILED = """


select
  id,
  random() as r,  -- because
  
  price * 1 as p1,
  
  price * 2 as p2,
  
  now() as n,
  1 as one
from "db"."main"."sales"
"""  # noqa: W293 - dbt leaves such lines


@pytest.mark.parametrize(
    ("compiled", "source"),
    [(5, 7), (6, 8), (8, 10), (10, 10), (14, 13), (12, None), (1, None), (99, None)],
)
def test_lines(compiled: int, source: int | None) -> None:
    assert source_line(compiled, COMPILED, MODEL) == source


def test_equal_lines_are_told_apart_only_where_nothing_moved() -> None:
    assert source_line(2, "select 1\nunion all\nselect 1", "select 1\nunion all\nselect 1") == 2
    assert source_line(3, "select 1\nunion all\nselect 1", "select 1\nunion all\nselect 1") == 3
    assert source_line(3, "select 1\nunion all\nselect 1", "{{ x }}\nselect 1\nunion all\nselect 1") is None


def node(**more: Any) -> dict[str, Any]:
    raw = MODEL.strip()  # as dbt keeps it
    return {"compiled_code": COMPILED, "raw_code": raw, "original_file_path": "models/m.sql", **more}


def test_the_file_counts_the_lines_that_dbt_strips(tmp_path: Path) -> None:
    reason = "random() at line 6 cannot be maintained"
    assert locator(node(), None)(reason) == "random() at models/m.sql:6 cannot be maintained"
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m.sql").write_text(MODEL)
    assert locator(node(), str(tmp_path))(reason) == "random() at models/m.sql:8 cannot be maintained"
    (tmp_path / "models" / "m.sql").write_text("select 'edited since'")
    assert locator(node(), str(tmp_path))(reason) == "random() at models/m.sql:6 cannot be maintained"


def test_a_line_without_a_place_is_one_of_the_compiled_sql() -> None:
    where = locator(node(compiled_path="target/compiled/p/models/m.sql"), None)
    assert where("now() at line 12 is") == "now() at line 12 of target/compiled/p/models/m.sql is"
    assert locator(node(), None)("now() at line 12 is") == "now() at line 12 of its compiled SQL is"


def test_lines_of_views_and_macros_stay() -> None:
    reason = "random() at line 6 of the view db.main.v cannot be maintained"
    assert locator(node(), None)(reason) == reason

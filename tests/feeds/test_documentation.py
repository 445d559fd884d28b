"""The example of docs/change-feeds.md, over rounds of changes and crashes of the feeder."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dbt_openivm import IvmEngine
from tests.feeds.copies import assert_equal

PAGE = Path(__file__).parents[2] / "docs" / "change-feeds.md"
AFTER_COMMIT = "acknowledge"


class Crash(BaseException):
    """The feeder's process is gone."""


class Crashing:
    """A connection or engine on which one call is the last."""

    def __init__(self, of: Any, call: str, text: str = "") -> None:
        self.of, self.call, self.text = of, call, text

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.of, name)

        def called(*arguments: Any, **named: Any) -> Any:
            if name == self.call and str(arguments[0]).strip().startswith(self.text):
                raise Crash
            return method(*arguments, **named)

        return called


@pytest.fixture
def scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What the page's code defines, after it ran."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(block, names)
    yield names
    names["con"].close()


def restart(scope: dict[str, Any]) -> None:
    scope["con"].close()
    scope["con"] = duckdb.connect("warehouse.duckdb")
    scope["con"].execute("ATTACH 'copy.duckdb' AS copy")
    scope["ivm"] = IvmEngine(scope["con"])


def change(scope: dict[str, Any], source: random.Random) -> None:
    con, ivm = scope["con"], scope["ivm"]
    con.execute(f"INSERT INTO sales VALUES ('NL', {source.randint(1, 3)})")  # so that every round changes something
    for _ in range(source.randint(1, 4)):
        region = source.choice(["'US'", "'EU'", "NULL", "'JP'"])
        amount = source.randint(-1, 3)
        con.execute(
            source.choice(
                [
                    f"INSERT INTO sales VALUES ({region}, {amount}), ({region}, {amount})",
                    f"DELETE FROM sales WHERE region IS NOT DISTINCT FROM {region}",
                    f"UPDATE sales SET amount = amount + 1 WHERE region IS NOT DISTINCT FROM {region}",
                    f"UPDATE sales SET region = {region} WHERE amount = {amount}",
                ]
            )
        )
    for view in ("clean", "totals"):
        ivm.refresh(view)


def crash(scope: dict[str, Any], feed: str, at: str) -> None:
    """Let the feeder die before it acknowledges, or just before it commits; then the process starts again."""
    con, ivm = scope["con"], scope["ivm"]
    if at == AFTER_COMMIT:
        scope["ivm"] = Crashing(ivm, "acknowledge")
    else:
        scope["con"] = Crashing(con, "execute", "COMMIT")
    with pytest.raises(Crash):
        scope[feed]()
    scope["con"], scope["ivm"] = con, ivm
    restart(scope)


def test_the_example_of_the_page(scope: dict[str, Any]) -> None:
    for view in ("clean", "totals"):
        assert_equal(scope["con"], f"copy.{view}", view)
    assert scope["con"].execute("SELECT count(*), count(DISTINCT region) FROM copy.clean").fetchall() == [(4, 2)]


@pytest.mark.parametrize("at", ["COMMIT", AFTER_COMMIT])
def test_it_is_exact_however_the_feeder_crashes(scope: dict[str, Any], at: str) -> None:
    """Crashes between reading and acknowledging, once even twice in a row with changes between them."""
    source = random.Random(7)
    for number in range(8):
        change(scope, source)
        for feed in ("feed_clean", "feed_totals"):
            if number % 3 != 0:
                crash(scope, feed, at)
        if number % 3 == 2:
            change(scope, source)
            continue  # the next round begins with what two crashes left
        for feed, view in (("feed_clean", "clean"), ("feed_totals", "totals")):
            scope[feed]()
            assert_equal(scope["con"], f"copy.{view}", view)


@pytest.mark.parametrize("at", ["COMMIT", AFTER_COMMIT])
def test_a_crash_while_the_snapshot_is_read(scope: dict[str, Any], at: str) -> None:
    """A second start: new consumers, whose first read fails, and a view that loses groups before the next one."""
    con, ivm = scope["con"], scope["ivm"]
    for view in ("clean", "totals"):
        ivm.unregister_consumer(view, "copy")
        con.execute(f"DELETE FROM copy.{view}")
        ivm.register_consumer(view, "copy", snapshot=True)
    con.execute("DELETE FROM copy.positions")
    for feed in ("feed_clean", "feed_totals"):
        crash(scope, feed, at)
    con = scope["con"]
    con.execute("DELETE FROM sales WHERE region = 'EU'")
    for view in ("clean", "totals"):
        scope["ivm"].refresh(view)
        scope[f"feed_{view}"]()
        assert_equal(con, f"copy.{view}", view)

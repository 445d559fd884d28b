"""What happens to the flights between one run and the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from nycflights import data

Change = Callable[[duckdb.DuckDBPyConnection, Path], str]


@dataclass(frozen=True)
class Round:
    """A night's changes: each does its work and says what it did."""

    headline: str
    changes: tuple[Change, ...] = ()

    def apply(self, con: duckdb.DuckDBPyConnection, folder: Path) -> str:
        """Make the changes; return them in one line."""
        return ", ".join(change(con, folder) for change in self.changes) or "nothing changed"


def load(first: str, last: str) -> Change:
    return lambda con, folder: f"+{data.load_days(con, folder, first, last):,} flights"


def correct(carrier: str, day: str, minutes: int) -> Change:
    return lambda con, _: f"{data.correct_delays(con, carrier, day, minutes):,} delays of {carrier} corrected"


def cancel(before: str) -> Change:
    return lambda con, _: f"{data.delete_cancelled(con, before):,} cancelled flights deleted"


def withdraw(count: int) -> Change:
    return lambda con, _: f"the {data.withdraw_worst(con, count)} latest arrivals withdrawn"


def rename(carrier: str, name: str) -> Change:
    return lambda con, _: f"{data.rename_airline(con, carrier, name)} airline renamed"


def refit(model: str, seats: int) -> Change:
    return lambda con, _: f"{data.refit_planes(con, model, seats)} planes refitted"


def rejuvenate(tailnum: str, built: int) -> Change:
    return lambda con, _: f"{data.correct_age(con, tailnum, built)} plane's age corrected"


JANUARY = Round("January", (load("2013-01-01", "2013-01-31"),))

ROUNDS = (
    Round("one more day", (load("2013-02-01", "2013-02-01"),)),
    Round(
        "a week, with corrections",
        (load("2013-02-02", "2013-02-08"), correct("UA", "2013-01-05", -4), correct("B6", "2013-02-01", 12)),
    ),
    Round("cancelled flights go, a carrier is renamed", (cancel("2013-02-09"), rename("EV", "ExpressJet"))),
    Round("dimensions and extremes", (refit("A320-232", 186), rejuvenate("N14228", 2001), withdraw(5))),
    Round("a backlog ten times the size of the table", (load("2013-02-09", "2013-12-09"),)),
    Round(
        "an ordinary night, on the whole year",
        (
            load("2013-12-10", "2013-12-10"),
            correct("DL", "2013-12-08", -6),
            correct("AA", "2013-07-04", 3),
            cancel("2013-03-01"),
            rejuvenate("N258JB", 2007),
        ),
    ),
    Round("a night without news"),
)

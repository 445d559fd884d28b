"""Random views and changes on a PostgreSQL, each refresh against PostgreSQL's own recompute.

python -m tests.postgres.fuzz --seed 0 --cases 1000
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg

from tests.postgres import server
from tests.postgres.generate import Case, Generator
from tests.postgres.world import World, bag_difference, run

ROUNDS = 5


PATIENCE = "30s"
"""A statement that takes longer is not waited for: PostgreSQL plans some joins of subqueries over tables without
statistics as nested loops in nested loops."""


class Mismatch(Exception):
    """A view that is not its query."""


@dataclass
class Tally:
    """Attributes:
    types: how many views of each refresh type were maintained.
    refreshes: how many were compared.
    invalid: how many views PostgreSQL refused.
    failing: how many refreshes were not compared, as the query itself fails on the data.
    slow: how many views were given up, as a statement took too long.
    """

    types: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    refreshes: int = 0
    invalid: int = 0
    failing: int = 0
    slow: int = 0


def fails(con: psycopg.Connection, query: str) -> bool:
    try:
        con.execute(f"SELECT CAST(q AS TEXT) FROM ({query}) AS q")
    except psycopg.Error:
        return True
    return False


def try_case(con: psycopg.Connection, seed: str, tally: Tally) -> None:
    """Raises:
    Mismatch: the view is not equal to its query, or cannot be refreshed.
    """
    chance = random.Random(seed)
    generator = Generator(chance)
    case = generator.make()
    if not case.tables:
        return
    con.execute("DROP SCHEMA IF EXISTS tried CASCADE; CREATE SCHEMA tried; SET search_path = tried")
    for table, columns in case.tables.items():
        con.execute(f"CREATE TABLE {table} ({', '.join(f'{name} {type_}' for name, type_ in columns.items())})")
    for _ in range(6):
        attempt(con, generator.change())
    if fails(con, case.query):
        tally.invalid += 1
        return
    world = World(con, case.query, case.tables, case.facts)
    tally.types[world.answer["refresh_type"]["name"]] += 1
    if world.answer["reason"]:
        tally.reasons[world.answer["reason"]] += 1
    world.build()
    compare(world, case)
    for _ in range(ROUNDS):
        con.execute("DROP TABLE IF EXISTS before; CREATE TABLE before AS SELECT * FROM view")
        changes = [generator.change() for _ in range(chance.randint(1, 4))]
        for statement in changes:
            attempt(con, statement)
        round_of(world, case, tally, changes)


def attempt(con: psycopg.Connection, statement: str) -> None:
    """A change may be out of range."""
    with suppress(psycopg.DataError):
        con.execute(statement)


def round_of(world: World, case: Case, tally: Tally, changes: list[str]) -> None:
    con = world.con
    try:
        with con.transaction():
            con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            run(con, world.answer["statements"])
    except psycopg.errors.QueryCanceled:
        raise
    except (psycopg.Error, RuntimeError) as error:
        if fails(con, case.query):
            tally.failing += 1
            return
        raise Mismatch(f"{error}\n{'; '.join(changes)}") from error
    if fails(con, case.query):
        tally.failing += 1
        return
    compare(world, case)
    if case.facts["force_view_delta_cascade"]:
        try:
            world.check_published("before")
        except AssertionError as error:
            raise Mismatch(f"the published delta is wrong: {error}") from error
    tally.refreshes += 1


def compare(world: World, case: Case) -> None:
    if case.loose:
        one, other = f"SELECT * FROM {world.view}", case.query
        sides = [
            world.con.execute(f"SELECT * FROM ({a}) a EXCEPT ALL SELECT * FROM ({b}) b").fetchall()
            for a, b in ((one, other), (other, one))
        ]
        if sides == [[], []]:
            return
    found = bag_difference(world.con, f"SELECT * FROM {world.view}", case.query, world.close)
    if found != ([], []):
        raise Mismatch(f"the view has {found[0]}, the query {found[1]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=100_000_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first failure")
    options = parser.parse_args()
    folder = server.binaries()
    if folder is None:
        sys.exit("There are no programs of a PostgreSQL server.")
    tally, failures, started, index = Tally(), 0, time.monotonic(), 0
    with server.running(folder) as where, psycopg.connect(where, autocommit=True) as con:
        con.execute(f"SET client_min_messages = warning; SET statement_timeout = '{PATIENCE}'")
        while index < options.cases and time.monotonic() - started < options.seconds:
            seed = f"{options.seed}:{index}"
            try:
                try_case(con, seed, tally)
            except psycopg.errors.QueryCanceled:
                tally.slow += 1
                print(f"--- {seed}: a statement took longer than {PATIENCE}", flush=True)
            except Exception as error:
                failures += 1
                case = Generator(random.Random(seed)).make()
                print(f"--- {seed}: {type(error).__name__}: {error}\n{case.tables}\n{case.query}\n", flush=True)
                if not options.go_on:
                    break
            index += 1
    print(
        f"{index} views, {tally.refreshes} refreshes compared, {failures} failures; {tally.invalid} views were not "
        f"valid, {tally.failing} refreshes had a failing query, {tally.slow} were too slow"
    )
    for name, count in tally.types.most_common():
        print(f"  {name}: {count}")
    for reason, count in tally.reasons.most_common(12):
        print(f"  full {count}: {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

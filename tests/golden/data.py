"""Small random data for the tables of schema.sql: few distinct values make many groups, matches and duplicates."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Random = random.Random


def maybe(value: Callable[[Random], str], chance: float = 0.15) -> Callable[[Random], str]:
    """`value`, or now and then NULL."""
    return lambda rng: "NULL" if rng.random() < chance else value(rng)


def integer(low: int, high: int) -> Callable[[Random], str]:
    return lambda rng: str(rng.randint(low, high))


def text(rng: Random) -> str:
    return f"'{rng.choice(['a', 'B', 'c', 'é', ''])}'"


def cents(rng: Random) -> str:
    return f"{rng.randint(-300, 900) / 100:.2f}"


def floating(rng: Random) -> str:
    return rng.choice(["0.1", "2.5", "-3.75", "1e6", "1e-3", "0"])


def day(rng: Random) -> str:
    return f"DATE '2024-0{rng.randint(1, 3)}-1{rng.randint(0, 9)}'"


def flag(rng: Random) -> str:
    return rng.choice(["true", "false"])


def person(rng: Random) -> str:
    return f"{{'id': {rng.randint(1, 3)}, 'tags': [{text(rng)}, 'x'][:{rng.randint(0, 2)}]}}"


def moment(rng: Random) -> str:
    return f"TIMESTAMP '2024-01-01 0{rng.randint(0, 3)}:{rng.randint(10, 59)}:00'"


KEY = maybe(integer(1, 4))

TABLES: dict[str, tuple[Callable[[Random], str], ...]] = {
    "sales": (
        integer(1, 40), KEY, KEY, maybe(day), maybe(integer(0, 5)), maybe(cents), maybe(floating), maybe(flag),
        maybe(text),
    ),
    "products": (KEY, maybe(text), maybe(text), maybe(cents)),
    "customers": (KEY, maybe(text), maybe(text), KEY),
    "refunds": (integer(1, 40), KEY, maybe(integer(-2, 9)), maybe(text)),
    "events": (person, maybe(moment)),
}  # fmt: skip

KEYS = {"sales": "product", "products": "product", "customers": "customer", "refunds": "product", "events": "seen"}


def insert(connection: Any, rng: Random, rows: int) -> None:
    """Insert random rows into every table."""
    for table, makers in TABLES.items():
        tuples = ", ".join(f"({', '.join(make(rng) for make in makers)})" for _ in range(rows))
        connection.execute(f"INSERT INTO {table} VALUES {tuples}")


def change(connection: Any, rng: Random) -> None:
    """Delete some rows of every table, empty a group, update others, insert new ones."""
    for table, key in KEYS.items():
        connection.execute(f"DELETE FROM {table} WHERE rowid % 5 = {rng.randint(0, 4)}")
        connection.execute(f"UPDATE {table} SET {key} = NULL WHERE rowid % 7 = {rng.randint(0, 6)}")
    for table in ("sales", "refunds"):
        connection.execute(f"DELETE FROM {table} WHERE product = {rng.randint(1, 4)}")
    connection.execute("UPDATE sales SET quantity = quantity + 1, weight = -weight, paid = NOT paid WHERE id % 3 = 0")
    insert(connection, rng, 3)

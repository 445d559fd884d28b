"""What tests of the compiler share: a database, and queries compiled with facts from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from dbt_openivm.compiler.algebra import Operator, Scan
from dbt_openivm.compiler.compile import analyse
from dbt_openivm.compiler.facts import Column, CompileFacts, Relation


def facts(**tables: str) -> CompileFacts:
    """Facts made by hand: ``t="k INTEGER, x VARCHAR"``."""
    relations = [relation(name, columns) for name, columns in tables.items()]
    return CompileFacts(relations={made.key: made for made in relations}, search_path=(("memory", "main"),))


def relation(name: str, columns: str) -> Relation:
    pairs = tuple(Column(*column.strip().split(" ", 1)) for column in columns.split(","))
    return Relation(f"memory.main.{name}", f'"memory"."main"."{name}"', pairs)


def operator(query: str, known: CompileFacts) -> Operator:
    """The operator tree of a query that has one."""
    analysis = analyse(query, known)
    assert analysis.operator is not None, analysis.reason
    return analysis.operator


def scans(tree: Operator) -> list[Scan]:
    return [op for op in tree.walk() if isinstance(op, Scan)]


def database(statements: Sequence[str]) -> Any:
    connection = duckdb.connect()
    for statement in statements:
        connection.execute(statement)
    return connection

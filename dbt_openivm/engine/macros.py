"""The macros of users, as DuckDB lists them, and the defaults of their parameters, which it tells only in an error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from sqlglot.errors import SqlglotError

from dbt_openivm.compiler.facts import Macro
from dbt_openivm.compiler.lower.reading import split_arguments
from dbt_openivm.engine.session import Row, Session
from dbt_openivm.names import literal, quote

Macros = Mapping[str, tuple[Macro, ...]]

COLUMNS = "database_name || '.' || schema_name, parameters, parameter_types, macro_definition"


def macros_of(rows: Iterable[Row]) -> dict[str, tuple[Macro, ...]]:
    """The overloads of each macro from rows of (name, kind, `COLUMNS`)."""
    macros: dict[str, tuple[Macro, ...]] = {}
    for name, kind, home, parameters, types, body in rows:
        known = tuple(types) if any(types or ()) else ()
        macro = Macro(name, tuple(parameters), body, kind == "table_macro", home, known)
        macros[name] = (*macros.get(name, ()), macro)
    return macros


def with_defaults(session: Session, macros: Macros, used: Iterable[str]) -> Macros:
    """The macros with the defaults of those that are used.

    DuckDB lists no defaults, but names them where it says that a call does not fit. `json_serialize_plan` returns such
    an error instead of raising it, which would end the transaction.
    """
    names = sorted(name for name in set(used) & macros.keys() if any(macro.parameters for macro in macros[name]))
    if not names:
        return macros
    calls = ", ".join(f"json_serialize_plan({literal(wrong_call(macros[name][0]))})" for name in names)
    [answers] = session.execute(f"SELECT {calls}")
    found = {name: signed(macros[name], str(answer)) for name, answer in zip(names, answers, strict=True)}
    return {**macros, **found}


def overriding(session: Session, names: Iterable[str], table_names: Iterable[str] = ()) -> set[str]:
    """Those of the names of DuckDB's own functions under which it finds a macro of a user.

    It tells in the error about a call that does not fit, which is much faster than to list all functions.

    Args:
        names: of functions in expressions.
        table_names: of functions in FROM.
    """
    asked = [(name, wrong_text(name)) for name in sorted(names)]
    asked += [(name, wrong_text(name, from_=True)) for name in sorted(table_names)]
    if not asked:
        return set()
    calls = ", ".join(f"json_serialize_plan({literal(text)})" for _, text in asked)
    [answers] = session.execute(f"SELECT {calls}")
    told = zip(asked, map(candidates, map(str, answers)), strict=True)
    return {name for (name, text), found in told if found and found != shipped_candidates(text)}


def candidates(answer: str) -> str:
    """The signatures of the macros that a call did not fit; empty where it is no macro."""
    return str(json.loads(answer).get("error_message", "")).partition("Candidate macros:")[2]


@cache
def shipped_candidates(call: str) -> str:
    """The same where there are no macros but those that DuckDB comes with."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        [(answer,)] = connection.execute(f"SELECT json_serialize_plan({literal(call)})").fetchall()
    return candidates(str(answer))


def wrong_text(name: str, from_: bool = False) -> str:
    """A query that calls a function with an argument that none has."""
    return f"SELECT {'* FROM ' if from_ else ''}{quote(name)}(openivm_no_such_argument := 0)"


def wrong_call(macro: Macro) -> str:
    return wrong_text(macro.name, macro.is_table)


def signed(overloads: Sequence[Macro], answer: str) -> tuple[Macro, ...]:
    """The overloads with the defaults that DuckDB's error names; as they are where it reads otherwise than expected."""
    message = str(json.loads(answer).get("error_message", ""))
    lines = [line.strip() for line in message.partition("Candidate macros:")[2].splitlines() if line.strip()]
    if len(lines) != len(overloads):
        return tuple(overloads)
    signatures = [defaults(macro, line) for macro, line in zip(overloads, lines, strict=True)]
    if any(signature is None for signature in signatures):
        return tuple(overloads)
    return tuple(replace(macro, defaults=found) for macro, found in zip(overloads, signatures, strict=True))


def defaults(macro: Macro, signature: str) -> tuple[str | None, ...] | None:
    """The default of each parameter from ``name(a, b INTEGER := 3)``; None if it is not the macro's signature."""
    try:
        pieces = split_arguments(signature[len(macro.name) :])
    except SqlglotError:
        return None
    if len(pieces) != len(macro.parameters):
        return None
    types = macro.types or (None,) * len(pieces)
    found: list[str | None] = []
    for piece, parameter, type_ in zip(pieces, macro.parameters, types, strict=True):
        head, assigned, default = piece.partition(" := ")
        if head.lower() != f"{parameter} {type_}".lower() and (type_ or head.lower() != parameter.lower()):
            return None
        found.append(default if assigned else None)
    return tuple(found)

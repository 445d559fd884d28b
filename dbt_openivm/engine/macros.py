"""The macros of users, as DuckDB lists them, and the defaults of their parameters, which it tells only in an error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

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


def wrong_call(macro: Macro) -> str:
    """A query that calls the macro with an argument that it does not have."""
    call = f"{quote(macro.name)}(openivm_no_such_argument := 0)"
    return f"SELECT * FROM {call}" if macro.is_table else f"SELECT {call}"


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

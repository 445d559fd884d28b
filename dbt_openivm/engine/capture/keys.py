"""Expressions that tell apart values which DuckDB's own equality or hash takes for the same.

A change that a capture cannot see makes a view wrong. In DuckDB ``0.0 = -0.0`` and ``INTERVAL '30 days' = INTERVAL
'1 month'``, a NOCASE column groups 'a' with 'A', a VARIANT of INTEGER 1 equals one of BIGINT 1, and ``hash([NULL])``,
``hash([])`` and ``hash(NULL)`` are one number; yet a query can show each of these apart. So rows are never compared by
their columns but by their keys: rows with equal keys give equal results in every query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dbt_openivm.compiler.facts import Column
from dbt_openivm.names import quote

#: types whose equality and hash see every difference that a query can see
EXACT = re.compile(
    r"BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DECIMAL\(\d+,\d+\)|DATE|TIME(_NS)?|TIME WITH TIME ZONE"
    r"|TIMESTAMP(_S|_MS|_NS)?|TIMESTAMP WITH TIME ZONE|UUID|BLOB|BIT|ENUM\((?s:.*)\)"
)
#: VARCHAR may carry a collation, which DESCRIBE does not tell; its bytes do not
TEXT = ("VARCHAR", "JSON")
FLOATING = ("FLOAT", "DOUBLE")


def key_expressions(expression: str, type_name: str) -> tuple[str, ...]:
    """What to hash, group and compare instead of `expression`, a column reference of the type `type_name`.

    Example:
        >>> key_expressions('"a"', "DOUBLE")
        ('"a"', 'signbit("a")')
        >>> key_expressions('"a"', "INTERVAL")
        ('CAST("a" AS VARCHAR)',)
    """
    if EXACT.fullmatch(type_name) and not type_name.endswith("]"):
        return (expression,)
    if type_name in FLOATING:
        return (expression, f"signbit({expression})")
    if type_name in TEXT:
        return (f"encode({expression})",)
    if type_name == "INTERVAL":
        return (f"CAST({expression} AS VARCHAR)",)
    return (expression, f"encode(CAST({expression} AS VARCHAR))", *_variant_keys(expression, type_name))


def _variant_keys(expression: str, type_name: str) -> tuple[str, ...]:
    """A VARIANT anywhere inside: neither equality nor text shows the types in it; its binary form does.

    What has no binary form (an INTERVAL inside) is told apart by text and by the type of the outermost value only.
    """
    if "VARIANT" not in type_name:
        return ()
    variant = expression if type_name == "VARIANT" else f"CAST({expression} AS VARIANT)"
    return (f"variant_typeof({variant})", f"TRY(variant_to_parquet_variant({variant}))")


def row_keys(columns: Iterable[Column], prefix: str = "") -> list[str]:
    """The keys of a row; `prefix` qualifies the columns (``"kept."``)."""
    return [key for column in columns for key in key_expressions(prefix + quote(column.name), column.type)]


def row_hash(columns: Iterable[Column]) -> str:
    """The hash of a row: an UBIGINT.

    Hashed twice: DuckDB combines the hashes of columns by xor, and a sum of such combinations stays the same when two
    rows swap a value with a chance far above 2^-64.
    """
    return f"hash(hash({', '.join(row_keys(columns)) or '0'}))"


def row_outputs(columns: Iterable[Column]) -> list[str]:
    """The columns of a row grouped by its keys: a key itself where it is one, else any of its equal values."""
    outputs = []
    for column in columns:
        name = quote(column.name)
        is_key = name in key_expressions(name, column.type)
        outputs.append(name if is_key else f"any_value({name}) AS {name}")
    return outputs

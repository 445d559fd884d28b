"""Expressions that tell apart values which DuckDB's own equality or hash takes for the same.

A change that a capture cannot see makes a view wrong. In DuckDB ``0.0 = -0.0`` and ``INTERVAL '30 days' = INTERVAL
'1 month'``, a NOCASE column groups 'a' with 'A', a VARIANT of INTEGER 1 equals one of BIGINT 1, and ``hash([NULL])``,
``hash([])`` and ``hash(NULL)`` are one number; yet a query can show each of these apart. So rows are never compared by
their columns but by their keys: rows with equal keys give equal results in every query. (All measured on 2.0.1.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dbt_openivm.compiler.facts import Column
from dbt_openivm.names import quote

#: types whose equality sees every difference that a query can see
EXACT = re.compile(
    r"BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DECIMAL\(\d+,\d+\)|DATE|TIME(_NS)?|TIME WITH TIME ZONE"
    r"|TIMESTAMP(_S|_MS|_NS)?|TIMESTAMP WITH TIME ZONE|UUID|BLOB|BIT|ENUM\((?s:.*)\)"
)
#: VARCHAR may carry a collation, which DESCRIBE does not tell; its bytes do not
TEXT = ("VARCHAR", "JSON")
FLOATING = ("FLOAT", "DOUBLE")
#: the widest DECIMAL that DuckDB stores in 64 bits
NARROW_DECIMAL = 18


def key_expressions(expression: str, type_name: str) -> tuple[str, ...]:
    """What to group and compare instead of `expression`, a column reference of the type `type_name`.

    Example:
        >>> key_expressions('"a"', "DOUBLE")
        ('"a"', '("a" = 0 AND signbit("a"))')
        >>> key_expressions('"a"', "INTERVAL")
        ('CAST("a" AS VARCHAR)',)
    """
    if _is_exact(type_name):
        return (expression,)
    if type_name in FLOATING:
        # only of a zero: the sign of NaN is not part of a value, a checkpoint drops it
        return (expression, f"({expression} = 0 AND signbit({expression}))")
    if type_name in TEXT:
        return (f"encode({expression})",)
    if type_name == "INTERVAL":
        return (f"CAST({expression} AS VARCHAR)",)
    return (expression, f"encode(CAST({expression} AS VARCHAR))", *_variant_keys(expression, type_name))


def _is_exact(type_name: str) -> bool:
    return EXACT.fullmatch(type_name) is not None and not type_name.endswith("]")


def _variant_keys(expression: str, type_name: str) -> tuple[str, ...]:
    """A VARIANT anywhere inside: neither equality nor text shows the types in it; its binary form does.

    What has no binary form (an INTERVAL inside) is told apart by text and by the type of the outermost value only.
    """
    if "VARIANT" not in type_name:
        return ()
    variant = expression if type_name == "VARIANT" else f"CAST({expression} AS VARIANT)"
    return (f"variant_typeof({variant})", f"TRY(variant_to_parquet_variant({variant}))")


def hash_expressions(expression: str, type_name: str) -> tuple[str, ...]:
    """What to hash instead of `expression`: its keys, and more where hash() itself makes equal what is not.

    DuckDB hashes 128 bits as ``hash(upper half) xor hash(lower half)``, so 0 and -1, or 1 and 2^64, are one number.

    Example:
        >>> hash_expressions('"a"', "DECIMAL(20,2)")
        ('"a"', 'CAST("a" AS DOUBLE)')
    """
    if type_name in ("HUGEINT", "UHUGEINT"):
        return (expression, f"CAST({expression} & 18446744073709551615 AS UBIGINT)")
    if type_name == "UUID":
        return (f"CAST({expression} AS BLOB)",)
    width = re.fullmatch(r"DECIMAL\((\d+),\d+\)", type_name)
    if width and int(width[1]) > NARROW_DECIMAL:
        # its text would tell too, at forty times the cost
        return (expression, f"CAST({expression} AS DOUBLE)")
    return key_expressions(expression, type_name)


def row_keys(columns: Iterable[Column], prefix: str = "") -> list[str]:
    """The keys of a row; `prefix` qualifies the columns (``"kept."``)."""
    return [key for column in columns for key in key_expressions(prefix + quote(column.name), column.type)]


def row_hash(columns: Iterable[Column]) -> str:
    """The hash of a row: an UBIGINT.

    Hashed twice: DuckDB combines the hashes of columns by xor, and a sum of such combinations stays the same when two
    rows swap a value with a chance far above 2^-64.
    """
    parts = [part for column in columns for part in hash_expressions(quote(column.name), column.type)]
    return f"hash(hash({', '.join(parts) or '0'}))"


def row_outputs(columns: Iterable[Column]) -> list[str]:
    """The columns of a row grouped by its keys: a key itself where it is one, else any of its equal values."""
    return [_output(quote(column.name), column.type) for column in columns]


def _output(name: str, type_name: str) -> str:
    if _is_exact(type_name) or type_name in FLOATING:
        return name
    if type_name in TEXT or type_name == "INTERVAL":
        return f"any_value({name}) AS {name}"
    # as a group key or through any_value a nested -0.0 becomes 0.0 (DuckDB 1.5 and 2.0); a list keeps it
    return f"list({name})[1] AS {name}"


def blurred_conditions(columns: Iterable[Column]) -> list[str]:
    """Aggregates over log rows: may DuckDB have kept an old value where an UPDATE set another one that it calls equal?

    Measured on 2.0.1: ``UPDATE t SET x = -x`` leaves a stored 0.0 as it is, but shows -0.0 in the transition table; so
    with intervals, and with structs of both. It takes a row that went and one that came with equal, different values.
    """
    conditions = []
    for column in columns:
        name = quote(column.name)
        if column.type in FLOATING:
            conditions += [_went_and_came(f"{name} = 0 AND signbit({name})", f"{name} = 0 AND NOT signbit({name})")]
    return conditions


def _went_and_came(this: str, other: str) -> str:
    def seen(condition: str, sign: str) -> str:
        return f"bool_or({condition} AND openivm_multiplicity {sign} 0)"

    return f"{seen(this, '<')} AND {seen(other, '>')} OR {seen(this, '>')} AND {seen(other, '<')}"


def blurred_groups(columns: Iterable[Column]) -> list[str]:
    """Columns whose equal but different values show only by grouping: intervals, structs with an interval or float."""
    return [quote(column.name) for column in columns if kept_by_update(column.type) and column.type not in FLOATING]


def kept_by_update(type_name: str) -> bool:
    """Whether an UPDATE may keep a value of this type where it sets another one that DuckDB calls equal.

    Measured on 1.5 and 2.0; lists, maps, arrays and unions are written anew.
    """
    nested = type_name.startswith("STRUCT") and re.search(r"INTERVAL|FLOAT|DOUBLE", type_name)
    return type_name in ("INTERVAL", *FLOATING) or bool(nested and not type_name.endswith("]"))

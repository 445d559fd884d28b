"""DuckDB's types and small pools of values: small so that groups, joins and deletes hit, nasty where it hurts."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from dbt_openivm.names import literal

#: Types whose sums may be written down without thinking of width.
WIDE_INTEGERS = ("INTEGER", "BIGINT", "HUGEINT")
SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")
DECIMALS = ("DECIMAL(4,1)", "DECIMAL(9,2)", "DECIMAL(18,3)", "DECIMAL(18,0)", "DECIMAL(30,5)", "DECIMAL(38,10)")
MOOD = "mood"
SETUP_TYPES = f"CREATE TYPE {MOOD} AS ENUM ('sad', 'ok', 'happy', 'it''s')"


@dataclass(frozen=True)
class Pool:
    """The values one column draws from.

    Args:
        type: the type as written in DDL.
        kind: what the expression generator may do with it: int, dec, float, bool, str, date, ts, list, struct, other.
        values: SQL literals, each of the column's type.
        summable: "exact" (any order of summing gives the same), "mild" (within 1e-9 of each other), "wild" (neither).
        bare: values no function but comparison, grouping and the plain aggregates should see.
        magnitude: bound of the absolute values of numbers.
    """

    type: str
    kind: str
    values: tuple[str, ...]
    summable: str = "exact"
    bare: bool = False
    magnitude: float = 10.0


def typed(type_: str, *texts: str) -> tuple[str, ...]:
    return tuple(f"CAST({literal(text)} AS {type_})" for text in texts)


def _integers(rng: Random) -> Pool:
    type_ = rng.choice(("INTEGER", "INTEGER", "BIGINT", *SIGNED, *UNSIGNED))
    low = 0 if type_ in UNSIGNED else -3
    values = rng.sample(range(low, 8), rng.randint(2, 5))
    magnitude = 10.0
    if type_ in ("BIGINT", "HUGEINT") and rng.random() < 0.2:
        # beyond 2^53: shows every detour through DOUBLE
        values += [9007199254740993, -9007199254740993, 9007199254740992]
        magnitude = 1e16
    # UHUGEINT with any signed integer is DOUBLE, so no function may mix them
    bare = type_ == "UHUGEINT"
    return Pool(type_, "int", typed(type_, *map(str, values)), magnitude=magnitude, bare=bare)


def _extreme_integers(rng: Random) -> Pool:
    bits = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63, "HUGEINT": 127}
    type_ = rng.choice(tuple(bits))
    top = 2 ** bits[type_] - 1
    return Pool(type_, "int", typed(type_, "0", "1", "-1", "2", str(top), str(top - 1), str(-top)), magnitude=10)


def _decimals(rng: Random) -> Pool:
    type_ = rng.choice(DECIMALS)
    texts = rng.sample(("0", "1", "-1", "0.5", "-2.5", "3.25", "10.1", "99.9", "-0.001"), rng.randint(2, 5))
    return Pool(type_, "dec", typed(type_, *texts), magnitude=100)


def _extreme_decimals(rng: Random) -> Pool:
    return Pool("DECIMAL(38,0)", "dec", typed("DECIMAL(38,0)", "9" * 38, "-" + "9" * 38, "1", "-1", "0"), magnitude=10)


def _floats(rng: Random) -> Pool:
    """Pools whose sums are well conditioned, so that a recompute is a truth to compare with."""
    type_ = rng.choice(("DOUBLE", "DOUBLE", "FLOAT"))
    dyadic = rng.sample(("0", "1", "-1", "0.5", "0.25", "-2.75", "3", "7.5"), rng.randint(2, 4))
    choice = rng.random()
    if choice < 0.4:
        return Pool(type_, "float", typed(type_, *dyadic))
    if choice < 0.6:
        return Pool("DOUBLE", "float", typed("DOUBLE", "0.1", "0.2", "-0.3", "12.7", "3.3"), summable="mild")
    if choice < 0.7:
        return Pool(type_, "float", typed(type_, *dyadic, "-0.0"), bare=True)
    if choice < 0.85:
        return Pool(type_, "float", typed(type_, *dyadic, "nan", "inf", "-inf"), summable="special", bare=True)
    huge = ("1e300",) if type_ == "DOUBLE" else ("1e20",)
    return Pool(type_, "float", typed(type_, *dyadic, *huge), summable="huge", bare=True)


def _strings(rng: Random) -> Pool:
    texts = [
        "a",
        "b",
        "B",
        "",
        " ",
        "aa",
        "it's",
        "Ünï",
        "日本",
        "7",
        "-1",
        "x%y",
        "null",
        "A b",
        "2024-02-29",
        'q"q',
        "back\\",
    ]
    return Pool("VARCHAR", "str", typed("VARCHAR", *rng.sample(texts, rng.randint(2, 6))))


def _dates(rng: Random) -> Pool:
    texts = ("2024-01-31", "2024-02-29", "2024-03-01", "1969-12-31", "0044-03-15", "2024-12-31")
    return Pool("DATE", "date", typed("DATE", *rng.sample(texts, rng.randint(2, 5))))


def _timestamps(rng: Random) -> Pool:
    texts = ("2024-01-31 23:59:59.999999", "2024-02-29 12:00:00", "2024-03-01 00:00:00", "1969-12-31 23:00:00.5")
    return Pool("TIMESTAMP", "ts", typed("TIMESTAMP", *texts))


def _booleans(rng: Random) -> Pool:
    return Pool("BOOLEAN", "bool", ("TRUE", "FALSE"))


def _others(rng: Random) -> Pool:
    texts: dict[str, tuple[str, ...]] = {
        "TIME": ("00:00:00", "12:30:00", "23:59:59.999999"),
        "TIMESTAMPTZ": ("2024-01-31 23:59:59+00", "2024-02-29 12:00:00+02", "2024-03-31 02:30:00+00"),
        "TIMESTAMP_NS": ("2024-01-31 23:59:59.123456789", "2024-01-31 23:59:59.123456788"),
        "TIMESTAMP_S": ("2024-01-31 23:59:59", "2024-01-01 00:00:00"),
        # no two that compare equal but print differently (1 month and 30 days)
        "INTERVAL": ("1 day", "2 days 3 hours", "-5 minutes", "1 year 2 months"),
        "BLOB": ("\\x00\\xFF", "abc", ""),
        "BIT": ("0", "101", "0101"),
        "UUID": ("00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
        MOOD: ("sad", "ok", "happy", "it's"),
    }
    type_ = rng.choice((*texts, MOOD, "UUID"))
    return Pool(type_, "enum" if type_ == MOOD else "other", typed(type_, *texts[type_]))


def _nested(rng: Random) -> Pool:
    pools = (
        Pool("INTEGER[]", "list", ("[1, 2]", "CAST([] AS INTEGER[])", "[NULL, 3]", "[1]")),
        Pool("VARCHAR[]", "slist", ("['a', 'b']", "['it''s', NULL]", "CAST([] AS VARCHAR[])")),
        Pool(
            "STRUCT(a INTEGER, b VARCHAR)",
            "struct",
            ("{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': 'y'}", "{'a': 2, 'b': NULL}", "{'a': 1, 'b': 'y'}"),
        ),
        Pool("INTEGER[][]", "other", ("[[1], [2, NULL]]", "[NULL, [3]]")),
        Pool("MAP(VARCHAR, INTEGER)", "other", ("MAP {'a': 1}", "MAP {'a': 2, 'b': NULL}")),
        Pool("DECIMAL(9,2)[]", "other", ("CAST([1.25] AS DECIMAL(9,2)[])", "CAST([0, 3.5] AS DECIMAL(9,2)[])")),
    )
    return rng.choice(pools)


MAKERS = (
    *(_integers,) * 6,
    *(_decimals,) * 3,
    *(_floats,) * 3,
    *(_strings,) * 4,
    *(_dates,) * 2,
    _timestamps,
    *(_booleans,) * 2,
    *(_others,) * 2,
    *(_nested,) * 2,
)
RISKY_MAKERS = (*MAKERS, *(_extreme_integers,) * 8, *(_extreme_decimals,) * 4)


def random_pool(rng: Random, *, risky: bool = False) -> Pool:
    return rng.choice(RISKY_MAKERS if risky else MAKERS)(rng)


def key_pool(rng: Random) -> Pool:
    """A pool for a join or group key that several tables share."""
    return rng.choice((_integers, _integers, _strings, _dates, _booleans, _decimals, _others))(rng)

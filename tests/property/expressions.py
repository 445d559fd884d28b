"""A typed generator of scalar expressions that are deterministic and do not fail (unless the case is risky).

Rounding is the enemy of a differential test: a sum of doubles may differ in its last bit between refresh and recompute.
So a *fuzzy* expression is only ever passed on through smooth functions, and compared only with constants that no such
sum of the small pools comes near to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.property.datatypes import WIDE_INTEGERS, Pool

INT = Pool("BIGINT", "int", ("0", "1", "2", "5", "-3"), magnitude=100)
FLOAT = Pool("DOUBLE", "float", ("0.5", "1.25", "-2"), summable="mild")
DEC = Pool("DECIMAL(18,3)", "dec", ("0.5", "1.1", "-2"), magnitude=1000)
STR = Pool("VARCHAR", "str", ("'a'", "'b'", "''", "'7'", "'2024-02'"))
BOOL = Pool("BOOLEAN", "bool", ("TRUE", "FALSE"))
DATE = Pool("DATE", "date", ("DATE '2024-02-29'", "DATE '2024-03-01'"))
TS = Pool("TIMESTAMP", "ts", ("TIMESTAMP '2024-02-29 12:00:00'", "TIMESTAMP '1970-01-01'"))
LIST = Pool("INTEGER[]", "list", ("[1, 2]", "[1]"))
BASIC = {"int": INT, "float": FLOAT, "dec": DEC, "str": STR, "bool": BOOL, "date": DATE, "ts": TS, "list": LIST}
NUMERIC = ("int", "dec", "float")


@dataclass(frozen=True)
class Expr:
    """SQL text and what may be done with it; `refs` says that it reads a column at all."""

    sql: str
    pool: Pool
    fuzzy: bool = False
    unique: bool = False
    refs: bool = True

    @property
    def kind(self) -> str:
        return self.pool.kind


def constant(rng: Random, pool: Pool) -> Expr:
    return Expr(rng.choice(pool.values), pool, refs=False)


class Expressions:
    """Generates expressions over `columns`; `macros` are calls of integer macros, with {} for a number."""

    def __init__(
        self, rng: Random, columns: Sequence[Expr], macros: Sequence[str] = (), *, risky: bool = False
    ) -> None:
        self.rng = rng
        self.columns = columns
        self.macros = macros
        self.risky = risky

    # -- choosing ---------------------------------------------------------------------------------------------------

    def column(self, *kinds: str, exact: bool = False, free: bool = False) -> Expr | None:
        """A random column of one of `kinds` (of any without); `free`: functions may be applied to its values."""
        found = [
            column
            for column in self.columns
            if (not kinds or column.kind in kinds)
            and not (exact and column.fuzzy)
            and not (free and (column.pool.bare or column.fuzzy))
        ]
        return self.rng.choice(found) if found else None

    def any(self, depth: int = 2) -> Expr:
        """An expression of any kind; most often a bare column."""
        column = self.column()
        if column is None:
            return constant(self.rng, self.rng.choice((INT, STR, BOOL)))
        if self.rng.random() < 0.45 or depth <= 0:
            return column
        kind = self.rng.choice(("int", "int", "dec", "float", "str", "bool", "date", "ts", "list"))
        if column.kind in BASIC and self.rng.random() < 0.5:
            kind = column.kind
        return self.of(kind, depth)

    def of(self, kind: str, depth: int = 2) -> Expr:
        """An exact expression of `kind`."""
        if depth <= 0 or self.rng.random() < 0.2:
            return self.column(kind, exact=True, free=True) or constant(self.rng, BASIC[kind])
        makers: dict[str, Callable[[int], Expr]] = {
            "int": self._int,
            "dec": self._dec,
            "float": self._float,
            "str": self._str,
            "bool": self.predicate,
            "date": self._date,
            "ts": self._timestamp,
            "list": self._list,
        }
        if self.rng.random() < 0.25:
            return self._generic(kind, depth)
        return makers[kind](depth)

    def _generic(self, kind: str, depth: int) -> Expr:
        """What works for every kind: CASE, COALESCE, NULLIF, GREATEST, IF."""
        first, second = self.of(kind, depth - 1), self.of(kind, depth - 1)
        test = self.predicate(depth - 1).sql
        sql = self.rng.choice(
            (
                f"CASE WHEN {test} THEN {first.sql} ELSE {second.sql} END",
                f"CASE WHEN {test} THEN {first.sql} END",
                f"CASE {first.sql} WHEN {constant(self.rng, BASIC[kind]).sql} THEN {second.sql} ELSE {first.sql} END",
                f"coalesce({first.sql}, {second.sql})",
                f"nullif({first.sql}, {second.sql})",
                f"if({test}, {first.sql}, {second.sql})",
                f"greatest({first.sql}, {second.sql})",
            )
        )
        return Expr(sql, _join_pools(kind, first, second))

    # -- by kind ----------------------------------------------------------------------------------------------------

    def _wide(self, depth: int) -> Expr:
        """An integer that arithmetic cannot overflow at once."""
        operand = self.of("int", depth - 1)
        if self.risky or operand.pool.type in WIDE_INTEGERS[:2]:
            return operand
        return replace(operand, sql=f"CAST({operand.sql} AS HUGEINT)", pool=replace(operand.pool, type="HUGEINT"))

    def _int(self, depth: int) -> Expr:
        rng = self.rng
        choice = rng.random()
        if choice < 0.4:
            first, second = self._wide(depth), self._wide(depth)
            operator = rng.choice("+-*")
            if first.pool.magnitude * second.pool.magnitude > 1e6 and operator == "*":
                operator = "+"
            magnitude = max(first.pool.magnitude * second.pool.magnitude, first.pool.magnitude + second.pool.magnitude)
            if max(first.pool.magnitude, second.pool.magnitude) > 1e15 and "HUGEINT" not in (
                first.pool.type,
                second.pool.type,
            ):
                first = replace(first, sql=f"CAST({first.sql} AS HUGEINT)")
            return Expr(f"({first.sql} {operator} {second.sql})", replace(INT, type="", magnitude=magnitude))
        if choice < 0.55:
            operand = self._wide(depth)
            if self.risky:
                return Expr(f"({operand.sql} // {self.of('int', depth - 1).sql})", replace(INT, type=""))
            sql = rng.choice(("({0} % 3)", "({0} // 2)", "abs({0})", "(- {0})", "sign({0})")).format(operand.sql)
            return Expr(sql, replace(operand.pool, type=""))
        if choice < 0.62 and self.macros:
            operand = self.of("int", depth - 1)
            call = rng.choice(self.macros).format(operand.sql)
            return Expr(call, replace(INT, type="", magnitude=operand.pool.magnitude * 4))
        return Expr(self._int_of_other(depth), INT)

    def _int_of_other(self, depth: int) -> str:
        rng = self.rng
        text, date, flag = self.of("str", depth - 1).sql, self.of("date", depth - 1).sql, self.of("bool", depth - 1).sql
        options = [
            f"length({text})",
            f"TRY_CAST({text} AS INTEGER)",
            f"strpos({text}, 'a')",
            f"year({date})",
            f"EXTRACT(month FROM {date})",
            f"date_diff('day', {date}, DATE '2024-03-01')",
            f"CAST({flag} AS INTEGER)",
            f"CAST({self.of('dec', depth - 1).sql} AS BIGINT)",
        ]
        if struct := self.column("struct"):
            options += [f"{struct.sql}.a", f"struct_extract({struct.sql}, 'a')"] * 3
        if items := self.column("list", "slist"):
            options += [f"len({items.sql})", f"array_length({items.sql})"] * 2
        if items := self.column("list"):
            options += [
                f"{items.sql}[1]",
                f"list_sum({items.sql})",
                f"CAST(list_aggregate({items.sql}, 'max') AS BIGINT)",
            ]
        return rng.choice(options)

    def _dec(self, depth: int) -> Expr:
        operand = self.of("dec", depth - 1)
        other = constant(self.rng, DEC).sql
        sql = self.rng.choice(
            (
                f"({operand.sql} + {other})",
                f"({operand.sql} * 2)",
                f"round({operand.sql}, 1)",
                f"(- {operand.sql})",
                f"CAST({self.of('int', depth - 1).sql} AS DECIMAL(38,2))",
                f"TRY_CAST({self.of('str', depth - 1).sql} AS DECIMAL(9,2))",
                f"CAST({operand.sql} AS DECIMAL(38,4))",
            )
        )
        return Expr(sql, replace(DEC, type="", magnitude=operand.pool.magnitude * 3))

    def _float(self, depth: int) -> Expr:
        operand, number = self.of("float", depth - 1), self.of("int", depth - 1)
        conditioned = "mild" if number.pool.magnitude < 1e6 else "wild"
        cast = "CAST" if self.risky else "TRY_CAST"
        sql, summable = self.rng.choice(
            (
                (f"({operand.sql} * 0.5)", operand.pool.summable),
                (f"({operand.sql} + 1)", operand.pool.summable),
                (f"CAST({number.sql} AS DOUBLE)", conditioned),
                (f"({cast}({number.sql} AS INTEGER) / 4)", conditioned),
                (f"sqrt(abs({operand.sql}))", "mild"),
                (f"({operand.sql} / nullif({operand.sql}, 0))", "mild"),
                (f"CAST({self.of('dec', depth - 1).sql} AS DOUBLE)", "mild"),
                (f"TRY_CAST({self.of('str', depth - 1).sql} AS DOUBLE)", "mild"),
            )
        )
        return Expr(sql, replace(FLOAT, summable=summable))

    def _str(self, depth: int) -> Expr:
        rng = self.rng
        operand = self.of("str", depth - 1)
        options = [
            f"upper({operand.sql})",
            f"lower({operand.sql})",
            f"trim({operand.sql})",
            f"({operand.sql} || {self.of('str', 0).sql})",
            f"concat({operand.sql}, '-', {self.of('str', 0).sql})",
            f"substring({operand.sql}, 1, 2)",
            f"left({operand.sql}, 1)",
            f"replace({operand.sql}, 'a', 'zz')",
            f"reverse({operand.sql})",
            f"CAST({self.of('int', depth - 1).sql} AS VARCHAR)",
            f"CAST({self.of('date', depth - 1).sql} AS VARCHAR)",
            f"strftime({self.of('date', depth - 1).sql}, '%Y-%m')",
            f"regexp_replace({operand.sql}, '[ab]', 'q')",
            f"split_part({operand.sql}, '-', 1)",
            "'it''s'",
        ]
        if enum := self.column("enum", "other"):
            options += [f"CAST({enum.sql} AS VARCHAR)"] * 2
        if struct := self.column("struct"):
            options += [f"{struct.sql}['b']", f"{struct.sql}.b"] * 2
        if items := self.column("slist"):
            options += [f"{items.sql}[1]", f"array_to_string({items.sql}, '+')"] * 2
        return Expr(rng.choice(options), STR)

    def _date(self, depth: int) -> Expr:
        operand = self.of("date", depth - 1)
        sql = self.rng.choice(
            (
                f"({operand.sql} + 1)",
                f"CAST(date_trunc('month', {operand.sql}) AS DATE)",
                f"CAST({self.of('ts', depth - 1).sql} AS DATE)",
                f"last_day({operand.sql})",
                f"TRY_CAST({self.of('str', depth - 1).sql} AS DATE)",
            )
        )
        return Expr(sql, DATE)

    def _timestamp(self, depth: int) -> Expr:
        operand = self.of("ts", depth - 1)
        sql = self.rng.choice(
            (
                f"({operand.sql} + INTERVAL 1 DAY)",
                f"({operand.sql} - INTERVAL '2 hours')",
                f"date_trunc('hour', {operand.sql})",
                f"CAST({self.of('date', depth - 1).sql} AS TIMESTAMP)",
                f"time_bucket(INTERVAL '1 day', {operand.sql})",
            )
        )
        return Expr(sql, TS)

    def _list(self, depth: int) -> Expr:
        operand = self.of("list", depth - 1)
        number = self.of("int", 0)
        sql = self.rng.choice(
            (
                f"[{number.sql}, NULL]",
                f"list_sort({operand.sql})",
                f"list_concat({operand.sql}, [1])",
                f"list_transform({operand.sql}, lambda e: e + 1)",
                f"list_filter({operand.sql}, lambda e: e > 1)",
                f"{operand.sql}[1:2]",
            )
        )
        return Expr(sql, replace(LIST, type=""))

    # -- predicates -------------------------------------------------------------------------------------------------

    def predicate(self, depth: int = 2) -> Expr:
        rng = self.rng
        if depth > 0 and rng.random() < 0.25:
            first, second = self.predicate(depth - 1).sql, self.predicate(depth - 1).sql
            sql = rng.choice((f"({first} AND {second})", f"({first} OR {second})", f"(NOT {first})"))
            return Expr(sql, BOOL)
        column = self.column()
        if column is None:
            return Expr(rng.choice(("TRUE", "1 = 1", "(2 > 1)")), BOOL, refs=False)
        if column.fuzzy:
            return Expr(self._fuzzy_comparison(column), BOOL)
        if rng.random() < 0.4 and depth > 0:
            return Expr(self._comparison(self.of(rng.choice(("int", "str", "dec", "date")), depth - 1)), BOOL)
        return Expr(self._comparison(column), BOOL)

    def _fuzzy_comparison(self, column: Expr) -> str:
        if column.kind != "float":
            return f"({column.sql} IS NOT NULL)"
        return f"({column.sql} {self.rng.choice('<>')} {self.rng.choice((0, 1, 2, 5))}.0371293)"

    def _comparison(self, operand: Expr) -> str:
        rng = self.rng
        value = rng.choice(operand.pool.values)
        other = rng.choice(operand.pool.values)
        options = [
            f"({operand.sql} {rng.choice(('=', '<>', '<', '<=', '>', '>='))} {value})",
            f"({operand.sql} {rng.choice(('<=', '>=', '!='))} {value})",
            f"({operand.sql} IN ({value}, {other}))",
            f"({operand.sql} NOT IN ({value}, {other}))",
            f"({operand.sql} IS NULL)",
            f"({operand.sql} IS NOT NULL)",
            f"({operand.sql} BETWEEN {value} AND {other})",
            f"({operand.sql} IS DISTINCT FROM {value})",
            f"({operand.sql} IS NOT DISTINCT FROM {value})",
        ]
        if operand.kind == "str":
            options += [
                f"({operand.sql} LIKE 'a%')",
                f"({operand.sql} ILIKE '%B_')",
                f"starts_with({operand.sql}, 'a')",
                f"regexp_matches({operand.sql}, '^[a-b]')",
                f"({operand.sql} NOT LIKE '%a')",
                f"contains({operand.sql}, 'a')",
            ]
        if operand.kind == "bool":
            options += [operand.sql, f"(NOT {operand.sql})", f"({operand.sql} IS TRUE)"]
        if operand.kind == "list":
            options += [f"list_contains({operand.sql}, 1)", f"(len({operand.sql}) > 1)"]
        if operand.kind in NUMERIC and (peer := self.column(*NUMERIC, exact=True)) and peer.pool.summable == "exact":
            options += [f"({operand.sql} {rng.choice(('=', '<', '>=', '<>'))} {peer.sql})"] * 2
        return rng.choice(options)


def _join_pools(kind: str, first: Expr, second: Expr) -> Pool:
    """The pool of something that is one of two expressions."""
    order = ("exact", "mild", "special", "huge", "wild")
    summable = max(first.pool.summable, second.pool.summable, key=order.index)
    magnitude = max(first.pool.magnitude, second.pool.magnitude)
    return replace(BASIC[kind], type="", summable=summable, magnitude=magnitude)

"""A generator of aggregate calls whose answer does not depend on the order of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tests.property.datatypes import Pool
from tests.property.expressions import BOOL, FLOAT, INT, LIST, STR, Expr, Expressions

OTHER = Pool("", "other", ("NULL",))


class Aggregates:
    """Generates aggregates over the rows that `inputs` describes."""

    def __init__(self, rng: Random, inputs: Expressions, *, single_scan: bool) -> None:
        self.rng = rng
        self.inputs = inputs
        self.single_scan = single_scan

    def any(self) -> tuple[Expr, str]:
        """An aggregate and the name of its family."""
        rng = self.rng
        makers = (
            *(self._count,) * 3,
            *(self._sum,) * 4,
            *(self._average,) * 2,
            *(self._extremum,) * 3,
            self._boolean,
            *(self._deviation,) * 2,
            *(self._distinct,) * 3,
            *(self._statistic,) * 2,
            self._bits,
            *(self._holistic,) * 2,
        )
        expr, family = rng.choice(makers)()
        if rng.random() < 0.2:
            return self._filtered(expr), f"{family}-filter"
        return expr, family

    def _filtered(self, expr: Expr) -> Expr:
        return replace(expr, sql=f"{expr.sql} FILTER (WHERE {self.inputs.predicate(1).sql})")

    def _count(self) -> tuple[Expr, str]:
        rng = self.rng
        sql = rng.choice(
            ("COUNT(*)", "count()", f"COUNT({self._argument().sql})", f"count_if({self.inputs.predicate(1).sql})")
        )
        return Expr(sql, replace(INT, magnitude=200)), "count"

    def _argument(self, *kinds: str) -> Expr:
        if kinds:
            return self.inputs.of(self.rng.choice(kinds), self.rng.choice((0, 1, 2)))
        return self.inputs.any(self.rng.choice((0, 1, 2)))

    def _sum(self) -> tuple[Expr, str]:
        """SUM over what can be summed: a bare column of any numeric type, or an expression."""
        column = self.inputs.column("int", "dec", "float", "bool")
        operand = column if column and self.rng.random() < 0.6 else self._argument("int", "dec", "float")
        if operand.kind == "bool" or operand.pool.summable == "wild":
            return self._count()
        fuzzy = (
            operand.fuzzy
            or operand.pool.type == "UHUGEINT"
            or (operand.kind == "float" and operand.pool.summable != "exact")
        )
        kind = "float" if operand.pool.type == "UHUGEINT" else operand.kind
        pool = Pool("HUGEINT" if kind == "int" else "", kind, _values(kind), magnitude=operand.pool.magnitude * 200)
        if kind == "float":
            pool = replace(pool, summable="wild" if operand.pool.bare else "mild", bare=operand.pool.bare)
        return Expr(f"SUM({operand.sql})", pool, fuzzy=fuzzy), "sum"

    def _average(self) -> tuple[Expr, str]:
        column = self.inputs.column("int", "dec", "float")
        operand = column if column and self.rng.random() < 0.6 else self._argument("int", "dec", "float")
        if operand.pool.summable == "wild":
            return self._count()
        bare = operand.pool.bare
        pool = replace(FLOAT, bare=bare, summable="wild" if bare else "mild")
        return Expr(f"{self.rng.choice(('AVG', 'mean'))}({operand.sql})", pool, fuzzy=True), "avg"

    def _deviation(self) -> tuple[Expr, str]:
        operand = self.inputs.column("int", "dec", "float") or self._argument("int")
        if operand.pool.summable in ("wild", "huge") or operand.pool.magnitude > 1e4:
            return self._extremum()
        name = self.rng.choice(("VAR_SAMP", "VAR_POP", "variance", "STDDEV_SAMP", "STDDEV_POP", "stddev"))
        pool = replace(FLOAT, bare=operand.pool.bare, summable="wild" if operand.pool.bare else "mild")
        return Expr(f"{name}({operand.sql})", pool, fuzzy=True), "deviation"

    def _extremum(self) -> tuple[Expr, str]:
        column = self.inputs.column()
        operand = column if column and self.rng.random() < 0.7 else self._argument("int", "str", "date", "dec")
        return replace(operand, sql=f"{self.rng.choice(('MIN', 'MAX'))}({operand.sql})", unique=False), "extremum"

    def _boolean(self) -> tuple[Expr, str]:
        return Expr(f"{self.rng.choice(('BOOL_AND', 'BOOL_OR'))}({self.inputs.predicate(1).sql})", BOOL), "bool"

    def _statistic(self) -> tuple[Expr, str]:
        """Aggregates of one or two numbers that DuckDB computes in DOUBLE."""
        rng = self.rng
        x, y = (self._number() for _ in range(2))
        sql = rng.choice(
            (
                f"corr({y}, {x})",
                f"covar_{rng.choice(('pop', 'samp'))}({y}, {x})",
                f"regr_{rng.choice(('avgx', 'avgy', 'count', 'intercept', 'r2'))}({y}, {x})",
                f"regr_{rng.choice(('slope', 'sxx', 'sxy', 'syy'))}({y}, {x})",
                f"{rng.choice(('skewness', 'kurtosis', 'kurtosis_pop'))}({x})",
                f"{rng.choice(('sem', 'fsum', 'favg', 'kahan_sum'))}({x})",
                f"geomean(abs({x}) + 1)",
                f"product(({x}) % 3)",
            )
        )
        return Expr(sql, replace(FLOAT, summable="wild", bare=True), fuzzy=True), "statistic"

    def _number(self) -> str:
        """A number without extremes, for what cancels digits anyway."""
        column = self.inputs.column("int", "dec", "float")
        tame = column and column.pool.summable in ("exact", "mild") and column.pool.magnitude <= 1e4
        if column and tame and not column.fuzzy and self.rng.random() < 0.5:
            return column.sql
        return f"TRY_CAST({self.inputs.of('int', 1).sql} AS TINYINT)"

    def _bits(self) -> tuple[Expr, str]:
        number = f"TRY_CAST({self.inputs.of('int', 1).sql} AS {self.rng.choice(('TINYINT', 'BIGINT', 'HUGEINT'))})"
        return Expr(f"bit_{self.rng.choice(('and', 'or', 'xor'))}({number})", INT), "bits"

    def _distinct(self) -> tuple[Expr, str]:
        """Aggregates over each value once."""
        rng = self.rng
        number, exact = self.inputs.of("int", 1).sql, self._exact()
        options: list[tuple[str, Pool, bool]] = [
            *[(f"COUNT(DISTINCT {exact.sql})", replace(INT, magnitude=200), False)] * 3,
            (f"COUNT(DISTINCT ({exact.sql}, {number}))", replace(INT, magnitude=200), False),
            (f"SUM(DISTINCT {number})", replace(INT, type="HUGEINT", magnitude=1e6), False),
            (f"AVG(DISTINCT {number})", FLOAT, True),
            (f"STDDEV_POP(DISTINCT TRY_CAST({number} AS TINYINT))", FLOAT, True),
            (f"MAX(DISTINCT {number})", replace(INT, type="", magnitude=1e6), False),
            (f"count_if(DISTINCT {self.inputs.predicate(1).sql})", INT, False),
        ]
        sql, pool, fuzzy = rng.choice(options)
        return Expr(sql, pool, fuzzy=fuzzy), "distinct"

    def _holistic(self) -> tuple[Expr, str]:
        """Aggregates that cannot be folded: the affected groups are recomputed."""
        rng = self.rng
        number, text = self.inputs.of("int", 1).sql, self.inputs.of("str", 1).sql
        options: list[tuple[str, Pool, bool]] = [
            (f"list({number} ORDER BY {number})", replace(LIST, type=""), False),
            (f"array_agg({text} ORDER BY {text} DESC NULLS LAST)", OTHER, False),
            (f"list(DISTINCT {number} ORDER BY {number})", replace(LIST, type=""), False),
            (f"string_agg({text}, ',' ORDER BY {text})", STR, False),
            (f"string_agg(DISTINCT {text}, '|' ORDER BY {text})", STR, False),
            (f"median({number})", FLOAT, True),
            (f"quantile_cont({number}, 0.25)", FLOAT, True),
            (f"quantile_disc({number}, 0.5)", replace(INT, type="", magnitude=1e6), False),
            (f"histogram({text})", OTHER, False),
            (f"list_sort(list({number}))", replace(LIST, type=""), False),
            (f"max({number}, 2)", replace(LIST, type=""), False),
        ]
        unique = next((column for column in self.inputs.columns if column.unique), None)
        if unique and self.single_scan:
            payload = self._exact()
            pool = replace(payload.pool, type="")
            options += [(f"arg_min({payload.sql}, {unique.sql})", pool, False)] * 2
            options += [(f"arg_max({payload.sql}, {unique.sql})", pool, False)] * 2
            options += [(f"first({payload.sql} ORDER BY {unique.sql})", pool, False)] * 2
        sql, pool, fuzzy = rng.choice(options)
        return Expr(sql, pool, fuzzy=fuzzy), "holistic"

    def _exact(self) -> Expr:
        return self.inputs.column(exact=True) or self.inputs.of("int", 1)


def _values(kind: str) -> tuple[str, ...]:
    return {"int": ("0", "3", "10"), "dec": ("0.5", "10.1"), "float": ("0.5", "3.25")}[kind]


def over_aggregates(rng: Random, aggregates: Sequence[Expr]) -> Expr:
    """An expression over the results of aggregates: smooth where they are fuzzy."""
    first = rng.choice(aggregates)
    if first.kind not in ("int", "dec", "float") or first.pool.bare:
        return replace(first, sql=f"coalesce({first.sql}, {first.sql})")
    peers = [other for other in aggregates if other.kind in ("int", "dec", "float") and not other.pool.bare]
    second = rng.choice(peers)
    if "float" in (first.kind, second.kind) and max(first.pool.magnitude, second.pool.magnitude) > 1e6:
        second = first  # their sum would be a matter of rounding
    fuzzy = first.fuzzy or second.fuzzy
    if first.pool.type == "" and first.kind == "int":
        first = replace(first, sql=f"CAST({first.sql} AS HUGEINT)")
    ratio = Expr(f"({first.sql} / nullif(COUNT(*), 0))", FLOAT, fuzzy=True)
    mixed = replace(FLOAT, magnitude=1e9) if "float" in (first.kind, second.kind) else replace(first.pool, type="")
    if "dec" in (first.kind, second.kind) and mixed.kind != "float":
        mixed = replace(mixed, kind="dec", values=("0.5", "1"))
    return rng.choice(
        (
            replace(first, sql=f"({first.sql} + 1)"),
            Expr(f"({first.sql} + {second.sql})", mixed, fuzzy=fuzzy),
            Expr(f"({first.sql} - {second.sql})", mixed, fuzzy=fuzzy),
            replace(first, sql=f"coalesce({first.sql}, 0)"),
            Expr(f"CASE WHEN COUNT(*) > 2 THEN {first.sql} END", first.pool, fuzzy=first.fuzzy),
            ratio,
        )
    )

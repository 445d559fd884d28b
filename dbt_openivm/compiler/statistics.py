"""Additive state of the statistical aggregates: power sums of one argument, and of pairs.

DuckDB computes all of them in DOUBLE. So do these, from sums that add up; where the digits of a difference of such
sums have cancelled, where something is not finite, the group is stale, and DuckDB's own aggregate recomputes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from dbt_openivm.compiler import sql
from dbt_openivm.compiler.algebra import Call
from dbt_openivm.compiler.components import (
    VARIANCE_CONDITION,
    Component,
    Decomposition,
    Rule,
    W,
    additive,
    deviations_of,
    filtered_argument,
    float_sum,
    magnitude,
    non_null,
)

WRAPPERS = (exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
NAN = "CAST('nan' AS DOUBLE)"


def power_sum(name: str, value: str, stale: str | None = None) -> Component:
    return additive(name, f"coalesce(sum({value}), 0)", f"coalesce(sum({value} * {W}), 0)", stale)


def merged(name: str) -> str:
    """The new value of an additive component, as `grouped` expects it in a condition."""
    return f'(t."{name}" + d."{name}")'


def cancelled(finite: str, count: str, went_through: str, left: str) -> str:
    """Whether a group must be recomputed: something is not finite, or the digits of `left` have cancelled.

    A single row leaves no difference, and the values of one row are known without it.
    """
    return f"(NOT isfinite({finite}) OR {count} > 1 AND {went_through} > {VARIANCE_CONDITION} * abs({left}))"


# --- pairs ---------------------------------------------------------------------------------------------------------


class Pair:
    """The components of ``f(y, x)``, over the rows in which both have a value. Texts are SQL over the components."""

    def __init__(self, result: Decomposition, call: Call) -> None:
        y, x = pair_of(call)
        self.result = result
        self.y = result.argument(present(y, x, call.condition))
        self.x = result.argument(present(x, y, call.condition))
        self.n = f'"{result.add(non_null(self.x))}"'

    def name(self, kind: str, argument: str) -> str:
        return f"openivm_{kind}_{argument.removeprefix('openivm_')}"

    @property
    def products(self) -> str:
        return self.name("products", f"{self.y}_{self.x.removeprefix('openivm_')}")

    def average(self, argument: str) -> str:
        seen = self.result.add(non_null(argument))
        total, size = float_sum(argument)
        self.result.add(size)
        return f'"{self.result.add(total)}" / "{seen}"'

    def total(self, argument: str) -> str:
        return self.result.add(power_sum(self.name("total", argument), double(argument)))

    def size(self, argument: str) -> str:
        return self.result.add(magnitude(self.name("size", argument), double(argument)))

    def deviations(self, argument: str) -> str:
        """Sum of the squared deviations."""
        value, count = f"({double(argument)} * {double(argument)})", merged(self.n.strip('"'))
        total, size = self.total(argument), self.name("square_size", argument)
        squares = self.name("square_total", argument)
        left = f"({merged(squares)} - {merged(total)} * {merged(total)} / {count})"
        self.result.add(magnitude(size, value))
        self.result.add(power_sum(squares, value, cancelled(merged(squares), count, merged(size), left)))
        return f'(CASE WHEN {self.n} > 1 THEN greatest("{squares}" - "{total}" * "{total}" / {self.n}, 0) ELSE 0 END)'

    def covariation(self) -> str:
        """Sum of the products of the deviations."""
        value, count = f"({double(self.y)} * {double(self.x)})", merged(self.n.strip('"'))
        totals, sizes = [self.total(a) for a in (self.y, self.x)], [self.size(a) for a in (self.y, self.x)]
        products, size = self.products, self.name("product_size", f"{self.y}_{self.x.removeprefix('openivm_')}")
        left = f"({merged(products)} - {merged(totals[0])} * {merged(totals[1])} / {count})"
        crossed = f"{merged(sizes[0])} * abs({merged(totals[1])}) + {merged(sizes[1])} * abs({merged(totals[0])})"
        self.result.add(magnitude(size, value))
        stale = cancelled(merged(products), count, f"({merged(size)} + ({crossed}) / {count})", left)
        self.result.add(power_sum(products, value, stale))
        return f'(CASE WHEN {self.n} > 1 THEN "{products}" - "{totals[0]}" * "{totals[1]}" / {self.n} ELSE 0 END)'

    def guard_intercept(self) -> None:
        """The two parts of an intercept may cancel, too."""
        count = merged(self.n.strip('"'))
        totals, sizes = ([merged(of(a)) for a in (self.y, self.x)] for of in (self.total, self.size))
        squares, products = self.name("square_total", self.x), self.products
        spread = f"({merged(squares)} - {totals[1]} * {totals[1]} / {count})"
        slope = f"(({merged(products)} - {totals[0]} * {totals[1]} / {count}) / {spread})"
        left = f"({totals[0]} - {slope} * {totals[1]})"
        lost = f"{sizes[0]} + abs({slope}) * {sizes[1]} > {VARIANCE_CONDITION} * abs({left})"
        component = self.result.components[products]
        stale = f"({component.stale} OR {count} > 1 AND {lost})"
        self.result.components[products] = replace(component, stale=stale)

    def some(self, value: str, least: int = 1) -> str:
        """`value` where there are enough rows, else NULL."""
        return f"CASE WHEN {self.n} >= {least} THEN {value} END"


def present(value: exp.Expr, other: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """`value`, or NULL in a row where the other one has none or that FILTER leaves out."""
    there: exp.Expr = exp.Not(this=exp.Is(this=exp.Paren(this=other.copy()), expression=exp.Null()))
    if condition is not None:
        there = exp.And(this=exp.Paren(this=condition.copy()), expression=there)
    return exp.Case(ifs=[exp.If(this=there, true=value.copy())])


def double(argument: str) -> str:
    return f'CAST("{argument}" AS DOUBLE)'


def pair_of(call: Call) -> tuple[exp.Expr, ...]:
    """The two arguments of a call ``f(y, x)`` with nothing more to it; none of any other call."""
    inner = call.expression.this if isinstance(call.expression, exp.Filter) else call.expression
    arguments = tuple(inner.iter_expressions())
    plain = len(arguments) == 2 and not any(isinstance(value, exp.Distinct | exp.Order) for value in arguments)
    return arguments if plain and not isinstance(inner, WRAPPERS) else ()


def pairwise(build: Callable[[Pair], str]) -> Rule:
    return lambda result, call, _type: build(Pair(result, call))


def slope(pair: Pair) -> str:
    spread = pair.deviations(pair.x)
    return f"(CASE WHEN {spread} = 0 THEN {NAN} ELSE {pair.covariation()} / {spread} END)"


def correlation(pair: Pair) -> str:
    left, right = pair.deviations(pair.x), pair.deviations(pair.y)
    value = f"{pair.covariation()} / (sqrt({left}) * sqrt({right}))"
    return pair.some(f"CASE WHEN {left} = 0 OR {right} = 0 THEN {NAN} ELSE {value} END")


def determination(pair: Pair) -> str:
    left, right, both = pair.deviations(pair.x), pair.deviations(pair.y), pair.covariation()
    value = f"CASE WHEN {right} = 0 THEN 1 ELSE {both} / {left} * ({both} / {right}) END"
    return f"CASE WHEN {left} <> 0 THEN {value} END"


def intercept(pair: Pair) -> str:
    value = f'"{pair.total(pair.y)}" / {pair.n} - {slope(pair)} * ("{pair.total(pair.x)}" / {pair.n})'
    pair.guard_intercept()
    return f"CASE WHEN {pair.deviations(pair.x)} <> 0 THEN {value} END"


PAIRS: dict[str, Callable[[Pair], str]] = {
    # an unsigned number in DuckDB; the delta's own count, which may be negative, must not be taken for one
    "regr_count": lambda pair: f"greatest({pair.n}, 0)",
    "regr_avgx": lambda pair: pair.some(pair.average(pair.x)),
    "regr_avgy": lambda pair: pair.some(pair.average(pair.y)),
    "regr_sxx": lambda pair: pair.some(pair.deviations(pair.x)),
    "regr_syy": lambda pair: pair.some(pair.deviations(pair.y)),
    "regr_sxy": lambda pair: pair.some(pair.covariation()),
    "covar_pop": lambda pair: pair.some(f"{pair.covariation()} / {pair.n}"),
    "covar_samp": lambda pair: pair.some(f"{pair.covariation()} / ({pair.n} - 1)", least=2),
    "regr_intercept": intercept,
    "regr_slope": lambda pair: pair.some(slope(pair)),
    "regr_r2": determination,
    "corr": correlation,
}


# --- moments of one argument ---------------------------------------------------------------------------------------


class Moments:
    """Power sums of one argument. Texts are SQL over the components."""

    def __init__(self, result: Decomposition, call: Call, degree: int) -> None:
        self.result = result
        self.argument = result.argument(filtered_argument(call))
        self.short = self.argument.removeprefix("openivm_")
        self.n = f'"{result.add(non_null(self.argument))}"'
        for power in range(1, degree + 1):
            value = self.power(power)
            result.add(power_sum(f"openivm_power_{power}_{self.short}", value))
            result.add(magnitude(f"openivm_power_size_{power}_{self.short}", value))

    def power(self, power: int) -> str:
        return f"pow({double(self.argument)}, {power})"

    def sums(self, degree: int, size: bool = False, new: bool = False) -> list[str]:
        """The number of rows and the power sums (their magnitudes), of the state or after a merge."""
        names = [f"openivm_power_{'size_' if size else ''}{power}_{self.short}" for power in range(1, degree + 1)]
        names = [self.n.strip('"'), *names]
        return [merged(name) if new else f'"{name}"' for name in names]

    def guard(self, degree: int, differences: list[tuple[str, str]]) -> None:
        """Have the group recomputed where one of the (difference, what went through it) has no digits left."""
        count, *sums = self.sums(degree, new=True)
        lost = " OR ".join(f"{through} > {VARIANCE_CONDITION} * abs({left})" for left, through in differences)
        stale = f"(NOT isfinite({sums[-1]}) OR {count} > 1 AND ({lost}))"
        name = f"openivm_power_{degree}_{self.short}"
        value = self.power(degree)
        self.result.components[name] = power_sum(name, value, stale)


def second(*sums: str) -> str:
    """n times the second central moment."""
    n, s1, s2, *_ = sums
    return f"({s2} - {s1} * {s1} / {n})"


def third(*sums: str, sign: str = "-") -> str:
    """n times the third central moment; with "+", what its terms add up to in size."""
    n, s1, s2, s3, *_ = sums
    return f"({s3} {sign} 3 * {s2} * {s1} / {n} + 2 * pow({s1}, 3) / {n} / {n})"


def fourth(*sums: str, sign: str = "-") -> str:
    """n times the fourth central moment; with "+", what its terms add up to in size."""
    n, s1, s2, s3, s4 = sums
    squares = f"6 * {s2} * {s1} * {s1} / {n} / {n}"
    return f"({s4} {sign} 4 * {s3} * {s1} / {n} + {squares} {sign} 3 * pow({s1}, 4) / {n} / {n} / {n})"


def skewness_rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
    moments = Moments(result, call, 3)
    held, new, sizes = moments.sums(3), moments.sums(3, new=True), moments.sums(3, size=True, new=True)
    moments.guard(3, [(second(*new), sizes[2]), (third(*new), third(*sizes, sign="+"))])
    n = held[0]
    spread = f"pow(greatest({second(*held)} / {n}, 0), 1.5)"
    value = f"sqrt(CAST({n} AS DOUBLE) * ({n} - 1)) / ({n} - 2) * {third(*held)} / {n} / {spread}"
    return f"CASE WHEN {n} > 2 AND {spread} > 0 THEN {value} END"


def kurtosis(corrected: bool) -> Rule:
    def rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
        moments = Moments(result, call, 4)
        held, new, sizes = moments.sums(4), moments.sums(4, new=True), moments.sums(4, size=True, new=True)
        differences = [(second(*new), sizes[2]), (fourth(*new), fourth(*sizes, sign="+"))]
        # what is subtracted in the end cancels, too
        ratio = f"{fourth(*new)} * {new[0]} / pow({second(*new)}, 2)"
        bias = f"(3 * ({new[0]} - 1))" if corrected else "3"
        factor = f"({new[0]} + 1) * " if corrected else ""
        differences.append((f"({factor}{ratio} - {bias})", bias))
        moments.guard(4, differences)
        n = held[0]
        ratio = f"{fourth(*held)} * {n} / pow({second(*held)}, 2)"
        value = f"{ratio} - 3"
        if corrected:
            value = f"({n} - 1) * (({n} + 1) * {ratio} - 3 * ({n} - 1)) / (({n} - 2) * CAST({n} - 3 AS DOUBLE))"
        least = 4 if corrected else 2
        return f"CASE WHEN {n} >= {least} AND {second(*held)} > 0 THEN {value} END"

    return rule


def standard_error_rule(result: Decomposition, call: Call, type_: str | None) -> str | None:
    found = deviations_of(result, call, type_)
    if found is None:
        return None
    seen, deviations = found
    return f'CASE WHEN "{seen}" > 0 THEN sqrt(greatest({deviations} / "{seen}", 0)) / sqrt("{seen}") END'


def summed(result: Decomposition, value: exp.Expr) -> tuple[str, str]:
    """(non-null count, sum) of a DOUBLE."""
    argument = result.argument(value)
    seen = result.add(non_null(argument))
    total, size = float_sum(argument)
    result.add(size)
    return seen, result.add(total)


def kahan_sum_rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
    _, total = summed(result, sql.cast(filtered_argument(call), "DOUBLE"))
    return f'"{total}"'


def kahan_average_rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
    seen, total = summed(result, sql.cast(filtered_argument(call), "DOUBLE"))
    return f'"{total}" / "{seen}"'


def geometric_mean_rule(result: Decomposition, call: Call, _type: str | None) -> str | None:
    seen, total = summed(result, exp.Ln(this=sql.cast(filtered_argument(call), "DOUBLE")))
    return f'exp("{total}" / "{seen}")'


PAIR_RULES: dict[str, Rule] = {name: pairwise(build) for name, build in PAIRS.items()}
STATISTICS: dict[str, Rule] = {
    "skewness": skewness_rule,
    "kurtosis": kurtosis(corrected=True),
    "kurtosis_pop": kurtosis(corrected=False),
    "sem": standard_error_rule,
    "fsum": kahan_sum_rule,
    "favg": kahan_average_rule,
    "geomean": geometric_mean_rule,
    "geometric_mean": geometric_mean_rule,
}

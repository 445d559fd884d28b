"""Whether a view holds what its query says: as a bag, floats within 1e-9 relative.

Where LIMIT cuts through rows that ORDER BY takes for equal, several answers are right. Then the view must hold every
row that comes before the cut however the tied ones are ordered, only rows up to the cut, and as many as asked for.
Where the rows that are tied at the cut all fit, this is the comparison of the whole.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import expressions as exp

TOLERANCE = 1e-9

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Truth:
    """What a view is compared with.

    Attributes:
        query: the query, without what comes after the limit's rows.
        limit: how many rows the view has at most; None where all rows are determined.
        order: the ORDER BY of a query with a limit, over the names of its output.
    """

    query: str
    limit: int | None = None
    order: str = ""


def truth_of(sql: str, output: Sequence[str]) -> Truth:
    """Take LIMIT and ORDER BY off a query.

    Args:
        output: the names of its columns. An ORDER BY over anything else stays as it is, LIMIT included.
    """
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    assert isinstance(tree, exp.Query)
    limit, order = tree.args.get("limit"), tree.args.get("order")
    if limit is None or order is None or tree.args.get("offset") or not isinstance(limit.expression, exp.Literal):
        return Truth(sql)
    shown = (
        dict(zip((item.unalias().sql().lower() for item in tree.selects), output, strict=True))
        if len(tree.selects) == len(output)
        else {}
    )
    keys = [_over_output(ordered, output, shown) for ordered in order.expressions]
    if not all(keys):
        return Truth(sql)
    tree.set("limit", None)
    tree.set("order", None)
    return Truth(tree.sql("duckdb"), int(limit.expression.name), ", ".join(filter(None, keys)))


def _over_output(ordered: exp.Ordered, output: Sequence[str], shown: Mapping[str, str]) -> str | None:
    """A part of ORDER BY with the names of the output; None if it reads something else.

    Args:
        shown: the names of the output by the expression that computes them.
    """
    ordered = ordered.copy()
    names = {**{exp.column(name).sql().lower(): name for name in output}, **shown}
    if isinstance(ordered.this, exp.Literal) and ordered.this.is_int:
        ordered.set("this", exp.column(output[int(ordered.this.name) - 1], quoted=True))
        return ordered.sql("duckdb")
    unknown = []

    def over_output(node: exp.Expr) -> exp.Expr:
        name = names.get(node.sql().lower())
        if name is not None:
            return exp.column(name, quoted=True)
        if isinstance(node, exp.Column | exp.AggFunc | exp.Window):
            unknown.append(node)
        return node

    ordered.set("this", ordered.this.transform(over_output))
    return None if unknown else ordered.sql("duckdb")


def differences(con: Any, relation: str, truth: Truth) -> list[Row]:
    """Rows that stand in `relation` and should not, or the other way round."""
    con.execute(f"CREATE OR REPLACE TEMP TABLE tpc_truth AS {truth.query}")
    if truth.limit is None:
        return _unpaired(_except(con, relation, "tpc_truth"), _except(con, "tpc_truth", relation))
    places = f"rank() OVER (ORDER BY {truth.order}) AS tpc_first"
    con.execute(f"CREATE OR REPLACE TEMP TABLE tpc_places AS SELECT *, {places} FROM tpc_truth")
    last = "tpc_first + count(*) OVER (PARTITION BY tpc_first) - 1"
    plain = "SELECT * EXCLUDE (tpc_first) FROM tpc_places"
    may, must = f"{plain} WHERE tpc_first <= {truth.limit}", f"{plain} QUALIFY {last} <= {truth.limit}"
    [(rows,)] = con.execute(f"SELECT least({truth.limit}, count(*)) FROM tpc_truth").fetchall()
    [(found,)] = con.execute(f"SELECT count(*) FROM {relation}").fetchall()
    surplus = _lonely(_except(con, relation, f"({may})"), _except(con, f"({may})", relation))
    missing = _lonely(_except(con, f"({must})", relation), _except(con, relation, f"({must})"))
    return surplus + missing + ([("rows", found, "of", rows)] if found != rows else [])


def _except(con: Any, left: str, right: str) -> list[Row]:
    rows: list[Row] = con.execute(f"FROM {left} EXCEPT ALL FROM {right}").fetchall()
    return rows


def _unpaired(left: list[Row], right: list[Row]) -> list[Row]:
    return _lonely(left, right) + _lonely(right, left)


def _lonely(rows: list[Row], others: list[Row]) -> list[Row]:
    """The rows that have no partner among the others, from which they differ by rounding at most."""
    pools: dict[Row, list[Row]] = defaultdict(list)
    for other in others:
        pools[_exact(other)].append(other)
    lonely = []
    for row in rows:
        pool = pools[_exact(row)]
        partner = next((other for other in pool if _alike(row, other)), None)
        if partner is None:
            lonely.append(row)
        else:
            pool.remove(partner)
    return lonely


def _exact(row: Row) -> Row:
    return tuple(float if isinstance(value, float) else repr(value) for value in row)


def _alike(first: Row, second: Row) -> bool:
    return all(_close(a, b) for a, b in zip(first, second, strict=True) if isinstance(a, float))


def _close(first: float, second: float) -> bool:
    if math.isnan(first) or math.isnan(second):
        return math.isnan(first) and math.isnan(second)
    return first == second or math.isclose(first, second, rel_tol=TOLERANCE)

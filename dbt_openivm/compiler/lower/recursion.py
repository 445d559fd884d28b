"""Lower a recursive CTE: what it starts from, and what it makes of its own rows in each round."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from dbt_openivm.compiler.algebra import Operator, Project, Recursive, Scan, column, unique_name
from dbt_openivm.compiler.facts import RECURSION, Column, Relation
from dbt_openivm.compiler.lower.lowered import Lowered
from dbt_openivm.compiler.places import place
from dbt_openivm.compiler.probe import rows_query
from dbt_openivm.errors import UnsupportedError

ENDINGS = ("limit", "offset", "order", "with_", "with")


class Queries(Protocol):
    """What lowers queries with some CTEs in scope."""

    def query(self, node: exp.Expr) -> Lowered: ...

    def with_cte(self, name: str, lowered: Lowered) -> Queries: ...


def recursive(cte: exp.CTE, scoped: Queries, number: int) -> Lowered:
    """The operator of a CTE that reads itself.

    Args:
        scoped: with the CTEs before it.
        number: one that no other recursive CTE of the query has.
    """
    name = cte.alias
    union = cte.this.unnest() if isinstance(cte.this, exp.Subquery | exp.Paren) else cte.this
    named = isinstance(union, exp.Union) and union.args.get("by_name")
    if not isinstance(union, exp.Union) or named or any(union.args.get(key) for key in ENDINGS):
        raise UnsupportedError(f"the recursive CTE {name}, which is no plain UNION,{place(cte)}")
    base = scoped.query(union.left)
    names = tuple(part.name for part in cte.args["alias"].columns)
    names = names + base.names[len(names) :]
    taken: set[str] = set()
    columns = tuple(unique_name(written, taken) for written in names)
    start = renamed(base.operator, columns)
    working = Relation(
        f"{RECURSION}:{number}", f"({rows_query(start)})", tuple(Column(known, "") for known in columns), RECURSION
    )
    itself = Lowered(Scan(working, tuple((known, known) for known in columns)), names)
    step = scoped.with_cte(name, itself).query(union.right)
    keys = tuple(
        found for part in cte.args.get("key_expressions") or [] for found in matching(part.name, names, columns)
    )
    operator = Recursive(start, renamed(step.operator, columns), working, bool(union.args.get("distinct")), keys)
    return Lowered(operator, names)


def renamed(operator: Operator, columns: tuple[str, ...]) -> Operator:
    return Project(
        operator, tuple((name, column(known)) for name, known in zip(columns, operator.columns, strict=True))
    )


def matching(name: str, names: tuple[str, ...], columns: tuple[str, ...]) -> list[str]:
    return [known for written, known in zip(names, columns, strict=True) if written.lower() == name.lower()]

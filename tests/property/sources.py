"""FROM clauses: scans, subqueries and every kind of join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from dbt_openivm.names import quote
from tests.property.expressions import NUMERIC, Expr, Expressions
from tests.property.identifiers import spell
from tests.property.schema import Column, Relation, column_list, rename, rename_rendered

MOST_ROWS = 3000


class Rejected(Exception):
    """This draw came to nothing; draw again."""


@dataclass
class From:
    """A FROM clause under construction.

    Args:
        sql: the text after FROM.
        exprs: the columns in scope, as references.
        names: their names, lower case, side by side with `exprs`.
        conditions: what belongs in WHERE (comma joins).
        rows: a guess, to keep cross products small.
        folded: positions of the columns that USING or NATURAL made of two.
        single: reads one relation without any join.
    """

    sql: str
    exprs: list[Expr]
    names: list[str]
    rows: int
    supported: bool
    conditions: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    folded: set[int] = field(default_factory=set)
    single: bool = True


class Sources:
    """Draws FROM clauses over `relations`; `subquery` draws a nested query as a relation."""

    def __init__(
        self,
        rng: Random,
        relations: Sequence[Relation],
        subquery: Callable[[], Relation] | None,
        fresh: Callable[[str], str],
    ) -> None:
        self.rng = rng
        self.relations = relations
        self.subquery = subquery
        self.fresh = fresh

    def draw(self, most: int = 5) -> From:
        count = min(most, self.rng.choice((1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5)))
        result, _ = self._input()
        for _ in range(count - 1):
            self._join(result)
        if count > 1:
            result.single = False
            result.features.append(f"join{count}")
            result.exprs = [replace(expr, unique=False) for expr in result.exprs]
            self._unqualify(result)
        return result

    def _unqualify(self, source: From) -> None:
        """The common column of USING may stand without a qualifier, also where another input has the name too."""
        for i in sorted(source.folded):
            if self.rng.random() < 0.7:
                source.exprs[i] = replace(source.exprs[i], sql=quote(source.names[i]))

    # -- inputs -----------------------------------------------------------------------------------------------------

    def _input(self) -> tuple[From, str]:
        """One input under a name of its own."""
        rng = self.rng
        if self.subquery and rng.random() < 0.3:
            relation = self.subquery()
        else:
            relation = rng.choice(self.relations)
        alias = self.fresh("q")
        columns, item = relation.columns, f"{relation.sql} {rng.choice(('AS ', ''))}{alias}"
        lowered = [column.name.lower() for column in columns]
        if len(set(lowered)) < len(lowered) or rng.random() < 0.1:
            columns = rename(columns, self.fresh)
            item = f"{relation.sql} AS {alias}({column_list(columns)})"
        elif any(column.rendered for column in columns):
            columns = rename_rendered(columns, self.fresh)
            item = f"{relation.sql} AS {alias}({column_list(columns)})"
        exprs = [self._reference(alias, column) for column in columns]
        result = From(item, exprs, [column.name.lower() for column in columns], relation.rows, relation.supported)
        return result, alias

    def _reference(self, alias: str, column: Column) -> Expr:
        sql = f"{alias}.{spell(self.rng, column.name)}"
        return Expr(sql, column.pool, fuzzy=column.fuzzy, unique=column.unique)

    # -- joins ------------------------------------------------------------------------------------------------------

    def _join(self, left: From) -> None:
        right, _ = self._input()
        left.supported &= right.supported
        left.features += right.features
        draws = [
            self._inner,
            self._inner,
            self._inner,
            self._comma,
            self._theta,
            self._cross,
            self._using,
            self._natural,
            self._outer,
            self._outer,
            self._outer,
            self._outer_using,
        ]
        self.rng.choice(draws)(left, right)
        if left.rows > MOST_ROWS:
            raise Rejected("too many rows")

    def _pair(self, left: From, right: From, *, ordered: bool = False) -> tuple[Expr, Expr]:
        """Two comparable columns, one of each side."""
        pairs = [
            (a, b)
            for a in left.exprs
            for b in right.exprs
            if _comparable(a, b) and not (ordered and a.kind not in (*NUMERIC, "str", "date", "ts"))
        ]
        if not pairs:
            raise Rejected("nothing to join on")
        return self.rng.choice(pairs)

    def _condition(self, left: From, right: From) -> str:
        rng = self.rng
        first, second = self._pair(left, right)
        if rng.random() < 0.5:
            first, second = second, first
        condition = f"{first.sql} {rng.choice(('=', '=', '=', '=', 'IS NOT DISTINCT FROM'))} {second.sql}"
        if first.kind == "str" and rng.random() < 0.2:
            condition = f"lower({first.sql}) = lower({second.sql})"
        if rng.random() < 0.2:
            extra = Expressions(rng, [*left.exprs, *right.exprs]).predicate(1).sql
            condition = rng.choice((f"{condition} AND {extra}", f"({condition} AND {extra})"))
        return condition

    def _merge(self, left: From, right: From, rows: int) -> None:
        left.exprs += right.exprs
        left.names += right.names
        left.conditions += right.conditions
        left.rows = max(1, rows)

    def _inner(self, left: From, right: From) -> None:
        keyword = self.rng.choice(("JOIN", "INNER JOIN", "inner join"))
        left.sql += f" {keyword} {right.sql} ON {self._condition(left, right)}"
        self._merge(left, right, left.rows * right.rows // 4)

    def _comma(self, left: From, right: From) -> None:
        left.conditions.append(self._condition(left, right))
        left.sql += f", {right.sql}"
        left.features.append("comma")
        self._merge(left, right, left.rows * right.rows // 4)

    def _cross(self, left: From, right: From) -> None:
        left.sql += f" CROSS JOIN {right.sql}"
        left.features.append("cross")
        self._merge(left, right, left.rows * right.rows)

    def _theta(self, left: From, right: From) -> None:
        rng = self.rng
        first, second = self._pair(left, right, ordered=True)
        condition = rng.choice(
            (
                f"{first.sql} {rng.choice(('<', '>', '<=', '>=', '<>'))} {second.sql}",
                f"{first.sql} BETWEEN {second.sql} AND {rng.choice(second.pool.values)}",
                f"{first.sql} = {second.sql} OR {second.sql} IS NULL",
            )
        )
        left.sql += f" JOIN {right.sql} ON {condition}"
        left.features.append("theta")
        self._merge(left, right, left.rows * right.rows // 2)

    def _common(self, left: From, right: From) -> list[tuple[int, int]]:
        """Positions of the columns both sides have under one name."""
        found = []
        for j, name in enumerate(right.names):
            if name in left.names:
                i = left.names.index(name)
                if left.names.count(name) > 1 or not _comparable(left.exprs[i], right.exprs[j]):
                    raise Rejected("ambiguous or incomparable common column")
                found.append((i, j))
        if not found:
            raise Rejected("no common column")
        return found

    def _using(self, left: From, right: From, kind: str = "") -> None:
        common = self._common(left, right)
        chosen = self.rng.sample(common, self.rng.randint(1, len(common)))
        names = ", ".join(quote(left.names[i]) for i, _ in chosen)
        left.sql += f" {kind}JOIN {right.sql} USING ({names})"
        left.features.append(f"{kind.lower()}using")
        self._fold(left, right, chosen)

    def _outer_using(self, left: From, right: From) -> None:
        """USING of an outer join; what it merges stands without a qualifier, since either side may have it."""
        if left.folded:
            raise Rejected("a name that was merged before")
        left.conditions += right.conditions
        right.conditions = []
        self._using(left, right, self.rng.choice(("LEFT ", "RIGHT ", "FULL ")))
        for i in left.folded:
            left.exprs[i] = replace(left.exprs[i], sql=quote(left.names[i]))
        left.rows += right.rows

    def _natural(self, left: From, right: From) -> None:
        common = self._common(left, right)
        left.sql += f" NATURAL JOIN {right.sql}"
        left.features.append("natural")
        self._fold(left, right, common)

    def _fold(self, left: From, right: From, common: list[tuple[int, int]]) -> None:
        """After USING the common column stands once."""
        left.folded |= {i for i, _ in common}
        gone = {j for _, j in common}
        right.exprs = [expr for j, expr in enumerate(right.exprs) if j not in gone]
        right.names = [name for j, name in enumerate(right.names) if j not in gone]
        self._merge(left, right, left.rows * right.rows // 4)

    def _outer(self, left: From, right: From) -> None:
        rng = self.rng
        keyword = rng.choice(
            ("LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT OUTER JOIN", "SEMI JOIN", "ANTI JOIN")
        )
        condition = self._condition(left, right)
        if rng.random() < 0.15 and keyword != "FULL JOIN":
            first, second = self._pair(left, right, ordered=True)
            condition = f"{first.sql} {rng.choice(('<', '>', '<=', '<>'))} {second.sql}"
        left.sql += f" {keyword} {right.sql} ON {condition}"
        left.features.append(keyword.lower())
        if keyword in ("SEMI JOIN", "ANTI JOIN"):
            left.conditions += right.conditions
            return
        self._merge(left, right, left.rows * right.rows // 4 + left.rows + right.rows)


def _comparable(first: Expr, second: Expr) -> bool:
    if first.fuzzy or second.fuzzy:
        return False
    if first.kind in NUMERIC and second.kind in NUMERIC:
        # an uneven decimal against a double is a matter of rounding
        return first.kind == second.kind or "float" not in (first.kind, second.kind)
    return first.kind == second.kind and (first.kind not in ("other", "struct") or first.pool.type == second.pool.type)

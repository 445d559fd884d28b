"""Random queries: blocks of scan, join, filter, projection, grouping; unions, CTEs and nesting of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from dbt_openivm.names import quote
from tests.property.aggregates import Aggregates, over_aggregates
from tests.property.correlations import Correlations
from tests.property.expressions import BASIC, INT, Expr, Expressions
from tests.property.identifiers import ODD, PLAIN
from tests.property.nests import Nests
from tests.property.recursions import Recursions
from tests.property.schema import Column, Relation, column_list, rename, rename_rendered
from tests.property.sources import From, Rejected, Sources
from tests.property.subqueries import MOST_ROWS as SUBQUERY_ROWS
from tests.property.subqueries import Subqueries
from tests.property.windows import Windows

SET_OPERATIONS = ("UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


@dataclass(frozen=True)
class Query:
    sql: str
    columns: tuple[Column, ...]
    rows: int
    supported: bool
    features: tuple[str, ...]

    def relation(self, sql: str | None = None) -> Relation:
        return Relation(sql or f"({self.sql})", self.columns, self.rows, self.supported)


@dataclass
class Item:
    """An item of a select list; `alias` unquoted."""

    expr: Expr
    alias: str | None = None

    @property
    def sql(self) -> str:
        return self.expr.sql if self.alias is None else f"{self.expr.sql} AS {quote(self.alias)}"


class Queries:
    """Draws queries over `relations`, checking each against DuckDB's binder."""

    def __init__(
        self, rng: Random, connection: Any, relations: Sequence[Relation], macros: Sequence[str], *, risky: bool = False
    ) -> None:
        self.rng = rng
        self.connection = connection
        self.relations = relations
        self.macros = macros
        self.risky = risky
        self._serial = itertools.count(1)
        self._features: list[str] = []

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self._serial)}"

    def draw(self, *, depth: int = 2, unsupported: bool = False) -> Query:
        """A query that binds; raises Rejected when none was found in many draws."""
        for _ in range(60):
            self._serial, self._features = itertools.count(1), []
            try:
                query = self._query(depth, "", (), unsupported)
                if unsupported and query.supported:
                    query = self._decorate(query)
            except (Rejected, RecursionError):
                continue
            return replace(query, features=tuple(sorted({*query.features, *self._features})))
        raise Rejected("no query found")

    # -- composition ------------------------------------------------------------------------------------------------

    def _query(self, depth: int, prefix: str, ctes: tuple[Relation, ...], unsupported: bool) -> Query:
        choice = self.rng.random()
        if depth > 0 and not prefix and choice < 0.18:
            return self._with(depth, unsupported)
        if depth > 0 and choice < 0.36:
            return self._set_operation(depth, prefix, ctes, unsupported)
        if depth > 0 and choice < 0.5:
            return self._windows(depth, prefix, ctes, unsupported)
        if depth > 0 and choice < 0.62:
            return self._nests(depth, prefix, ctes, unsupported)
        if depth > 0 and choice < 0.7:
            return self._recursions(depth, prefix, ctes, unsupported)
        if depth > 0 and choice < 0.78:
            return self._correlations(depth, prefix, ctes, unsupported)
        return self._block(depth, prefix, ctes, unsupported)

    def _windows(self, depth: int, prefix: str, ctes: tuple[Relation, ...], unsupported: bool) -> Query:
        """Windows, DISTINCT ON or LIMIT over another query."""
        inner = self._query(depth - 1, prefix, ctes, unsupported and self.rng.random() < 0.3)
        head = prefix + " " if prefix else ""
        wrapped = Windows(self.rng, inner.columns, self.fresh).wrap(inner.sql.removeprefix(head))
        self._features.append(wrapped.feature)
        return self._described(head + wrapped.sql, wrapped.columns, inner.rows, inner.supported)

    def _nests(self, depth: int, prefix: str, ctes: tuple[Relation, ...], unsupported: bool) -> Query:
        """UNNEST, PIVOT, COLUMNS, ASOF and the like over another query."""
        inner = self._query(depth - 1, prefix, ctes, unsupported and self.rng.random() < 0.3)
        head = prefix + " " if prefix else ""
        nests = Nests(self.rng, inner.columns, self.relations, self.fresh)
        wrapped = nests.wrap(inner.sql.removeprefix(head))
        self._features.append(wrapped.feature)
        return self._described(head + wrapped.sql, wrapped.columns, inner.rows * 2, inner.supported)

    def _recursions(self, depth: int, prefix: str, ctes: tuple[Relation, ...], unsupported: bool) -> Query:
        """A recursive CTE over another query, or a filter of it on the clock."""
        inner = self._query(depth - 1, prefix, ctes, unsupported and self.rng.random() < 0.3)
        head = prefix + " " if prefix else ""
        wrapped = Recursions(self.rng, inner.columns, self.relations, self.fresh).wrap(inner.sql.removeprefix(head))
        self._features.append(wrapped.feature)
        return self._described(head + wrapped.sql, wrapped.columns, inner.rows * 2, inner.supported)

    def _correlations(self, depth: int, prefix: str, ctes: tuple[Relation, ...], unsupported: bool) -> Query:
        """Subqueries in places of their own over another query."""
        inner = self._query(depth - 1, prefix, ctes, unsupported and self.rng.random() < 0.3)
        if inner.rows > SUBQUERY_ROWS:
            raise Rejected("a subquery for each row would take too long")
        head = prefix + " " if prefix else ""
        wrapped = Correlations(self.rng, inner.columns, self.relations, self.fresh).wrap(inner.sql.removeprefix(head))
        self._features.append(wrapped.feature)
        return self._described(head + wrapped.sql, wrapped.columns, inner.rows * 2, inner.supported)

    def _with(self, depth: int, unsupported: bool) -> Query:
        """One or two CTEs, read at least once and often twice."""
        prefix, ctes, supported = "WITH ", [], True
        for number in range(self.rng.choice((1, 1, 2))):
            head = prefix if number else ""
            inner = self._query(depth - 1, head.rstrip(", "), tuple(ctes), unsupported and self.rng.random() < 0.3)
            name, columns = self.fresh("cte"), inner.columns
            heading = name
            if self.rng.random() < 0.3 or len({column.name.lower() for column in columns}) < len(columns):
                columns = rename(columns, self.fresh)
                heading = f"{name}({column_list(columns)})"
            elif any(column.rendered for column in columns):
                columns = rename_rendered(columns, self.fresh)
                heading = f"{name}({column_list(columns)})"
            body = inner.sql.removeprefix(head.rstrip(", ")).strip() if head else inner.sql
            prefix += f"{heading} AS {self.rng.choice(('', '', 'MATERIALIZED ', 'NOT MATERIALIZED '))}({body}), "
            ctes.append(Relation(name, columns, inner.rows, inner.supported))
            supported &= inner.supported
        body = self._query(depth - 1, prefix.rstrip(", "), tuple(ctes), unsupported)
        self._features.append("cte")
        return replace(body, supported=body.supported and supported)

    def _set_operation(self, depth: int, prefix: str, ctes: tuple[Relation, ...], unsupported: bool) -> Query:
        rng = self.rng
        first = self._block(depth - 1, prefix, ctes, unsupported)
        bodies, words = [first], []
        for _ in range(rng.choice((1, 1, 2))):
            words.append(rng.choice(("UNION ALL", "UNION ALL", "UNION ALL", *SET_OPERATIONS)))
            # what is compared must have something in common
            if rng.random() < (0.15 if words[-1] == "UNION ALL" else 0.4):
                bodies.append(first)
            else:
                bodies.append(self._block(depth - 1, prefix, ctes, unsupported, like=first.columns))
        fuzzy = any(column.fuzzy for body in bodies for column in body.columns)
        if fuzzy and any(word != "UNION ALL" for word in words):
            raise Rejected("rounding would decide")
        head = prefix + " " if prefix else ""
        # a set operation takes the operands' own text, without the common WITH
        parts = [body.sql.removeprefix(head) for body in bodies]
        sql = parts[0]
        for number, (word, part) in enumerate(zip(words, parts[1:], strict=True)):
            sql = f"({sql}) {word} {part}" if number and rng.random() < 0.5 else f"{sql} {word} {part}"
        sql = head + sql
        columns = [
            replace(
                Column("", _union_pool([body.columns[i] for body in bodies])),
                fuzzy=any(body.columns[i].fuzzy for body in bodies),
                rendered=column.rendered,
            )
            for i, column in enumerate(first.columns)
        ]
        rows, supported = sum(body.rows for body in bodies), all(body.supported for body in bodies)
        self._features += [word.lower() for word in words]
        return self._described(sql, columns, rows, supported)

    # -- one block --------------------------------------------------------------------------------------------------

    def _block(
        self,
        depth: int,
        prefix: str,
        ctes: tuple[Relation, ...],
        unsupported: bool,
        like: Sequence[Column] | None = None,
    ) -> Query:
        rng = self.rng

        def subquery() -> Relation:
            inner = self._query(depth - 1, prefix, ctes, unsupported and rng.random() < 0.3)
            head = prefix + " " if prefix else ""
            self._features.append("subquery")
            return replace(inner.relation(), sql=f"({inner.sql.removeprefix(head)})")

        relations = [*self.relations, *ctes * 3]
        sources = Sources(rng, relations, subquery if depth > 0 else None, self.fresh)
        source = sources.draw()
        self._features += source.features
        inputs = Expressions(rng, source.exprs, self.macros, risky=self.risky)
        conditions = list(source.conditions)
        if rng.random() < 0.35:
            conditions.append(inputs.predicate(2).sql)
        subqueries = Subqueries(rng, relations, self.fresh, self._features)
        if rng.random() < 0.2 and source.rows < SUBQUERY_ROWS:
            conditions.append(subqueries.predicate(inputs))
        tail = f"FROM {source.sql}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
        head = prefix + " " if prefix else ""
        if like is not None:
            return self._projection(head, tail, source, inputs, like)
        if rng.random() < 0.08 and source.rows < SUBQUERY_ROWS:
            return self._values(head, tail, source, inputs, subqueries)
        shape = rng.random()
        if shape < 0.5:
            return self._aggregate(head, tail, source, inputs)
        if shape < 0.6:
            return self._star(head, tail, source)
        return self._projection(head, tail, source, inputs, None)

    def _projection(
        self, head: str, tail: str, source: From, inputs: Expressions, like: Sequence[Column] | None
    ) -> Query:
        rng = self.rng
        if like is not None:
            items = [Item(_like(inputs, column), self._alias()) for column in like]
        else:
            items = [Item(inputs.any(rng.choice((0, 1, 2, 3))), self._alias()) for _ in range(rng.randint(1, 5))]
            if rng.random() < 0.05:
                items.append(Item(inputs.of("int", 0), "reused"))
                items.append(Item(replace(items[-1].expr, sql="(coalesce(reused, 0) % 5)", pool=BASIC["int"])))
        distinct = rng.random() < 0.2 and not any(item.expr.fuzzy for item in items)
        if distinct:
            self._features.append("distinct")
        items = [replace_unique(item, source.single and not distinct) for item in items]
        sql = f"{head}SELECT {'DISTINCT ' if distinct else ''}{', '.join(item.sql for item in items)} {tail}"
        return self._described(sql, [_shown(item, source) for item in items], source.rows, source.supported)

    def _values(self, head: str, tail: str, source: From, inputs: Expressions, subqueries: Subqueries) -> Query:
        """Some columns, and the values of subqueries for each row."""
        rng = self.rng
        items = [Item(inputs.any(0), self.fresh("o")) for _ in range(rng.randint(1, 3))]
        items += [Item(subqueries.value(inputs), self.fresh("o")) for _ in range(rng.choice((1, 1, 2)))]
        items = [replace_unique(item, False) for item in items]
        sql = f"{head}SELECT {', '.join(item.sql for item in items)} {tail}"
        return self._described(sql, [_shown(item, source) for item in items], source.rows, source.supported)

    def _star(self, head: str, tail: str, source: From) -> Query:
        """SELECT *, with what DuckDB lets one write around it."""
        rng = self.rng
        exprs, stars = source.exprs, "*"
        if rng.random() < 0.2 and source.single and len(exprs) > 1:
            gone = rng.randrange(len(exprs))
            stars = f"* EXCLUDE ({quote(source.names[gone])})"
            exprs = [expr for i, expr in enumerate(exprs) if i != gone]
        distinct = rng.random() < 0.15 and not any(expr.fuzzy for expr in exprs)
        self._features.append("star")
        sql = f"{head}SELECT {'DISTINCT ' if distinct else ''}{stars} {tail}"
        return self._described(sql, [_column(expr) for expr in exprs], source.rows, source.supported)

    def _alias(self) -> str | None:
        rng = self.rng
        choice = rng.random()
        if choice < 0.4:
            return None
        if choice < 0.6:
            return rng.choice(PLAIN)
        if choice < 0.65:
            return rng.choice(ODD)
        return self.fresh("o")

    # -- grouping ---------------------------------------------------------------------------------------------------

    def _aggregate(self, head: str, tail: str, source: From, inputs: Expressions) -> Query:
        rng = self.rng
        aggregates = Aggregates(rng, inputs, single_scan=source.single)
        keys = [self._key(inputs) for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 2, 3)))]
        drawn = [aggregates.any() for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)) if keys else rng.randint(1, 4))]
        self._features += [family for _, family in drawn]
        self._features.append("group by" if keys else "ungrouped")
        results = [expr for expr, _ in drawn]
        if results and rng.random() < 0.3:
            results.append(over_aggregates(rng, results))
            self._features.append("over aggregates")
        shown, clause = self._grouping(keys, results)
        if not shown:
            raise Rejected("nothing selected")
        sql = f"{head}SELECT {', '.join(item.sql for item in shown)} {tail}{clause}"
        if rng.random() < 0.25 and (condition := self._having(keys, results)):
            sql += f" HAVING {condition}"
            self._features.append("having")
        supported = source.supported and (bool(keys) or all(family.split("-")[0] != "holistic" for _, family in drawn))
        rows = max(1, source.rows // 3) if keys else 1
        columns = [replace(_shown(item, source), unique=False) for item in shown]
        return self._described(sql, columns, rows, supported)

    def _key(self, inputs: Expressions) -> Expr:
        rng = self.rng
        column = inputs.column(exact=True)
        if column and rng.random() < 0.7:
            return column
        if rng.random() < 0.1:
            sql, kind = rng.choice((("'const'", "str"), ("CAST(1 AS BIGINT)", "int"), ("DATE '2024-01-01'", "date")))
            return Expr(sql, BASIC[kind], refs=False)
        return inputs.of(rng.choice(("int", "str", "bool", "date")), 2)

    def _grouping(self, keys: list[Expr], results: list[Expr]) -> tuple[list[Item], str]:
        """The select list and the GROUP BY clause, in one of the spellings."""
        rng = self.rng
        items = [Item(expr, self._alias()) for expr in results]
        if not keys:
            rng.shuffle(items)
            return items, rng.choice(("", "", "", " GROUP BY ()"))
        form = rng.choice(("expr", "expr", "ordinal", "all", "alias", "hidden"))
        if any(not key.refs for key in keys) and form == "expr":
            form = "ordinal"
        if form == "all":
            shown = [Item(key, self._alias()) for key in keys] + items
            rng.shuffle(shown)
            return shown, " GROUP BY ALL"
        if form == "alias":
            named = [Item(key, self.fresh("key")) for key in keys]
            clause = ", ".join(str(item.alias) for item in named)
            return named + items, f" GROUP BY {clause}"
        if form == "ordinal":
            shown = [Item(key, self._alias()) for key in keys] + items
            rng.shuffle(shown)
            ordinals = [str(i + 1) for i, item in enumerate(shown) if any(item.expr is key for key in keys)]
            return shown, f" GROUP BY {self._sets(ordinals)}"
        if rng.random() < 0.2:
            items.append(
                Item(Expr(f"{rng.choice(('GROUPING', 'GROUPING_ID'))}({', '.join(key.sql for key in keys)})", INT))
            )
        clause = f" GROUP BY {self._sets([key.sql for key in keys])}"
        shown_keys = keys if form == "expr" else keys[1:]
        shown = [Item(key, self._alias()) for key in shown_keys] + items
        rng.shuffle(shown)
        return shown, clause

    def _sets(self, keys: list[str]) -> str:
        """The keys of a GROUP BY, sometimes as grouping sets."""
        rng = self.rng
        plain = ", ".join(keys)
        if rng.random() < 0.65:
            return plain
        self._features.append("grouping sets")
        some = [key for key in keys if rng.random() < 0.5]
        every, few = f"({plain})", f"({', '.join(some)})"
        return rng.choice(
            (
                f"ROLLUP {every}",
                f"CUBE {every}",
                f"{keys[0]}, ROLLUP {every}",
                f"ROLLUP ({every}, {keys[-1]})",
                f"GROUPING SETS ({every}, {few}, {few})",
                f"GROUPING SETS ({few}, {keys[0]}, ROLLUP {every})",
                f"{plain}, GROUPING SETS ({few}, ())",
            )
        )

    def _having(self, keys: list[Expr], results: list[Expr]) -> str | None:
        rng = self.rng
        usable = [expr for expr in (*keys, *results) if expr.refs and not expr.pool.bare]
        if not usable:
            return rng.choice(("COUNT(*) > 1", "COUNT(*) <> 2"))
        predicate = Expressions(rng, usable).predicate(0).sql
        return rng.choice((predicate, f"COUNT(*) >= 2 AND {predicate}", f"NOT ({predicate})", "COUNT(*) > 1"))

    # -- constructs of later issues ---------------------------------------------------------------------------------

    def _decorate(self, query: Query) -> Query:
        """Wrap a supported query into a construct that is not (yet) incremental."""
        rng = self.rng
        if any(column.fuzzy or column.pool.summable != "exact" for column in query.columns):
            raise Rejected("rounding would decide")
        names = [self.fresh("c") for _ in query.columns]
        inner = f"({query.sql}) AS {self.fresh('q')}({', '.join(names)})"
        key = rng.choice(names)
        extra = (Column("", BASIC["int"]),)
        table = {
            "order by": (f"SELECT * FROM {inner} ORDER BY {key}", query.columns),
            "unnest": (f"SELECT *, unnest([1, 2]) FROM {inner}", query.columns + extra),
            "series": (f"SELECT * FROM {inner} CROSS JOIN range(2) AS r(i)", query.columns + extra),
            "values": (f"SELECT * FROM {inner} JOIN (VALUES (1), (2)) AS r(i) ON i > 1", query.columns + extra),
        }
        name = rng.choice(tuple(table))
        self._features.append(name)
        sql, columns = table[name]
        return self._described(sql, columns, query.rows, supported=False)

    # -- binding ----------------------------------------------------------------------------------------------------

    def _described(self, sql: str, columns: Sequence[Column], rows: int, supported: bool) -> Query:
        try:
            described = self.connection.execute(f"DESCRIBE {sql}").fetchall()
        except Exception as error:
            raise Rejected(f"{error}\n{sql}") from error
        if len(described) != len(columns):
            raise Rejected(f"{len(described)} columns, not {len(columns)}: {sql}")
        if any(row[1] == '"NULL"' for row in described):
            raise Rejected("a column without a type")
        named = tuple(
            replace(column, name=row[0], pool=replace(column.pool, type=row[1]))
            for column, row in zip(columns, described, strict=True)
        )
        return Query(sql, named, rows, supported, ())


def _column(expr: Expr) -> Column:
    return Column("", expr.pool, fuzzy=expr.fuzzy, unique=expr.unique)


def _shown(item: Item, source: From) -> Column:
    """The column of a select item; without an alias, what is no column of FROM is named by DuckDB."""
    rendered = item.alias is None and all(item.expr.sql != expr.sql for expr in source.exprs)
    return replace(_column(item.expr), rendered=rendered)


def replace_unique(item: Item, keep: bool) -> Item:
    return item if keep else Item(replace(item.expr, unique=False), item.alias)


def _like(inputs: Expressions, column: Column) -> Expr:
    """An expression that can stand below `column` in a UNION ALL."""
    kind = column.pool.kind
    if kind in BASIC:
        return inputs.of(kind, 1)
    same = [expr for expr in inputs.columns if expr.pool.type == column.pool.type]
    return inputs.rng.choice(same) if same else Expr("NULL", column.pool)


def _union_pool(columns: Sequence[Column]) -> Any:
    order = ("exact", "mild", "special", "huge", "wild")
    summable = max((column.pool.summable for column in columns), key=order.index)
    bare = any(column.pool.bare for column in columns)
    magnitude = max(column.pool.magnitude for column in columns)
    return replace(columns[0].pool, summable=summable, bare=bare, magnitude=magnitude)

"""Values that matter to the queries: what they compare their columns with, and which columns they join.

Random values would leave selective queries empty. So a part of the changes makes rows look as a query wants them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import expressions as exp

COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like)


@dataclass
class Wanted:
    """What queries say about the columns of the tables.

    Attributes:
        used: the columns that any query reads, by table.
        literals: text of what a column is compared with.
        profiles: by table, what one SELECT wants of its columns at the same time.
        joined: columns that are compared with a column, itself included.
    """

    used: dict[str, list[str]] = field(default_factory=dict)
    literals: dict[str, list[str]] = field(default_factory=dict)
    profiles: dict[str, list[dict[str, list[str]]]] = field(default_factory=dict)
    joined: dict[str, list[str]] = field(default_factory=dict)


def wanted(queries: Iterable[str], table_of: Mapping[str, str]) -> Wanted:
    """Read the queries.

    Args:
        table_of: the table of each column: in both suites a column's name says whose it is.
    """
    used: dict[str, set[str]] = defaultdict(set)
    literals: dict[str, set[str]] = defaultdict(set)
    profiles: dict[str, list[dict[str, list[str]]]] = defaultdict(list)
    groups: dict[str, set[str]] = {}
    for query in queries:
        tree = sqlglot.parse_one(query, dialect="duckdb")
        for column in tree.find_all(exp.Column):
            if column.name in table_of:
                used[table_of[column.name]].add(column.name)
        for pair in _joins(tree, table_of):
            merged = set().union(*(groups.get(name, {name}) for name in pair))
            groups.update(dict.fromkeys(merged, merged))
        for select in tree.find_all(exp.Select):
            block: dict[str, dict[str, list[str]]] = defaultdict(dict)
            for name, text in _compared(select, table_of):
                literals[name].add(text)
                block[table_of[name]].setdefault(name, []).append(text)
            for table, columns in block.items():
                profiles[table].append(columns)
    return Wanted(
        {table: sorted(names) for table, names in used.items()},
        {name: sorted(texts) for name, texts in literals.items()},
        dict(profiles),
        {name: sorted(group) for name, group in groups.items()},
    )


def _compared(select: exp.Select, table_of: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(column, text of a literal that it is compared with) in one SELECT, not in those inside it."""
    for comparison in select.find_all(*COMPARISONS):
        if comparison.find_ancestor(exp.Select) is not select:
            continue
        columns = {column.name for column in comparison.find_all(exp.Column)} & table_of.keys()
        if len(columns) == 1:
            [name] = columns
            for literal in comparison.find_all(exp.Literal):
                yield name, literal.name.strip("%").replace("%", " ")


def _joins(tree: exp.Expr, table_of: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for equality in tree.find_all(exp.EQ):
        left, right = equality.left, equality.right
        if (
            isinstance(left, exp.Column)
            and isinstance(right, exp.Column)
            and {left.name, right.name} <= table_of.keys()
        ):
            yield left.name, right.name

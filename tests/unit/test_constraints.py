"""What keys of relations tell of operators: unique columns, and which inputs of a join refer to which others."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from dbt_openivm.compiler.algebra import Filter, Join, Operator, Project, Scan, UnionAll, column
from dbt_openivm.compiler.constraints import unique_keys, with_references
from dbt_openivm.compiler.facts import Column, ForeignKey, Relation
from dbt_openivm.compiler.rules.references import parents_first

COLUMNS = (Column("id", "INTEGER"), Column("up", "INTEGER"))
PARENT = Relation("m.s.parent", "parent", COLUMNS, unique_keys=(("id",),))
CHILD = Relation("m.s.child", "child", COLUMNS, unique_keys=(("id",),),
                 foreign_keys=(ForeignKey(("up",), PARENT.key, ("id",)),))  # fmt: skip


def scan(relation: Relation, prefix: str) -> Scan:
    return Scan(relation, tuple((f"{prefix}_{c.name}", c.name) for c in COLUMNS))


def pair(left: Operator, right: Operator) -> Join:
    names = tuple((name, index, name) for index, side in enumerate((left, right)) for name in side.columns)
    return Join((left, right), names)


def where(operator: Operator, predicate: str) -> Filter:
    condition = sqlglot.parse_one(predicate).transform(
        lambda node: column(node.name) if isinstance(node, exp.Column) else node
    )
    return Filter(operator, condition)


def references_of(operator: Operator) -> list[tuple[tuple[int, int], ...]]:
    return [op.references for op in operator.walk() if isinstance(op, Join)]


def test_filters_above_a_join_are_read_together() -> None:
    joined = pair(scan(CHILD, "c"), scan(PARENT, "p"))
    inner = where(joined, "c_id > 1 AND (p_id = c_up)")
    assert references_of(with_references(where(inner, "p_id > 5"))) == [((1, 0),)]
    assert references_of(with_references(where(where(joined, "p_id > 5"), "c_up = p_id"))) == [((1, 0),)]


def test_readers_of_one_join_have_their_own_conditions() -> None:
    joined = pair(scan(CHILD, "c"), scan(PARENT, "p"))
    both = UnionAll((where(joined, "c_up = p_id"), where(joined, "c_up < p_id"), joined))
    made = with_references(both)
    assert references_of(made) == [((1, 0),), (), ()]


def test_what_several_read_stays_one_object() -> None:
    shared = Project(scan(PARENT, "p"), (("id", column("p_id")),))
    both = UnionAll((where(shared, "id > 1"), where(shared, "id > 2")))
    made = with_references(both)
    assert len({id(op) for op in made.walk() if isinstance(op, Project)}) == 1


def test_keys_of_joins_and_projections() -> None:
    joined = pair(scan(CHILD, "c"), scan(PARENT, "p"))
    assert unique_keys(joined) == [("c_id", "p_id")]
    renamed = Project(joined, (("a", column("p_id")), ("b", column("c_id")), ("c", column("c_id"))))
    assert unique_keys(where(renamed, "a > 1")) == [("b", "a")]
    assert unique_keys(Project(joined, (("a", column("p_id")),))) == []
    assert unique_keys(UnionAll((scan(CHILD, "c"), scan(PARENT, "p")))) == []
    assert unique_keys(Project(scan(CHILD, "c"), (("id", sqlglot.parse_one("1")),))) == []


def test_a_ring_of_references_has_one_last_input() -> None:
    order, empty = parents_first(3, [(0, 1), (1, 2), (2, 0)])
    assert (order, empty) == ([0, 1, 2], {0, 1})

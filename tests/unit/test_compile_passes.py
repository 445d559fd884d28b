"""Single passes: pruning, splitting, probing, and the number of terms of a join's delta."""

from __future__ import annotations

import pytest
import sqlglot

from dbt_openivm.compiler.aggregates import describe
from dbt_openivm.compiler.algebra import Aggregate, Join, Project, UnionAll, column
from dbt_openivm.compiler.compile import analyse, finish, settle
from dbt_openivm.compiler.compile import compile as compile_query
from dbt_openivm.compiler.facts import CompileFacts
from dbt_openivm.compiler.plan import Target
from dbt_openivm.compiler.probe import Answers, resolve_types
from dbt_openivm.compiler.rules import Context, SourceState, delta, new, old
from dbt_openivm.compiler.split import split
from dbt_openivm.errors import QueryError
from tests.unit.compiling import facts, operator, scans

KNOWN = facts(
    t="k INTEGER, x INTEGER, y VARCHAR, z VARCHAR",
    u="k BIGINT, v DOUBLE, w VARCHAR",
)


def used(query: str) -> dict[str, list[str]]:
    plan = compile_query(query, KNOWN)
    return {key.rsplit(".", 1)[1]: [column.name for column in columns] for key, columns in plan.sources.items()}


# --- prune ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT k FROM t WHERE y = 'a'", {"t": ["k", "y"]}),
        ("SELECT count(*) AS n FROM t", {"t": []}),
        ("SELECT t.x FROM t JOIN u ON t.k = u.k", {"t": ["k", "x"], "u": ["k"]}),
        ("SELECT t.x FROM t, u", {"t": ["x"], "u": []}),
        ("SELECT a FROM (SELECT k AS a, x AS b, y FROM t) AS q WHERE b > 1", {"t": ["k", "x"]}),
        ("SELECT n FROM (SELECT y, count(z) AS n FROM t GROUP BY y) AS q", {"t": ["y", "z"]}),
        ("SELECT b FROM (SELECT k AS a, x AS b FROM t UNION ALL SELECT k, v FROM u) AS q", {"t": ["x"], "u": ["v"]}),
        ("WITH q AS (SELECT * FROM t) SELECT a.k, b.x FROM q AS a JOIN q AS b ON a.k = b.k", {"t": ["k", "x"]}),
        ("SELECT k FROM t ORDER BY y", {"t": ["k"]}),
        ("SELECT 1 AS one FROM t", {"t": []}),
    ],
)
def test_only_used_columns_are_read(query: str, columns: dict[str, list[str]]) -> None:
    assert used(query) == columns


def test_a_full_refresh_uses_all_columns() -> None:
    assert used("SELECT k FROM t LIMIT 1") == {"t": ["k", "x", "y", "z"]}


# --- split ------------------------------------------------------------------------------------------------------------


def test_a_linear_query_is_one_node() -> None:
    [node] = split(operator("SELECT t.k FROM t JOIN u ON t.k = u.k", KNOWN))
    assert (node.number, node.aggregate) == (None, None)


def test_an_aggregate_with_filters_and_projections_above_it_is_one_node() -> None:
    query = "SELECT s + 1 AS s FROM (SELECT k, sum(x) AS s FROM t GROUP BY k) AS q WHERE s > 2"
    [node] = split(operator(query, KNOWN))
    assert node.aggregate is not None
    assert node.having is not None
    assert node.columns == ("s",)


def test_a_cte_used_twice_is_one_internal_node() -> None:
    query = "WITH q AS (SELECT k, sum(x) AS s FROM t GROUP BY k) SELECT a.k FROM q AS a JOIN q AS b ON a.s = b.s"
    inner, root = split(operator(query, KNOWN))
    assert (inner.number, root.number) == (1, None)
    assert [scan.relation.key for scan in scans(root.core)] == ["node:1", "node:1"]


def test_a_cte_used_three_times_in_two_places_is_one_internal_node() -> None:
    query = (
        "WITH q AS (SELECT k, count(*) AS n FROM t GROUP BY k) "
        "SELECT k FROM q UNION ALL SELECT a.k FROM q AS a, q AS b WHERE a.n < b.n"
    )
    assert len(split(operator(query, KNOWN))) == 2


def test_equal_subqueries_written_twice_are_two_nodes() -> None:
    """They are not looked for: a user who wants one writes a CTE."""
    q = "(SELECT k, count(*) AS n FROM t GROUP BY k)"
    assert len(split(operator(f"SELECT a.k FROM {q} AS a JOIN {q} AS b ON a.n = b.n", KNOWN))) == 3


def test_nodes_come_before_what_reads_them() -> None:
    query = (
        "SELECT m, count(*) AS c FROM (SELECT n, max(k) AS m FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS a "
        "GROUP BY n) AS b GROUP BY m"
    )
    nodes = split(operator(query, KNOWN))
    assert [node.number for node in nodes] == [1, 2, None]
    assert [[scan.relation.key for scan in scans(node.core)] for node in nodes] == [
        ["memory.main.t"],
        ["node:1"],
        ["node:2"],
    ]


# --- probe ------------------------------------------------------------------------------------------------------------


def answering(*answers: tuple[str, ...]) -> Answers:
    """Gives these answers one after the other."""
    left = list(answers)
    return Answers({}, lambda _query: left.pop(0))


def test_a_union_asks_for_its_type_where_its_branches_differ() -> None:
    tree = operator("SELECT k FROM t UNION ALL SELECT k FROM u", KNOWN)
    answers = answering(("BIGINT",))
    typed = resolve_types(tree, answers)
    assert len(answers.asked) == 1
    assert isinstance(typed, UnionAll)
    casted, plain = typed.children
    assert isinstance(casted, Project)
    assert "CAST" in casted.items[0][1].sql(dialect="duckdb")
    assert type(plain) is type(tree.inputs[1])


def test_an_aggregate_asks_for_arguments_and_results() -> None:
    tree = operator("SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k", KNOWN)
    answers = answering(("INTEGER", "HUGEINT", "BIGINT", "INTEGER"))
    typed = resolve_types(tree, answers)
    [aggregate] = [op for op in typed.walk() if isinstance(op, Aggregate)]
    assert aggregate.types == (("INTEGER", "HUGEINT"), (None, "BIGINT"))


def test_a_question_reads_no_source_and_stays_short() -> None:
    """However deep the query, a question spans what lies between two operators of known types."""
    tree = operator("SELECT k, sum(x) AS s FROM t GROUP BY k", KNOWN)
    for _ in range(5):
        tree = Aggregate(tree, (("k", column("k")),), (("s", describe(sqlglot.parse_one('sum("s")'))),))
    answers = answering(*[("INTEGER", "HUGEINT", "INTEGER")] * 6)
    resolve_types(tree, answers)
    assert len(answers.asked) == 3, "the outer four are alike"
    assert all("FROM (VALUES" in asked and len(asked) < 400 for asked in answers.asked)


def test_without_types_the_plan_is_still_made() -> None:
    """Only dearer: a sum of unknown type has no additive form."""
    plan = compile_query("SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k", KNOWN)
    assert plan.refresh_type == "GROUP_RECOMPUTE"


def test_with_types_it_is_additive() -> None:
    analysis, known = settle(
        "SELECT k, sum(x) AS s FROM t GROUP BY k", KNOWN, lambda _: ("INTEGER", "HUGEINT", "INTEGER")
    )
    plan = finish(analysis, known)
    assert plan.refresh_type == "AGGREGATE_GROUP"


# --- joins ------------------------------------------------------------------------------------------------------------


def star(inputs: int) -> tuple[str, CompileFacts]:
    """A join of a chain of tables."""
    known = facts(**{f"t{i}": "k INTEGER, v INTEGER" for i in range(inputs)})
    joins = " ".join(f"JOIN t{i} ON t{i}.k = t{i - 1}.k" for i in range(1, inputs))
    return f"SELECT t0.v AS a, t{inputs - 1}.v AS b FROM t0 {joins}", known


def states(inputs: int, changed: set[int]) -> dict[str, SourceState]:
    return {
        f"memory.main.t{i}": SourceState(f"t{i}", f"log_t{i}", 1, 2, inserts=1 if i in changed else 0)
        for i in range(inputs)
    }


@pytest.mark.parametrize("changed", [set(), {0}, {19}, {3, 7, 11}, set(range(20))])
def test_a_join_of_twenty_has_a_term_for_each_changed_input(changed: set[int]) -> None:
    query, known = star(20)
    tree = operator(query, known)
    assert len(delta(tree, Context(states(20, changed)))) == len(changed)


def test_old_and_new_of_a_join_are_one_fragment() -> None:
    query, known = star(20)
    tree = operator(query, known)
    every = states(20, set(range(20)))
    assert len(new(tree, Context(every))) == len(old(tree, Context(every))) == 1


def test_a_join_is_flat() -> None:
    query, known = star(20)
    [join] = [op for op in operator(query, known).walk() if isinstance(op, Join)]
    assert len(join.children) == 20


def test_a_term_reads_new_before_and_old_after_its_delta() -> None:
    """Only the inputs after the delta are read as old = new - delta."""
    query, known = star(3)
    [program] = [node.program for node in compile_query(query, known).nodes]
    target = Target("data", "visible", "log", 2, publish=False)
    text = " ".join(str(step.arguments) for step in program.incremental(states(3, {0, 1, 2}), target))
    # t0 is never read as old, t1 once (in the term of t0), t2 twice
    assert [
        text.count(f'FROM log_t{i} AS \\"later_t{i}') + text.count(f'FROM log_t{i} AS "later_t{i}') for i in range(3)
    ] == [0, 1, 2]


def test_nothing_changed_is_no_step() -> None:
    query, known = star(3)
    [program] = [node.program for node in compile_query(query, known).nodes]
    assert program.incremental(states(3, set()), Target("data", "visible", "log", 2, publish=True)) == []


# --- what is no view --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "0 statements"),
        ("   -- nothing\n", "0 statements"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("INSERT INTO t VALUES (1)", "INSERT"),
        ("CREATE TABLE a AS SELECT 1", "CREATE"),
        ("DROP TABLE t", "DROP"),
        ("DELETE FROM t", "DELETE"),
    ],
)
def test_a_view_is_one_select(text: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        analyse(text, KNOWN)

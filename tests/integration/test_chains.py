"""Chains, fan-out and diamonds; partial selections in any order; many threads."""

from __future__ import annotations

import random

import duckdb
import pytest

from dbt_openivm import IvmEngine
from tests.integration.conftest import BY_PRODUCT
from tests.integration.project import Project

pytestmark = pytest.mark.integration

MODELS = {
    "a": "select id, product, price from {{ source('src', 'sales') }} where price > 20",
    "b": "select product, name from {{ source('src', 'products') }} where name <> 'p3'",
    "c": "select a.id, a.price, b.name from {{ ref('a') }} a join {{ ref('b') }} b on a.product = b.product",
    "d": "select name, count(*) as n, sum(price) as total from {{ ref('c') }} group by name having count(*) > 1",
    "e": "select d.name, d.total, s.id from {{ ref('d') }} d join {{ source('src', 'sales') }} s on s.price = d.n * 10",
    "f": "select count(*) as n, max(total) as top from {{ ref('d') }}",
}
QUERIES = {
    "a": "(select id, product, price from sales where price > 20)",
    "b": "(select product, name from products where name <> 'p3')",
}
QUERIES["c"] = f"(select a.id, a.price, b.name from {QUERIES['a']} a join {QUERIES['b']} b on a.product = b.product)"
QUERIES["d"] = (
    f"(select name, count(*) as n, sum(price) as total from {QUERIES['c']} group by name having count(*) > 1)"
)
QUERIES["e"] = f"(select d.name, d.total, s.id from {QUERIES['d']} d join sales s on s.price = d.n * 10)"
QUERIES["f"] = f"(select count(*) as n, max(total) as top from {QUERIES['d']})"


@pytest.fixture
def chain(shop: Project) -> Project:
    shop.remove("clean")
    shop.remove("by_product")
    for name, sql in MODELS.items():
        shop.model(name, sql)
    return shop


def check(project: Project) -> None:
    for name, query in QUERIES.items():
        project.assert_equal(name, query)


def change(project: Project, random_: random.Random) -> None:
    statements = []
    for _ in range(random_.randint(1, 4)):
        number, product = random_.randrange(200), random_.randrange(9)
        statements.append(
            random_.choice(
                [
                    f"INSERT INTO sales SELECT {number}, {product}, {number * 7 % 300}, NULL FROM range({product % 3})",
                    f"DELETE FROM sales WHERE id = {number}",
                    f"UPDATE sales SET product = {product}, price = price + 13 WHERE id % 17 = {number % 17}",
                    f"UPDATE products SET name = 'p{product + 1}' WHERE product = {product}",
                    f"DELETE FROM products WHERE product = {product}",
                    f"INSERT INTO products VALUES ({product}, 'p{product}')",
                ]
            )
        )
    project.execute(*statements)


def test_chain_is_incremental_to_the_end(chain: Project) -> None:
    chain.run()
    check(chain)
    chain.execute("INSERT INTO sales VALUES (500, 1, 120, 2)")
    run = chain.run()
    assert {name: run.strategy(name) for name in "acdf"} == dict.fromkeys("acdf", "incremental")
    assert run.strategy("b") == "none"
    check(chain)


def test_partial_selections_in_any_order(chain: Project) -> None:
    random_ = random.Random(7)
    chain.run()
    for _ in range(6):
        change(chain, random_)
        for name in random_.sample(list(MODELS), 3):
            chain.run("--select", name)
    chain.run()
    check(chain)
    assert {chain.run().strategy(name) for name in MODELS} == {"none"}


def test_parent_rebuilt_while_its_child_is_not_selected(chain: Project) -> None:
    chain.run()
    chain.execute("INSERT INTO sales VALUES (500, 1, 120, 2)", "DELETE FROM sales WHERE id = 30")
    chain.run("--select", "a", "--full-refresh")
    chain.execute("INSERT INTO sales VALUES (501, 1, 130, 2)")
    run = chain.run()
    assert run.strategy("d") == "incremental"
    check(chain)


def test_parent_changes_its_definition(chain: Project) -> None:
    chain.run()
    chain.model("a", MODELS["a"].replace("> 20", "> 300"))
    chain.run("--select", "a")
    run = chain.run()
    assert run.strategy("c") == "incremental"
    chain.assert_equal("d", QUERIES["d"].replace("> 20", "> 300"))
    chain.model("a", MODELS["a"].replace("id, product, price", "id, product, price, quantity"))
    run = chain.run()
    assert run.strategy("a") == "rebuild"
    chain.assert_equal("a", QUERIES["a"].replace("id, product, price", "id, product, price, quantity"))
    chain.assert_equal("f", QUERIES["f"])


def test_parent_of_a_full_refresh(chain: Project) -> None:
    """A parent that can only be recomputed still hands an exact difference on."""
    chain.model("b", MODELS["b"].replace("select", "select", 1) + " and random() >= 0")
    chain.run()
    chain.execute("INSERT INTO products VALUES (1, 'p9')")
    run = chain.run()
    assert run.strategy("b") == "full"
    assert run.strategy("c") == "incremental"
    check(chain)


@pytest.mark.slow
def test_eight_threads(project: Project) -> None:
    """Siblings and chains on shared sources, run after run: no conflict, no lost or doubled change."""
    project.profile({"threads": 8})
    project.execute(
        "CREATE TABLE s AS SELECT i AS id, i % 10 AS g, i AS x FROM range(2000) r(i)", "CREATE TABLE t AS FROM s"
    )
    project.sources("s", "t")
    for i in range(8):
        project.model(
            f"w{i}", f"select id, g, x + {i} as x from {{{{ source('src', '{'st'[i % 2]}') }}}} where g <> {i}"
        )
        project.model(f"g{i}", f"select g, sum(x) as x, count(*) as n from {{{{ ref('w{i}') }}}} group by g")
        project.model(
            f"j{i}",
            f"select a.g, a.x, b.n from {{{{ ref('g{i}') }}}} a join {{{{ ref('g{(i + 1) % 8}') }}}} b using (g)",
        )
    for number in range(5):
        run = project.run()
        assert len(run.results) == 24
        for i in range(8):
            w = f"(select id, g, x + {i} as x from {'st'[i % 2]} where g <> {i})"
            project.assert_equal(f"g{i}", f"(select g, sum(x) as x, count(*) as n from {w} group by g)")
            project.assert_equal(f"j{i}", f"(select a.g, a.x, b.n from g{i} a join g{(i + 1) % 8} b using (g))")
        project.execute(
            f"INSERT INTO s SELECT i, i % 10, {number} FROM range(50) r(i)",
            f"DELETE FROM t WHERE id % 50 = {number}",
            f"UPDATE s SET g = (g + 1) % 10 WHERE id % 31 = {number}",
        )
    assert project.run("--full-refresh").success


def test_hooks_that_write_a_shared_source_in_parallel(project: Project) -> None:
    """Each model's hook adds a row inside its transaction, while other models capture the same source."""
    project.profile({"threads": 8})
    project.execute("CREATE TABLE s AS SELECT i AS id, i % 10 AS g FROM range(2000) r(i)")
    project.sources("s")
    for i in range(8):
        hook = f"insert into {{{{ source('src', 's') }}}} values ({10_000 + i}, {i})" if i % 2 else ""
        project.model(f"h{i}", "select g, count(*) as n from {{ source('src', 's') }} group by g", pre_hook=hook)
    for number in range(1, 4):
        project.run()
        assert project.query("SELECT count(*) FROM s") == [(2000 + 4 * number,)]
    for i in range(8):
        project.model(f"h{i}", "select g, count(*) as n from {{ source('src', 's') }} group by g")
    project.run()
    for i in range(8):
        project.assert_equal(f"h{i}", "SELECT g, count(*) AS n FROM s GROUP BY g")


def test_companion_rows_of_a_model(shop: Project) -> None:
    """Forced, they are those of the last run; a registered consumer keeps them until it has them."""
    companion = "openivm_main.openivm_delta_by_product"
    query = f"SELECT product, n, openivm_multiplicity FROM {companion} ORDER BY openivm_batch, openivm_multiplicity"
    shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"), force_view_delta_cascade=True)
    shop.run()
    [(before,)] = shop.query("SELECT n FROM by_product WHERE product = 3")
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)")
    shop.run()
    assert shop.query(query) == [(3, before, -1), (3, before + 1, 1)]
    shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"), openivm_skip_empty_deltas=True)
    with duckdb.connect(str(shop.path)) as connection:
        IvmEngine(connection).register_consumer("by_product", "reader")
    for number in (1001, 1002):
        shop.execute(f"INSERT INTO sales VALUES ({number}, 3, 500, 1)")
        shop.run()
    expected = [(3, before + 1, -1), (3, before + 2, 1), (3, before + 2, -1), (3, before + 3, 1)]
    assert shop.query(query)[-4:] == expected
    with duckdb.connect(str(shop.path)) as connection:
        IvmEngine(connection).unregister_consumer("by_product", "reader")
    assert shop.query("SELECT 1 FROM duckdb_tables() WHERE table_name = 'openivm_delta_by_product'") == []

"""Facts change the statements, and these stay exact where the facts hold; where they do not, that shows."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.unit.self_run import Row, World

Change = Callable[[World, random.Random], None]

T = {"t": {"k": "INTEGER", "x": "INTEGER"}}
TU = {**T, "u": {"k": "INTEGER", "y": "INTEGER"}}
SHOP = {
    "orders": {"id": "INTEGER", "customer": "INTEGER", "amount": "INTEGER"},
    "customers": {"id": "INTEGER", "region": "INTEGER", "name": "VARCHAR"},
    "regions": {"id": "INTEGER", "title": "VARCHAR"},
}
TO_CUSTOMERS = {
    "child_table": "orders", "child_columns": ["customer"], "parent_table": "customers", "parent_columns": ["id"],
    "rely": True,
}  # fmt: skip
TO_REGIONS = {
    "child_table": "customers", "child_columns": ["region"], "parent_table": "regions", "parent_columns": ["id"],
    "rely": True,
}  # fmt: skip


def kinds(world: World) -> list[str]:
    return [statement["kind"] for statement in world.answer["statements"] if statement["phase"] == "refresh"]


def text(world: World) -> str:
    return "\n".join(s["sql"] for s in world.answer["statements"] if s["phase"] == "refresh")


def reads(world: World, name: str) -> int:
    """How often the statements of the refresh read a table or log."""
    return len(re.findall(rf'"{name}" AS', text(world)))


def some(chance: random.Random, count: int) -> list[Row]:
    return [(chance.choice([1, 2, 3, None]), chance.choice([1, 2, 3, None])) for _ in range(count)]


def follow(world: World, change: Change, rounds: int = 4) -> None:
    chance = random.Random(3)
    for table, columns in world.schemas.items():
        if len(columns) == 2 and set(columns) & {"x", "y"}:
            world.fill(table, some(chance, 8))
    world.build()
    for _ in range(rounds):
        change(world, chance)
        world.refresh()


# --- shapes of deltas ------------------------------------------------------------------------------------------------


def inserting(world: World, chance: random.Random) -> None:
    for table in world.schemas:
        world.insert(table, *some(chance, 3))


INSERT_ONLY = {
    "rows": ("SELECT k, x FROM t WHERE x > 1", T),
    "groups": ("SELECT k, sum(x) AS s, max(x) AS m FROM t GROUP BY k", T),
    "join": ("SELECT t.k, x, y FROM t JOIN u ON t.k = u.k", TU),
    "joined groups": ("SELECT t.k, sum(y) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k", TU),
    "one row": ("SELECT count(*) AS n, min(x) AS m FROM t", T),
    "window": ("SELECT k, x, rank() OVER (PARTITION BY k ORDER BY x) AS r FROM t", T),
    "outer join": ("SELECT t.k, x, y FROM t LEFT JOIN u ON t.k = u.k", TU),
}


@pytest.mark.parametrize("name", INSERT_ONLY)
def test_assume_insert_only(name: str) -> None:
    query, schemas = INSERT_ONLY[name]
    general = World(query, schemas)
    world = World(query, schemas, {"assume_insert_only": True})
    follow(world, inserting)
    assert len(text(world)) < len(text(general)), "weights need not be added up"
    if name == "rows":
        assert kinds(world) == ["insert"]
    if name in ("groups", "one row"):
        assert "THEN DELETE" not in text(world)
        assert "openivm_multiplicity" not in text(world)
    if name == "groups":
        assert "THEN DELETE" in text(general)


def test_one_table_that_only_grows() -> None:
    query, schemas = INSERT_ONLY["joined groups"]
    world = World(query, schemas, {"delta_shape": {"t": "insert_only"}})

    def change(world: World, chance: random.Random) -> None:
        world.insert("t", *some(chance, 2))
        world.delete("u", *world.rows("u")[:2])
        world.insert("u", *some(chance, 2))

    follow(world, change)
    assert "delta is insert_only" in world.answer["statements"][0]["label"].replace("of t ", "")


@pytest.mark.parametrize("empty", ["t", "u"])
def test_an_empty_delta_drops_its_terms(empty: str) -> None:
    query = "SELECT t.k, x, y FROM t JOIN u ON t.k = u.k"
    general = World(query, TU)
    world = World(query, TU, {"delta_shape": {empty: "empty"}})
    other = "u" if empty == "t" else "t"

    def change(world: World, chance: random.Random) -> None:
        world.delete(other, *world.rows(other)[:1])
        world.insert(other, *some(chance, 2))

    follow(world, change)
    log = f"openivm_delta_{empty}"
    assert log in text(general)
    assert log not in text(world), "no term of its own, and nothing to undo in the terms of the other"


def test_all_deltas_empty() -> None:
    world = World("SELECT k, sum(x) AS s FROM t GROUP BY k", T, {"delta_shape": {"t": "empty"}})
    world.build()
    world.refresh()
    assert [s["phase"] for s in world.answer["statements"]] == ["check"]


def test_compile_only_keeps_the_terms_of_an_empty_delta() -> None:
    """The statements are for other deltas, too."""
    query = "SELECT t.k, x, y FROM t JOIN u ON t.k = u.k"
    given = {"delta_shape": {"t": "empty"}, "delta_stats": {"t": {"inserts": 10**6}}, "table_stats": {"t": {"rows": 1}}}
    world = World(query, TU, {**given, "table_stats": {"t": {"rows": 1}, "u": {"rows": 1}}, "compile_only": True})
    assert world.answer == World(query, TU).answer


@pytest.mark.parametrize(("shape", "row"), [("empty", 1), ("insert_only", -1), ("insert_only", 2)])
def test_a_delta_of_another_shape_is_noticed(shape: str, row: int) -> None:
    world = World("SELECT k, sum(x) AS s FROM t GROUP BY k", T, {"delta_shape": {"t": shape}})
    world.build()
    world.log("t", (1, 1), row)
    with pytest.raises(RuntimeError, match=f"check that the delta of t is {shape}: 1 instead of 0"):
        world.refresh()


# --- unique keys -----------------------------------------------------------------------------------------------------


def updating(world: World, chance: random.Random) -> None:
    """Each key at most once: rows come, go, and change."""
    for table in world.schemas:
        rows = world.rows(table)
        gone = [row for row in rows if chance.random() < 0.4]
        world.delete(table, *gone)
        taken = {row[0] for row in rows if row not in gone}
        free = [key for key in (1, 2, 3, 4, None) if key not in taken]
        for key in chance.sample(free, chance.randrange(len(free) + 1)):
            world.insert(table, (key, chance.choice([1, 2, None])))


KEYED = {
    "rows": ("SELECT x * 2 AS x2, k FROM t", T, {"t": [["K"]]}),
    "second key": ("SELECT x, k FROM t WHERE x > 1", T, {"t": [["x", "k"], ["k"]]}),
    "join": ("SELECT t.k AS a, u.k AS b, x, y FROM t JOIN u ON x = y", TU, {"t": [["k"]], "u": [["k"]]}),
    "exists": ("SELECT k, x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE y = x)", TU, {"t": [["k"]]}),
    "rowid": ('SELECT k, x AS "rowid" FROM t', T, {"t": [["k"]]}),
}


@pytest.mark.parametrize("name", KEYED)
def test_a_unique_key_makes_a_deletion_a_keyed_one(name: str) -> None:
    query, schemas, keys = KEYED[name]
    world = World(query, schemas, {"unique_keys": keys})
    world.build()
    chance = random.Random(name)
    for _ in range(6):
        updating(world, chance)
        world.refresh()
    deletions = [s["sql"] for s in world.answer["statements"] if s["kind"] == "delete" and s["phase"] == "refresh"]
    assert len(deletions) == 1
    assert "rowid" not in deletions[0]
    assert "USING" in deletions[0]
    columns = set(re.findall(r't\."(\w+)"', deletions[0]))
    assert columns == {"rows": {"k"}, "second key": {"x", "k"}, "join": {"a", "b"}}.get(name, {"k"})


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT x FROM t", {"t": [["k"]]}),
        ("SELECT k % 2 AS k, x FROM t", {"t": [["k"]]}),
        ("SELECT t.k, y FROM t JOIN u ON t.k = u.k", {"t": [["k"]]}),
        ("SELECT k, x FROM t UNION ALL SELECT k, y FROM u", {"t": [["k"]], "u": [["k"]]}),
    ],
)
def test_no_key_of_the_result(query: str, keys: Mapping[str, Any]) -> None:
    """The key is not shown, or rows stand several times for it."""
    schemas = TU if "u" in query.split() else T
    world = World(query, schemas, {"unique_keys": keys})
    assert world.answer["statements"] == World(query, schemas).answer["statements"]


def test_a_key_that_does_not_hold_is_noticed() -> None:
    world = World("SELECT k, x FROM t", T, {"unique_keys": {"t": [["k"]]}})
    world.fill("t", [(1, 1), (1, 2)])
    world.build()
    world.delete("t", (1, 1))
    with pytest.raises(RuntimeError, match="delete vanished rows: 2 instead of 1"):
        world.refresh()


# --- foreign keys ----------------------------------------------------------------------------------------------------


def trading(world: World, chance: random.Random) -> None:
    """New customers come, and orders for old and new ones come, go and change; some have no customer."""
    if "regions" in world.schemas:
        number = len(world.rows("regions"))
        world.insert("regions", (number, f"region {number}"))
        places: list[Any] = [row[0] for row in world.rows("regions")]
    else:
        places = [1, 2]
    known = len(world.rows("customers"))
    world.insert("customers", *((known + i, chance.choice([*places, None]), f"c{i}") for i in range(2)))
    customers = [row[0] for row in world.rows("customers")]
    if "orders" in world.schemas:
        rows = world.rows("orders")
        world.delete("orders", *chance.sample(rows, len(rows) // 3))
        number = chance.randrange(10**6)
        world.insert(
            "orders",
            (number, None, 1),
            *((number + i, chance.choice([*customers, None]), chance.randrange(5)) for i in range(1, 5)),
        )


REFERRING = {
    "join": "SELECT o.id, name FROM orders AS o JOIN customers AS c ON customer = c.id",
    "parent first": "SELECT o.id, name FROM customers AS c JOIN orders AS o ON c.id = customer",
    "groups": """
        SELECT name, sum(amount) AS s FROM orders AS o, customers AS c WHERE customer = c.id AND amount > 1
        GROUP BY name""",
    "filtered": """
        SELECT o.id, n FROM (SELECT id, customer AS f FROM orders WHERE amount > 1) AS o
        JOIN (SELECT id AS i, name AS n FROM customers WHERE region > 0) AS c ON f = i""",
    "chain": """
        SELECT o.id, name, title FROM orders AS o JOIN customers AS c ON customer = c.id
        JOIN regions AS r ON region = r.id""",
    "outer": "SELECT o.id, name FROM orders AS o LEFT JOIN customers AS c ON customer = c.id",
    "right": "SELECT o.id, name FROM customers AS c RIGHT JOIN orders AS o ON customer = c.id",
    "full outer": "SELECT o.id, name FROM orders AS o FULL JOIN customers AS c ON customer = c.id",
    "exists": """
        SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.id = customer AND region = 1)""",
    "not exists": "SELECT id FROM orders WHERE NOT EXISTS (SELECT 1 FROM customers AS c WHERE c.id = customer)",
    "itself": "SELECT a.id, b.name FROM customers AS a JOIN customers AS b ON a.region = b.id",
}
TO_ITSELF = {**TO_REGIONS, "parent_table": "customers"}


def referring(name: str) -> tuple[str, dict[str, dict[str, str]], list[dict[str, Any]]]:
    """Query, schemas, foreign keys."""
    query = REFERRING[name]
    tables = [table for table in SHOP if re.search(rf"\b{table}\b", query)]
    keys = [key for key in (TO_CUSTOMERS, TO_REGIONS) if {key["child_table"], key["parent_table"]} <= {*tables}]
    return query, {table: SHOP[table] for table in tables}, keys or [TO_ITSELF]


@pytest.mark.parametrize("name", REFERRING)
def test_a_foreign_key_to_a_parent_that_grows_drops_terms(name: str) -> None:
    query, schemas, relations = referring(name)
    shapes = {table: "insert_only" for table in schemas if table != "orders"}
    facts = {"delta_shape": shapes, "fk_relations": relations}
    world = World(query, schemas, facts)
    general = World(query, schemas, {"delta_shape": shapes})
    if name == "itself":
        world.fill("customers", [(0, 0, "c")])
    world.build()
    chance = random.Random(name)
    for _ in range(5):
        if name == "itself":
            known = len(world.rows("customers"))
            world.insert("customers", (known, chance.randrange(known + 1), "n"), (known + 1, known, "m"))
        else:
            trading(world, chance)
        world.refresh()
    assert world.con.execute("SELECT count(*) FROM view").fetchone() != (0,)
    assert len(text(world)) < len(text(general)) * 0.8
    if name in ("join", "parent first", "groups", "filtered"):
        assert reads(world, "openivm_delta_customers") == 0, "new customers concern new orders only"
        assert reads(general, "openivm_delta_customers") > 0


@pytest.mark.parametrize(
    "change",
    [
        {"fk_relations": [{**TO_CUSTOMERS, "rely": False}]},
        {"fk_relations": [{key: value for key, value in TO_CUSTOMERS.items() if key != "rely"}]},
        {"delta_shape": {"orders": "insert_only"}},
        {"fk_relations": [{**TO_CUSTOMERS, "parent_columns": ["region"]}]},
        {"fk_relations": [{**TO_CUSTOMERS, "child_columns": ["customer", "id"], "parent_columns": ["id", "region"]}]},
    ],
    ids=["not relied on", "nothing said", "the child grows", "another column", "half of the key"],
)
def test_a_foreign_key_that_says_nothing(change: dict[str, Any]) -> None:
    query, schemas, relations = referring("join")
    shapes = {"customers": "insert_only"}
    facts = {"delta_shape": shapes, "fk_relations": relations, **change}
    plain = {"delta_shape": facts["delta_shape"]}
    assert World(query, schemas, facts).answer == World(query, schemas, plain).answer


def test_a_foreign_key_of_another_type() -> None:
    """1 equals '1' and '01', which are two keys."""
    query, schemas, relations = referring("join")
    schemas["customers"] = {**schemas["customers"], "id": "VARCHAR"}
    shapes = {"customers": "insert_only"}
    plain = World(query, schemas, {"delta_shape": shapes})
    assert World(query, schemas, {"delta_shape": shapes, "fk_relations": relations}).answer == plain.answer


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name FROM customers AS c WHERE EXISTS (SELECT 1 FROM orders WHERE customer = c.id)",
        "SELECT name, o.id FROM customers AS c LEFT JOIN orders AS o ON customer = c.id",
        "SELECT o.id, name FROM orders AS o JOIN customers AS c ON customer IS NOT DISTINCT FROM c.id",
        "SELECT o.id, name FROM orders AS o JOIN customers AS c ON customer = c.id OR amount = region",
        "SELECT o.id, name FROM orders AS o JOIN customers AS c ON customer + 1 = c.id",
        "SELECT o.id, name FROM orders AS o JOIN (SELECT id + 1 AS i, name FROM customers) AS c ON customer = i",
        """
        SELECT f, n FROM (SELECT max(customer) AS f FROM orders GROUP BY amount) AS o,
            (SELECT id AS i, name AS n FROM customers) AS c WHERE f = i""",
    ],
)
def test_a_condition_that_is_not_the_foreign_key(query: str) -> None:
    _, schemas, relations = referring("join")
    shapes = {"customers": "insert_only"}
    world = World(query, schemas, {"delta_shape": shapes, "fk_relations": relations})
    assert world.answer == World(query, schemas, {"delta_shape": shapes}).answer
    world.build()
    chance = random.Random(6)
    for _ in range(3):
        trading(world, chance)
        world.refresh()


def test_a_shared_join_keeps_the_conditions_of_its_readers_apart() -> None:
    """Both readers filter one product; only one of the filters equates the foreign key."""
    query = (
        "WITH p AS (SELECT o.id AS oid, customer, c.id AS cid FROM orders AS o, customers AS c) "
        "SELECT oid, cid FROM p WHERE customer = cid UNION ALL SELECT oid, cid FROM p WHERE customer < cid"
    )
    _, schemas, relations = referring("join")
    world = World(query, schemas, {"delta_shape": {"customers": "insert_only"}, "fk_relations": relations})
    world.build()
    chance = random.Random(5)
    for _ in range(4):
        trading(world, chance)
        world.refresh()


# --- statistics ------------------------------------------------------------------------------------------------------


def test_statistics_choose_a_recompute() -> None:
    query = "SELECT k, sum(x) AS s FROM t GROUP BY k"
    large = {"table_stats": {"t": {"rows": 20_000}}, "delta_stats": {"t": {"inserts": 9_000, "deletes": 1_000}}}
    world = World(query, T, {**large, "force_view_delta_cascade": True})
    assert world.answer["strategy"] == "full"
    assert world.answer["refresh_type"]["name"] == "AGGREGATE_GROUP"
    assert world.answer["reason"] == ("10,000 changes to 20,000 source rows: recomputing is cheaper than applying them")
    assert "create table" in kinds(world)
    assert "merge" not in kinds(world)

    def change(world: World, chance: random.Random) -> None:
        world.delete("t", *world.rows("t")[:3])
        world.insert("t", *some(chance, 4))

    follow(world, change)
    assert world.con.execute("SELECT count(*) FROM openivm_delta_view").fetchone() != (0,)
    for less in ({"table_stats": {"t": {"rows": 2_000_000}}}, {"delta_stats": {"t": {"inserts": 9_999}}}):
        assert World(query, T, {**large, **less}).answer["strategy"] == "incremental"
    assert World(query, T, {"delta_stats": large["delta_stats"]}).answer["strategy"] == "incremental", "size unknown"


def test_a_recompute_of_nested_nodes_is_exact() -> None:
    query = "SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n"
    world = World(query, T, {"table_stats": {"t": {"rows": 1}}, "delta_stats": {"t": {"inserts": 10_000}}})
    follow(world, inserting)
    assert world.answer["strategy"] == "full"


def test_column_statistics_are_advisory() -> None:
    query = "SELECT k, sum(x) AS s FROM t GROUP BY k"
    stats = {"column_stats": {"t": {"k": {"distinct": 3, "nulls": 0}}}}
    assert World(query, T, stats).answer == World(query, T).answer

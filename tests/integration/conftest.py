from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.project import Project

SALES = "SELECT i AS id, i % 7 AS product, i * 10 AS price, nullif(i, i // 5 * 5) AS quantity FROM range({}) r(i)"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """An empty project."""
    project = Project(tmp_path / "project")
    yield project
    project.close()


@pytest.fixture
def shop(project: Project) -> Project:
    """A project with a source of 100 sales and 7 products, and a view of each kind on it."""
    project.execute(
        f"CREATE TABLE sales AS {SALES.format(100)}",
        "CREATE TABLE products AS SELECT i AS product, 'p' || i AS name FROM range(7) r(i)",
    )
    project.sources("sales", "products")
    project.model("clean", "select id, product, price, quantity from {{ source('src', 'sales') }} where price > 50")
    project.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"))
    return project


BY_PRODUCT = "select product, count(*) as n, sum(price) as total, avg(quantity) as quantity from {} group by product"

"""The process is killed between apply and commit: all or nothing, and the next run carries on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.conftest import BY_PRODUCT
from tests.integration.project import Project

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ENDLESS = "select count(*) from range(1000000) a, range(1000000) b where hash(a.range + b.range) = 7"
QUERY = BY_PRODUCT.format("(SELECT * FROM sales WHERE price > 50)")


def test_kill_before_commit(shop: Project) -> None:
    shop.run()
    before = shop.rows("by_product")
    shop.execute("INSERT INTO sales VALUES (1000, 3, 500, 1)", "DELETE FROM sales WHERE id = 60")
    shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"), post_hook=ENDLESS)
    shop.close()
    kill_in_the_hook(shop.folder)

    assert shop.rows("by_product") == before
    shop.model("by_product", BY_PRODUCT.format("{{ ref('clean') }}"))
    assert shop.run().strategy("by_product") == "incremental"
    shop.assert_equal("by_product", QUERY)


def kill_in_the_hook(folder: Path) -> None:
    dbt = Path(sys.executable).with_name("dbt")
    process = subprocess.Popen([str(dbt), "run"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = folder / "logs/dbt.log"
    deadline = time.monotonic() + 60
    try:
        while ENDLESS not in (log.read_text() if log.exists() else ""):
            assert process.poll() is None, "dbt ended by itself"
            assert time.monotonic() < deadline, "dbt never reached the hook"
            time.sleep(0.05)
        time.sleep(0.3)
    finally:
        process.kill()
        process.wait()

"""What differs between the suites: which rows belong together, which column a new row needs a value of its own in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """One benchmark.

    Attributes:
        wholes: what is inserted and deleted as a whole: (table, key) pairs that share a key, such as an order's rows.
        keys: the column in which a copied row gets a new value, for tables that are in no whole.
        kept: columns that no update touches: a scalar subquery of some query would find several rows.
        guards: which rows of a table may be copied, for the same reason.
    """

    name: str
    title: str
    scale_factor: float
    rounds: int
    wholes: tuple[tuple[tuple[str, str], ...], ...]
    keys: Mapping[str, str]
    kept: frozenset[str] = field(default_factory=frozenset)
    guards: Mapping[str, str] = field(default_factory=dict)


TPCH = Suite(
    name="tpch",
    title="TPC-H",
    scale_factor=0.1,
    rounds=10,
    wholes=(
        (("orders", "o_orderkey"), ("lineitem", "l_orderkey")),
        (("part", "p_partkey"), ("partsupp", "ps_partkey")),
    ),
    keys={"customer": "c_custkey", "supplier": "s_suppkey", "nation": "n_nationkey", "region": "r_regionkey"},
)

TPCDS = Suite(
    name="tpcds",
    title="TPC-DS",
    scale_factor=0.1,
    rounds=3,
    wholes=(
        (("store_sales", "ss_ticket_number"), ("store_returns", "sr_ticket_number")),
        (("catalog_sales", "cs_order_number"), ("catalog_returns", "cr_order_number")),
        (("web_sales", "ws_order_number"), ("web_returns", "wr_order_number")),
    ),
    keys={
        "call_center": "cc_call_center_sk",
        "catalog_page": "cp_catalog_page_sk",
        "customer": "c_customer_sk",
        "customer_address": "ca_address_sk",
        "customer_demographics": "cd_demo_sk",
        "date_dim": "d_date_sk",
        "household_demographics": "hd_demo_sk",
        "income_band": "ib_income_band_sk",
        "item": "i_item_sk",
        "promotion": "p_promo_sk",
        "reason": "r_reason_sk",
        "ship_mode": "sm_ship_mode_sk",
        "store": "s_store_sk",
        "time_dim": "t_time_sk",
        "warehouse": "w_warehouse_sk",
        "web_page": "wp_web_page_sk",
        "web_site": "web_site_sk",
    },
    kept=frozenset({"d_date", "d_year", "d_moy", "d_dom", "d_month_seq", "d_week_seq"}),
    # q14 asks for the week of an 11th, q58 for that of a 3rd
    guards={"date_dim": "d_dom NOT IN (3, 11)"},
)

SUITES = {suite.name: suite for suite in (TPCH, TPCDS)}

"""Run the answers of `compile_with_facts` as the documentation tells people to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbt_openivm.names import parse_name, quote

Runner = Callable[[Any, Sequence[Mapping[str, Any]]], int]


def documented_runner(page: Path) -> Runner:
    """The function `run` of a page: what it tells people to do is what the tests do."""
    scope: dict[str, Any] = {}
    [block] = re.findall(r"```python\n(def run\(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec(block, scope)
    runner: Runner = scope["run"]
    return runner


def sql(label: str) -> str:
    """A name of an answer as SQL."""
    return ".".join(map(quote, parse_name(label) or []))

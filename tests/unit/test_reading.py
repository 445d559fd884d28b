"""What the parser of queries needs of the sqlglot that is installed."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_openivm.compiler.lower import reading
from dbt_openivm.errors import ConfigError


class Compiled:
    """Answers like a class that inherits from one which mypyc compiled."""

    def __init__(self, **_arguments: Any) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")


def test_a_compiled_sqlglot_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "Parser", Compiled)
    with pytest.raises(ConfigError, match=r"pip uninstall sqlglotc"):
        reading.statements("SELECT 1")

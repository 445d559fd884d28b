"""Incremental view maintenance for dbt on DuckDB.

dbt imports every installed `dbt_*` module, so this one imports nothing: the public names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt_openivm.__version__ import version as __version__

if TYPE_CHECKING:
    from dbt_openivm.engine.engine import IvmEngine as IvmEngine
    from dbt_openivm.engine.types import RefreshResult as RefreshResult
    from dbt_openivm.engine.types import ViewInfo as ViewInfo
    from dbt_openivm.engine.with_facts import compile_with_facts as compile_with_facts

_PUBLIC = {
    "IvmEngine": "dbt_openivm.engine.engine",
    "RefreshResult": "dbt_openivm.engine.types",
    "ViewInfo": "dbt_openivm.engine.types",
    "compile_with_facts": "dbt_openivm.engine.with_facts",
}

__all__ = ["IvmEngine", "RefreshResult", "ViewInfo", "__version__", "compile_with_facts"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        from importlib import import_module

        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'dbt_openivm' has no attribute '{name}'")

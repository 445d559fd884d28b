from __future__ import annotations

from dbt_openivm.__version__ import version

__all__ = ["version"]

"""Where dbt looks the adapter up: a profile of `type: openivm` imports this module and reads `Plugin`."""

from __future__ import annotations

from pathlib import Path

from dbt.adapters.base import AdapterPlugin

from dbt_openivm.adapter.credentials import OpenIvmCredentials
from dbt_openivm.adapter.impl import OpenIvmAdapter


def include_path() -> Path:
    """Where `dbt_project.yml` and `macros/` are: in the wheel, else in the checkout, where an edit is seen at once."""
    import dbt_openivm

    packages = Path(dbt_openivm.__file__).parent.parent
    installed = packages / "dbt" / "include" / "openivm"
    return installed if installed.is_dir() else packages


Plugin = AdapterPlugin(
    adapter=OpenIvmAdapter,
    credentials=OpenIvmCredentials,
    include_path=str(include_path()),
    dependencies=["duckdb"],
    project_name="dbt_openivm",
)

"""From SQL text to the operator tree: parse, resolve names, normalise SQL's many spellings."""

from __future__ import annotations

from dbt_openivm.compiler.lower.query import Lowering as Lowering
from dbt_openivm.compiler.lower.query import lower as lower

"""The captures by their name in a configuration."""

from __future__ import annotations

from dbt_openivm.engine.capture.base import Capture
from dbt_openivm.engine.capture.diff import DiffCapture
from dbt_openivm.engine.capture.trigger import TriggerCapture

KINDS: dict[str, type[Capture]] = {kind.kind: kind for kind in (DiffCapture, TriggerCapture)}

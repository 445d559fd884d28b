from __future__ import annotations

version = "0.1.0"

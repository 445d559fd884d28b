"""Validation under `--empty` and `--sample`: a model reads its parents' queries of now, not what was built of them.

Such a run leaves maintained views alone, so a column that a parent has newly got is not in the database yet. In its
place the models below read a temporary view over the parent's limited query.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Context = Mapping[str, Any]


@dataclass(frozen=True)
class Validated:
    """A model of this invocation: how others write its name, the name of its stand-in, its query, what it reads."""

    rendered: str
    stand_in: str
    query: str
    reads: tuple[str, ...]


class Limited:
    """The models that an invocation has validated, by their unique ids, parents first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._invocation: str | None = None
        self._models: dict[str, Validated] = {}

    def read(self, context: Context) -> tuple[list[str], str]:
        """The statements that create the stand-ins which a model's query reads, and the query over them."""
        node = context["model"]
        needed = self._needed(context["invocation_id"], tuple(node["depends_on"]["nodes"]))
        statements = [
            f"create or replace temporary view {model.stand_in} as (\n{over(model.query, needed)}\n)"
            for model in needed
        ]
        return statements, over(node["compiled_code"], needed)

    def note(self, context: Context) -> None:
        """Let the models below read this one's query."""
        node = context["model"]
        with self._lock:
            stand_in = f'"openivm_validated_{len(self._models) + 1}"'
            self._models[node["unique_id"]] = Validated(
                str(context["this"]), stand_in, node["compiled_code"], tuple(node["depends_on"]["nodes"])
            )

    def _needed(self, invocation: str, reads: tuple[str, ...]) -> list[Validated]:
        with self._lock:
            if self._invocation != invocation:
                self._invocation, self._models = invocation, {}
            wanted: set[str] = set()
            pending = list(reads)
            while pending:
                name = pending.pop()
                if name in self._models and name not in wanted:
                    wanted.add(name)
                    pending.extend(self._models[name].reads)
            return [model for name, model in self._models.items() if name in wanted]


def over(query: str, models: list[Validated]) -> str:
    """A query that reads the stand-ins of models in place of their relations.

    Example:
        >>> p = Validated('"db"."main"."p"', '"openivm_validated_1"', "select 1 as k", ())
        >>> over('select k from "db"."main"."p" where "db"."main"."p"."k" > 0', [p])
        'select k from temp."openivm_validated_1" where temp."openivm_validated_1"."k" > 0'
    """
    for model in models:
        query = re.sub(rf'(?<![\w".]){re.escape(model.rendered)}(?![\w"])', f"temp.{model.stand_in}", query)
    return query

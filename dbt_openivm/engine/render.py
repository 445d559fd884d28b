"""Render the SQL templates of macros/ with jinja2, exactly as dbt renders them inside a run.

The templates are plain Jinja. dbt's `adapter.dispatch` and `return` are the only names of dbt's context they use, and
both are replaced here by a few lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from dbt_openivm.errors import InternalError

Renderer = Callable[[str, Mapping[str, Any]], str]
"""(macro name, arguments) -> SQL text of one statement."""

DUCKDB = "duckdb"
DISPATCH_PREFIXES = ("openivm__", "default__")
"""In this order; those of another dialect come before them, as ``postgres__``."""


class Step:
    """Arguments of a step macro. Reading one that is not there raises: Jinja would render it as nothing."""

    def __init__(self, macro: str, values: Mapping[str, Any]) -> None:
        self._macro = macro
        self._values = dict(values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise InternalError(f"The macro {self._macro} reads the unknown argument '{name}'.") from None

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def macro_root() -> Path:
    """The folder of the templates: in a wheel beside the adapter's include path, in a checkout at its root."""
    import dbt_openivm

    package = Path(dbt_openivm.__file__).parent
    candidates = (package.parent / "dbt" / "include" / "openivm" / "macros", package.parent / "macros")
    for candidate in candidates:
        if (candidate / "steps").is_dir():
            return candidate
    raise InternalError(f"The SQL templates of dbt-openivm were found in none of {', '.join(map(str, candidates))}.")


def template_files() -> Iterator[Path]:
    for folder in ("steps", "capture"):
        yield from sorted((macro_root() / folder).glob("**/*.sql"))


class _Adapter:
    """Stands in for dbt's `adapter` inside the templates: only `dispatch`."""

    def __init__(self, macros: Mapping[str, Any], prefixes: tuple[str, ...]) -> None:
        self._macros = macros
        self._prefixes = prefixes

    def dispatch(self, name: str, _namespace: str = "dbt") -> Any:
        for prefix in self._prefixes:
            if prefix + name in self._macros:
                return self._macros[prefix + name]
        raise InternalError(f"No implementation of the macro {name} was found.")


@lru_cache
def _macros(dialect: str) -> dict[str, Any]:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        extensions=["jinja2.ext.do"],
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # the output is SQL, not HTML; identifiers and literals are quoted where they are made
    )
    macros: dict[str, Any] = {}
    environment.globals["adapter"] = _Adapter(macros, (f"{dialect}__", *DISPATCH_PREFIXES))
    environment.globals["return"] = lambda value: value
    source = "\n".join(path.read_text(encoding="utf-8") for path in template_files())
    module = environment.from_string(source).module
    macros.update({name: value for name, value in vars(module).items() if not name.startswith("_")})
    return macros


def render(macro: str, arguments: Mapping[str, Any], dialect: str = DUCKDB) -> str:
    """Render one step macro with jinja2.

    Args:
        macro: name of a macro in macros/steps or macros/capture.
        arguments: what the macro reads as attributes of its one parameter, `step`.
        dialect: of the statement; where it has an implementation of its own, that is taken.

    Raises:
        InternalError: the macro does not exist, or reads an argument that is not there.
    """
    try:
        function = _macros(dialect)[macro]
    except KeyError:
        raise InternalError(f"No macro named {macro} in {macro_root()}.") from None
    return str(function(Step(macro, arguments))).strip()

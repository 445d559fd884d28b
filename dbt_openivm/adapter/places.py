"""Where in a model's file a line of its compiled SQL comes from: a reason names the line that its author sees."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LINE = re.compile(r"at line (\d+)(?! of the (?:view|macro))")
JINJA = re.compile(r"(\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\})")


def locator(node: Mapping[str, Any], root: str | None) -> Callable[[str], str]:
    """A function that puts the place in a model's file for ``at line N`` of its compiled SQL.

    A line that cannot be told from others, such as one that a loop wrote, is named as what it is: a line of the
    compiled SQL, with the file that holds it.

    Args:
        root: of the project; a model of an installed package lies elsewhere.
    """

    def place(found: re.Match[str]) -> str:
        number = source_line(int(found[1]), node["compiled_code"], source_text(node, root))
        if number is not None:
            return f"at {node['original_file_path']}:{number}"
        return f"at line {found[1]} of {node.get('compiled_path') or 'its compiled SQL'}"

    return lambda text: LINE.sub(place, text)


def source_text(node: Mapping[str, Any], root: str | None) -> str:
    """The model's file: dbt strips the code that it keeps, and with it the count of lines."""
    code = str(node.get("raw_code") or "")
    try:
        text = Path(root or "", node["original_file_path"]).read_text(encoding="utf-8")
    except OSError:
        return code
    return text if code and code in text else code


def source_line(number: int, compiled: str, source: str) -> int | None:
    """The line of `source` that line `number` of `compiled` was rendered from; None if that is not clear.

    Example:
        >>> source_line(2, "select a,\\n  random()\\nfrom t", "{# why #}\\nselect a,\\n  random()\\nfrom {{ x }}")
        3
    """
    lines = compiled.splitlines()
    wanted = lines[number - 1].strip() if number <= len(lines) else ""
    found = [index for index, line in enumerate(source.splitlines(), 1) if wanted and renders(line.strip(), wanted)]
    if len(found) > 1 and number in found and len(lines) == len(source.splitlines()):
        return number
    return found[0] if len(found) == 1 else None


def renders(line: str, compiled: str) -> bool:
    """Whether a line of a template could have been rendered to a line of SQL; Jinja alone tells nothing."""
    parts = JINJA.split(line)
    if not any(part.strip() for part in parts[::2]):
        return False
    pattern = "".join(
        ".*" if part.startswith("{{") else "" if JINJA.fullmatch(part) else re.escape(part) for part in parts
    )
    return re.fullmatch(pattern.strip(), compiled) is not None

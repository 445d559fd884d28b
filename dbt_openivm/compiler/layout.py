"""Lay text out for people: lines that fit a terminal, SQL that reads well and can still be run."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import cache

from sqlglot.dialects.dialect import Dialect

WIDTH = 100
"""Lines for people are no longer than this, names and texts that cannot be broken apart."""

RESERVED = frozenset(
    (
        "analyse asymmetric at authorization both cast check collation columns concurrently deferrable do freeze "
        "generated initially lambda leading overlay pivot_longer placing position symmetric trailing try_cast tuple "
        "unpack variadic verbose"
    )
    .upper()
    .split()
)
"""Keywords of DuckDB that sqlglot has no token for."""

_PIECES = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\s+|[^\s'"]+""")
_PLAIN = re.compile(r'"([a-z_][a-z0-9_]*)"')


def wrapped(text: str, indent: str = "", hanging: str = "  ") -> list[str]:
    """The words of a text as lines behind `indent`; those after the first go `hanging` further."""
    return textwrap.wrap(
        " ".join(text.split()),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def readable(sql: str) -> str:
    """SQL without the quotes that its plain names do not need."""

    def bare(piece: str) -> str:
        found = _PLAIN.fullmatch(piece)
        return piece if found is None or found[1].upper() in keywords() else found[1]

    return "".join(map(bare, _PIECES.findall(sql)))


@cache
def keywords() -> frozenset[str]:
    """Every word that may need quotes as a name, in upper case."""
    known = Dialect.get_or_raise("duckdb").tokenizer_class.KEYWORDS
    return RESERVED | {word for phrase in known for word in phrase.upper().split()}


def wrapped_sql(sql: str) -> list[str]:
    """SQL whose long lines are broken where there is white space outside of quotes, so that it means the same."""
    return [part for line in readable(sql).splitlines() for part in _broken(line)]


def _broken(line: str) -> Iterator[str]:
    """The parts of one line; a line within a text or comment that goes over several is left alone."""
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) <= WIDTH or "--" in line or line.count("'") % 2 or line.count('"') % 2:
        yield line
        return
    current = indent
    for word in _words(line.strip()):
        if current.strip() and len(current) + 1 + len(word) > WIDTH:
            yield current
            current = f"{indent}    {word}"
        else:
            current = f"{current} {word}" if current.strip() else f"{indent}{word}"
    yield current


def _words(line: str) -> list[str]:
    words = [""]
    for piece in _PIECES.findall(line):
        if piece.isspace():
            words.append("")
        else:
            words[-1] += piece
    return words

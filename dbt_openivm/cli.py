"""The command line: ``dbt-openivm compile [query.sql] --facts facts.json``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dbt_openivm.errors import ConfigError, OpenIvmError


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the answer as JSON and return 0; a message on standard error and 1 where there is none."""
    options = parser().parse_args(arguments)
    from dbt_openivm.engine.with_facts import compile_with_facts

    try:
        query = read(options.query)
        facts = json.loads(read(options.facts), object_pairs_hook=once)
        answer = compile_with_facts(query, facts)
    except json.JSONDecodeError as error:
        return refuse(f"{options.facts}: no JSON: {error}")
    except (OpenIvmError, OSError, UnicodeDecodeError) as error:
        return refuse(str(error))
    sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="dbt-openivm", description="Incremental view maintenance on DuckDB.")
    commands = top.add_subparsers(dest="command", required=True)
    compile_ = commands.add_parser("compile", help="print the statements of a view's refresh, as JSON")
    compile_.add_argument("query", nargs="?", default="-", help="a file with one SELECT; - is standard input")
    compile_.add_argument("--facts", required=True, help="a JSON file; see docs/compile-with-facts.md")
    return top


def read(path: str) -> str:
    return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, which would keep the last of two fields of one name."""
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError("\n".join(f"facts: the field {name} stands twice in one object" for name in twice))
    return dict(pairs)


def refuse(message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())

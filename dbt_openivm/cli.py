"""The command line: ``dbt-openivm compile [query.sql] --facts facts.json``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from dbt_openivm.errors import OpenIvmError


def main() -> int:
    """Print the answer as JSON; 1 and a message where there is none."""
    parser = argparse.ArgumentParser(prog="dbt-openivm")
    compile_ = parser.add_subparsers(dest="command", required=True).add_parser("compile", help="compile with facts")
    compile_.add_argument("query", nargs="?", default="-", help="a file of SQL; - is standard input")
    compile_.add_argument("--facts", required=True, help="a JSON file")
    options = parser.parse_args()
    from dbt_openivm.engine.with_facts import compile_with_facts

    try:
        query = sys.stdin.read() if options.query == "-" else Path(options.query).read_text(encoding="utf-8")
        facts = json.loads(Path(options.facts).read_text(encoding="utf-8"))
        if not isinstance(facts, dict):
            raise ValueError("facts: expected an object")
        answer = compile_with_facts(query, facts)
    except (OpenIvmError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""`make tpc`: every query of TPC-H and TPC-DS as a view, compared with its query after each round of changes.

A round inserts, updates and deletes rows of every table. The exit code is 1 if a view was wrong or failed. Times are
medians in milliseconds; "moved" counts the rounds in which the view's rows changed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import duckdb

from benchmarks.tpc import report, tools
from benchmarks.tpc.run import Options, Run
from benchmarks.tpc.suites import SUITES, Suite


def main() -> int:
    """Run the suites, print, and return 1 if a view was wrong."""
    arguments = _arguments()
    wrong = False
    for name in arguments.suites or SUITES:
        wrong |= _suite(SUITES[name], arguments)
    return 1 if wrong else 0


def _suite(suite: Suite, arguments: argparse.Namespace) -> bool:
    """Run one suite and print its tables; whether anything was wrong."""
    options = Options(
        scale_factor=arguments.scale_factor or suite.scale_factor,
        rounds=suite.rounds if arguments.rounds is None else arguments.rounds,
        queries=arguments.queries,
        seed=arguments.seed,
        capture=arguments.capture,
        mode=arguments.mode,
        chained=arguments.chained,
        timeout=arguments.timeout,
        workdir=arguments.workdir,
    )
    seen = Run(suite, options).all()
    print(
        f"\n## {suite.title}, scale factor {options.scale_factor:g}, {options.rounds} rounds, "
        f"{options.capture} capture, DuckDB {duckdb.__version__}, seed {options.seed}\n"
    )
    print(report.queries(seen))
    for heading, text in (("Full refreshes", report.reasons(seen)), ("Problems", report.problems(seen))):
        if text:
            print(f"\n{heading}:\n\n{text}")
    print(f"\n{report.summary(suite.title, seen)}", flush=True)
    return any(one.problems for one in seen)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tpc", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Options(0, 0)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--scale-factor", type=float, help="default: that of the suite")
    parser.add_argument("--rounds", type=int, help="default: that of the suite")
    parser.add_argument("--queries", type=_numbers, help="such as 1,3,20-22 (default: all)")
    parser.add_argument("--seed", type=int, default=default.seed, help="of the changes")
    parser.add_argument("--capture", default=default.capture, help="diff or trigger")
    parser.add_argument("--mode", default=default.mode, help="the engine's refresh_mode")
    parser.add_argument("--chained", action="store_true", help="a view over each view, to check the published changes")
    parser.add_argument("--timeout", type=float, default=default.timeout, help="seconds for a query in a round")
    parser.add_argument("--workdir", type=Path, default=tools.WORKDIR, help="where generators and data are kept")
    arguments = parser.parse_args()
    unknown = set(arguments.suites) - SUITES.keys()
    if unknown:
        parser.error(f"unknown suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    return arguments


def _numbers(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


if __name__ == "__main__":
    sys.exit(main())

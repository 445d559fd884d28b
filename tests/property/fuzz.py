"""The fuzzer's command line.

    python -m tests.property.fuzz --seconds 60 --seed 1 --jobs 2
    python -m tests.property.fuzz --seed 4711 --cases 1        (one case again)

Case number n of a run has the seed `--seed` + n, so any failure can be run alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.property.case import Case
from tests.property.checks import Failure
from tests.property.generate import generate
from tests.property.runner import Report, run_case
from tests.property.script import script
from tests.property.shrink import Shrinker

DEFAULT_CASES = 1_000_000


@dataclass(frozen=True)
class Options:
    seconds: float
    seed: int
    cases: int
    jobs: int
    capture: str | None
    shrink_seconds: float
    keep_going: bool
    out: Path


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    started = time.monotonic()
    total, cases, failures = Report(), 0, 0
    try:
        for seed, report, found in _outcomes(options):
            cases += 1
            total.add(report)
            if found:
                failures += 1
                print(found, flush=True)
                if not options.keep_going:
                    break
            if cases % 50 == 0:
                _progress(started, cases, seed, total, failures)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    _summary(time.monotonic() - started, cases, total, failures)
    return 1 if failures else 0


def _options(arguments: list[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m tests.property.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="stop drawing new cases after so many seconds")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case")
    parser.add_argument("--cases", type=int, default=DEFAULT_CASES, help="at most so many cases")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--capture", choices=("diff", "trigger"), help="use this capture in every case")
    parser.add_argument("--shrink-seconds", type=float, default=60, help="seconds spent on making a failure small")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    parser.add_argument("--out", type=Path, help="folder for the scripts of failures")
    given = vars(parser.parse_args(arguments))
    given["out"] = given["out"] or Path(tempfile.gettempdir()) / "openivm-fuzz"
    return Options(**given)


# -- one case -------------------------------------------------------------------------------------------------------


def fuzz_one(seed: int, options: Options) -> tuple[int, Report, str | None]:
    """Run the case of one seed; a text for people where it failed."""
    case = generate(seed, capture=options.capture)
    try:
        report = run_case(case)
    except Exception:
        return seed, Report(), f"seed {seed}: the fuzzer itself failed\n{traceback.format_exc()}"
    if report.failure is None:
        return seed, report, None
    return seed, report, _explain(case, report.failure, options)


def _explain(case: Case, failure: Failure, options: Options) -> str:
    """Shrink the case, write its script, and say where it stands."""
    if options.shrink_seconds > 0:
        case, failure = Shrinker(failure, seconds=options.shrink_seconds).shrink(case)
    source = script(case, failure)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"fail_{case.seed}.py"
    path.write_text(source, encoding="utf-8")
    rule = "=" * 100
    return f"{rule}\nseed {case.seed}: {failure}\n{rule}\n{source}\n{rule}\nwritten to {path}"


# -- many cases -----------------------------------------------------------------------------------------------------


def _outcomes(options: Options) -> Iterator[tuple[int, Report, str | None]]:
    deadline = time.monotonic() + options.seconds
    if options.jobs == 1:
        for seed in _seeds(options, deadline):
            yield fuzz_one(seed, options)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs) as pool:
        work = ((seed, options) for seed in _seeds(options, deadline))
        pending = []
        for task in work:
            pending.append(pool.apply_async(fuzz_one, task))
            # a short queue, so that the run ends when its time is up
            while len(pending) >= 2 * options.jobs:
                yield pending.pop(0).get()
        for result in pending:
            yield result.get()


def _seeds(options: Options, deadline: float) -> Iterator[int]:
    for number in range(options.cases):
        if time.monotonic() > deadline:
            return
        yield options.seed + number


# -- output ---------------------------------------------------------------------------------------------------------


def _progress(started: float, cases: int, seed: int, total: Report, failures: int) -> None:
    seconds = time.monotonic() - started
    refreshes = sum(total.refreshes.values())
    print(f"{seconds:6.0f} s  {cases} cases (seed {seed})  {refreshes} refreshes  {failures} failures", flush=True)


def _summary(seconds: float, cases: int, total: Report, failures: int) -> None:
    print(f"{cases} cases, {sum(total.refreshes.values())} refreshes, {failures} failures in {seconds:.0f} s")
    print(f"{total.errors} refreshes failed because the query itself failed, and kept the old state")
    for title, counts in (
        ("views by refresh type", total.views),
        ("refreshes by refresh type", total.refreshes),
        ("refreshes by strategy", total.strategies),
        ("why views were FULL_REFRESH", total.full),
        ("constructs", total.features),
    ):
        print(f"{title}:")
        for name, count in counts.most_common():
            print(f"  {count:7d}  {name}")


if __name__ == "__main__":
    sys.exit(main())

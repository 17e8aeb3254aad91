"""`python -m bench SUITE [--json] [--quick]`: progress on standard error, results on standard output."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from bench import report
from bench.report import Result
from bench.suites import attention, conv, elementwise, matmul, norms, train
from bench.suites import compile as compile_suite

SUITES = {
    "matmul": matmul.run,
    "train": train.run,
    "conv": conv.run,
    "norms": norms.run,
    "elementwise": elementwise.run,
    "attention": attention.run,
    "compile": compile_suite.run,
}


def run(suite: str, quick: bool) -> Iterator[Result]:
    for name in SUITES if suite == "all" else [suite]:
        yield from SUITES[name](quick)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run polygrad beside its peers.")
    parser.add_argument("suite", choices=[*SUITES, "all"])
    parser.add_argument("--json", action="store_true", help="one JSON object per line instead of a table")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    arguments = parser.parse_args()
    results = []
    for result in run(arguments.suite, arguments.quick):
        results.append(result)
        if arguments.json:
            print(result.json(), flush=True)
    if not arguments.json:
        print(report.table(results))


if __name__ == "__main__":
    main()

"""`python -m bench SUITE [--json] [--quick]`: progress on standard error, results on standard output."""

from __future__ import annotations

import argparse

from bench import report
from bench.suites import compile as compile_suite

SUITES = {"compile": compile_suite.run}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run polygrad beside its peers.")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--json", action="store_true", help="one JSON object per line instead of a table")
    parser.add_argument("--quick", action="store_true", help="measure every case once")
    arguments = parser.parse_args()
    results = []
    for result in SUITES[arguments.suite](arguments.quick):
        results.append(result)
        if arguments.json:
            print(result.json(), flush=True)
    if not arguments.json:
        print(report.table(results))


if __name__ == "__main__":
    main()

"""`python -m bench SUITE [--json] [--quick]`: progress on standard error, results on standard output.

`python -m bench breadth --only REGEX --host HOST --device DEVICE --threads N` runs some of its rows,
`python -m bench gpu --part cuda` those that need an NVIDIA GPU, with `--small` on sizes that only show that
they run, as `python -m bench distributed --small` does, and `python -m bench models --host chromium` those in
the page. The suite onnx has `--host` and `--only`.
"""

from __future__ import annotations

import argparse
import functools

from bench import report, results
from bench.hosts import CHROMIUM, CPYTHON, NODE
from bench.suites import (
    attention,
    breadth,
    c_export,
    c_library,
    conv,
    distributed,
    elementwise,
    gpu,
    matmul,
    models,
    norms,
    onnx,
    overhead,
    page_models,
    startup,
    train,
)
from bench.suites import compile as compile_suite

SUITES = {
    "matmul": matmul.run,
    "train": train.run,
    "conv": conv.run,
    "norms": norms.run,
    "elementwise": elementwise.run,
    "attention": attention.run,
    "compile": compile_suite.run,
    "startup": startup.run,
    "overhead": overhead.run,
    "c_export": c_export.run,
    "libpolygrad": c_library.run,
    "breadth": breadth.run,
    "onnx": onnx.run,
    "models": page_models.run_everywhere,
    "gpu": gpu.run,
    "distributed": distributed.run,
}
# Of the options that choose rows, those that a suite has.
CHOICES = {
    "breadth": ("only", "host", "device", "threads"),
    "models": ("host",),
    "onnx": ("only", "host"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run polygrad beside its peers.")
    parser.add_argument("suite", choices=[*SUITES, "all"])
    parser.add_argument("--json", action="store_true", help="one JSON object per line instead of a table")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument(
        "--save",
        action="store_true",
        help="update bench/results, bench/pictures and the tables of RESULTS.md",
    )
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="breadth, onnx: the rows with such a name"
    )
    parser.add_argument("--host", choices=breadth.HOSTS, help="breadth, models, onnx: the rows of one host")
    parser.add_argument("--device", choices=breadth.PEERS, help="breadth: the rows of one device")
    parser.add_argument("--threads", type=int, choices=(1, 2), help="breadth: the rows with so many threads")
    parser.add_argument(
        "--part", default="all", choices=("all", "page", "cuda"), help="gpu: some of its rows"
    )
    parser.add_argument(
        "--small", action="store_true", help="distributed, gpu: the rows on CUDA: on small sizes"
    )
    arguments = parser.parse_args()
    chosen = {name: getattr(arguments, name) for name in ("only", "host", "device", "threads")}
    given = [name for name, value in chosen.items() if value]
    if not set(given) <= set(CHOICES.get(arguments.suite, ())):
        parser.error(
            f"{', '.join(f'--{name}' for name in given)}: expected a suite that has all of these: "
            + "; ".join(f"{suite}: {', '.join(names)}" for suite, names in CHOICES.items())
        )
    if arguments.host == NODE and arguments.suite != "breadth":
        parser.error(f"--host: expected {CPYTHON} or {CHROMIUM} for the suite {arguments.suite}, got {NODE}")
    if arguments.suite == "onnx" and arguments.only and arguments.save:
        parser.error("--save: expected no --only for the suite onnx, whose mean is of all rows")
    of_gpu = arguments.suite == "gpu" and (arguments.part != "all" or arguments.small)
    if arguments.part != "all" and arguments.suite != "gpu":
        parser.error("--part: expected the suite gpu")
    if arguments.small and arguments.suite not in ("distributed", "gpu"):
        parser.error("--small: expected the suite distributed or gpu")
    if arguments.small and arguments.save:
        parser.error("--small: expected no --save, as its figures mean nothing")
    runs = SUITES | {
        "breadth": functools.partial(breadth.run, **chosen),
        "models": functools.partial(page_models.run_everywhere, host=arguments.host),
        "onnx": functools.partial(onnx.run, only=arguments.only, host=arguments.host),
        "gpu": functools.partial(gpu.run, part=arguments.part, small=arguments.small),
        "distributed": functools.partial(
            distributed.run,
            small=arguments.small,
            picture=distributed.PICTURE if arguments.save else None,
        ),
    }
    for suite in SUITES if arguments.suite == "all" else [arguments.suite]:
        found = []
        for result in runs[suite](arguments.quick):
            found.append(result)
            if arguments.json:
                print(result.json(), flush=True)
        if not arguments.json:
            print(f"\n{suite}\n\n{report.table(found)}", flush=True)
        if arguments.save:
            if given:
                renew = breadth.renewed if suite == "breadth" else results.with_hosts_of
                found = renew(results.kept(suite), found)
            elif of_gpu:
                found = gpu.renewed(results.kept(suite), found)
            results.save(suite, found)
            if suite == "models":
                models.draw(found)


if __name__ == "__main__":
    main()

"""ONNX models beside onnxruntime: float32 and int8, one thread and two; natively in batches of 1 and 8, in a
page beside onnxruntime-web. Natively also from the file to the first result.

A first result comes from a process of its own, with a cache of kernels that is empty, and with one that an
earlier process has filled. Its figure is the *least* of several processes, for both runtimes alike: whatever
else the machine does only adds time. It is judged as the other rows are.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bench.contest import ROOT, Case, Contest, Figures, check_numbers
from bench.goals import at_most_times
from bench.hosts import CPYTHON, DEVICES, TIMEOUT, Unavailable, peer_python
from bench.report import Result
from bench.suites.onnx_rows import (
    NATIVE,
    PLACES,
    TABLE,
    Model,
    Place,
    case_of,
    cases,
    unavailable,
    with_file,
)

COLD, CACHED = "nothing compiled", "compiled before"
GOALS = {COLD: at_most_times(1.5, NATIVE.peer), CACHED: at_most_times(1.0, NATIVE.peer)}
ROUNDS = 3


def run(quick: bool, only: str = "", host: str | None = None) -> Iterator[Result]:
    """The rows of both hosts, or of one. `only`: those whose names this regular expression finds."""
    for place in PLACES.values():
        if host in (None, place.host):
            yield from rows(quick, only, place)
    if host in (None, CPYTHON):
        yield from first_results(quick, only)


def rows(quick: bool, only: str, place: Place) -> Iterator[Result]:
    """Every row of a host, and the geometric mean of their ratios. `only`: the rows whose names this regular
    expression finds; there is no mean of them."""
    ratios: list[float] = []
    with Contest("onnx", quick) as contest:
        for model, dtype, case in cases(place, quick):
            if not re.search(only, case.name):
                continue
            try:
                result = contest.measure(with_file(case, model, dtype))
            except Unavailable as reason:
                result = unavailable(case, str(reason))
            if result.ratio is not None:
                ratios.append(result.ratio)
            yield result
    if not only:
        yield mean_of(ratios, place)


def mean_of(ratios: list[float], place: Place) -> Result:
    """How many times as fast as its peer ours is, over all rows of a host."""
    value = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    met = value is not None and value >= place.mean
    return Result("onnx", f"geometric mean ({len(ratios)})", place.host, DEVICES[place.host], value, "×",
                  "higher", f"≥ {place.mean:g}", met)  # fmt: skip


# --- from the file to the first result


def first_case(model: Model, words: str) -> Case:
    return replace(
        case_of(model, "float32", NATIVE), name=f"{model.name}: first result, {words}", goals=(GOALS[words],)
    )


def first_results(quick: bool, only: str) -> Iterator[Result]:
    """Both rows of every model. `only`: those whose names this regular expression finds."""
    with Contest("onnx", quick) as contest:
        for model in TABLE:
            wanted = [words for words in GOALS if re.search(only, first_case(model, words).name)]
            yield from of_model(contest, model, wanted, 1 if quick else ROUNDS)


def of_model(contest: Contest, model: Model, wanted: list[str], rounds: int) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="polygrad-bench-") as folder:
        filled = f"{folder}/filled"
        for words in wanted:
            case = first_case(model, words)
            try:
                case = with_file(case, model, "float32")
                if words == CACHED:
                    first("polygrad", case, filled)
            except Unavailable as reason:
                yield unavailable(case, str(reason))
                continue
            caches = [filled if words == CACHED else f"{folder}/{i}" for i in range(rounds)]
            yield _measured(contest, case, caches)


def _measured(contest: Contest, case: Case, caches: list[str]) -> Result:
    """The least of as many processes of each runtime as there are caches, in turn."""
    found: dict[str, float] = {}
    skipped: dict[str, str] = {}
    for cache in caches:
        for library in ("polygrad", *case.peers):
            if library in skipped:
                continue
            try:
                answer = first(library, case, cache)
                expected = contest.reference(case.kind, case.sizes, case.device, case.judge)
                check_numbers(answer["check"], expected, case.tolerance_of(library))
            except Unavailable as reason:
                skipped[library] = str(reason)
                found.pop(library, None)
                continue
            found[library] = min(found.get(library, float("inf")), answer["value"] * 1e3)
    value = found.pop("polygrad", None)
    (goal,) = case.goals
    met = value is not None and goal.met(Figures(value, found, {}))
    return Result("onnx", case.name, case.host, case.device, value, "ms", "lower", goal.words, met,
                  peers=found, skipped=skipped)  # fmt: skip


def first(library: str, case: Case, cache: str) -> dict[str, Any]:
    """What `bench.onnx_first` answers, with one thread. Raises Unavailable."""
    python = sys.executable if library == "polygrad" else str(peer_python())
    command = [
        python,
        "-m",
        "bench.onnx_first",
        library,
        case.sizes["path"],
        json.dumps(case.sizes["inputs"]),
    ]
    environment = os.environ | {
        "DEVICE": "CPU",
        "PYTHONPATH": str(ROOT),
        "POLYGRAD_CACHE": cache,
        "POLYGRAD_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        raise Unavailable(done.stderr.strip().splitlines()[-1])
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer

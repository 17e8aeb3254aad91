"""One library in one process: `python -m bench.worker LIBRARY`, a JSON request a line on standard input.

`{"op": "prepare", "slot", "kind", "sizes"}` -> `{"check": [...], "threads"}`, and what was in the slot goes;
`{"op": "sample", "slot", "seconds", "clock"}` -> `{"value": seconds per step}`;
`{"op": "drop", "slot"}` -> `{}`, and what was in the slot goes;
`{"op": "host", "slot"}` -> `{"value": seconds until a step is handed over}`; what fails answers
`{"error": text}`.
How many threads may be used, the environment says.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import sys
import time
from typing import Any

from bench.libraries import language
from bench.libraries.shapes import Program, sample

HOST_STEPS = 20
CLOCKS = {"wall": time.perf_counter, "process": time.process_time}


def maker(library: str) -> Any:
    """`make(kind, sizes)` of a library."""
    if library == "numpy":
        from bench.libraries import with_numpy

        return with_numpy.make
    if library == "peak":
        from bench.libraries import with_peak

        return with_peak.make
    if library == "llama.cpp":
        from bench.libraries import with_llama

        return with_llama.make
    if library.startswith("torch"):
        from bench.libraries import with_torch

        with_torch.torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        return lambda kind, sizes: (
            language_in_torch(library, kind, sizes)
            if kind in language.KINDS
            else with_torch.make(kind, sizes, library == "torch-compile")
        )
    from bench.libraries import inputs, language_polygrad, onnx_polygrad, with_onnx, with_tensor

    if library.startswith("onnxruntime"):
        return functools.partial(with_onnx.in_onnxruntime, optimized=library != "onnxruntime-as-written")
    importlib.import_module(f"{library}.nn")
    tensors = with_tensor.Maker(importlib.import_module(library), inputs.uniform)

    def make(kind: str, sizes: dict[str, Any]) -> Program:
        if kind in (*language.KINDS, "read"):
            return language_polygrad.make(kind, sizes, tensors.finish)
        if kind == onnx_polygrad.KIND:
            return onnx_polygrad.make(sizes, tensors.operand, tensors.finish)
        return tensors.make(kind, sizes)

    return make


def language_in_torch(library: str, kind: str, sizes: dict[str, Any]) -> Program:
    """Imported late: the other suites do not need transformers."""
    from bench.libraries import language_torch

    return language_torch.make(kind, sizes, library == "torch-float32")


def host_seconds(program: Program) -> float:
    """How long a step takes until it has been handed to the device: the quickest of some."""
    found = []
    for _ in range(HOST_STEPS):
        start = time.perf_counter()
        program.step()
        found.append(time.perf_counter() - start)
        program.finish()
    return min(found)


def main(library: str) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    make = maker(library)
    programs: dict[str, Program] = {}
    for line in sys.stdin:
        request = json.loads(line)
        slot = request["slot"]
        try:
            if request["op"] == "prepare":
                programs.pop(slot, None)
                program = programs[slot] = make(request["kind"], request["sizes"])
                answer: dict[str, Any] = {"check": program.check(), "threads": program.threads}
                del program
            elif request["op"] == "drop":
                programs.pop(slot, None)
                gc.collect()  # a captured step and its model refer to each other
                answer = {}
            elif request["op"] == "host":
                answer = {"value": host_seconds(programs[slot])}
            else:
                clock = CLOCKS[request.get("clock", "wall")]
                answer = {"value": sample(programs[slot], request["seconds"], clock)}
        except Exception as error:  # reported as the reason why it was skipped
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

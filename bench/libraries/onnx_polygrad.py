"""polygrad on an ONNX file, as a captured forward. Also read inside Pyodide: no numpy.

Inputs are Tensors that are there; a step ends when the outputs are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.libraries.language_polygrad import numbers
from bench.libraries.shapes import Program

KIND = "onnx"


def make(
    sizes: dict[str, Any], operand: Callable[[int, dict[str, Any]], Any], finish: Callable[[], Any]
) -> Program:
    """The model of `path` on `inputs` by name: each a number, a list of numbers, or what `operand` makes of a
    seed and a spec. `finish` waits for what was started."""
    from polygrad import TinyJit, get_num_threads, onnx

    model = onnx.load(sizes["path"])
    # What is a number is the same at each step: shapes may depend on it.
    whole = {name: spec for name, spec in sizes["inputs"].items() if not isinstance(spec, dict)}
    given = {
        name: operand(seed, spec)
        for seed, (name, spec) in enumerate(sizes["inputs"].items(), 1)
        if name not in whole
    }
    forward = TinyJit(lambda inputs: list(model.forward({**inputs, **whole}).values()), prune=True)

    def check() -> list[float]:
        """All outputs; then the Program of a step is captured."""
        for _ in range(3):
            out = forward(given)
        return [x for y in out for x in numbers(y)]

    return Program(lambda: forward(given), check, finish, get_num_threads())

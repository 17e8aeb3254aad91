"""Compare polygrad's unoptimised kernels with those that tinygrad made of the same programs
(tinygrad_c2be31e.json).

Every case runs through the public Tensor API with optimisation off and the passes of any other program.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polygrad import Tensor
from polygrad.codegen.lower.passes import lower
from polygrad.engine.devices import Device
from polygrad.engine.normalize import normalize
from polygrad.uop.node import UOp
from tests.schedules import schedule

DATA = Path(__file__).parent / "tinygrad_c2be31e.json"
TOLERANCE = 1e-5
STRUCTURE = ("RANGE", "END", "REDUCE", "STORE", "LOAD", "INDEX", "AFTER", "DEFINE_REG")


def load_cases() -> dict[str, dict[str, Any]]:
    """The recorded programs by name."""
    return {case["name"]: case for case in json.loads(DATA.read_text())["cases"]}


# Where the recorded sequence is plainly worse than ours. Values and kernel counts still have to agree.
DIVERGENCES = {
    "reduce_max_1d": "MAX is one op here, which passes NaN on; recorded are CMPLT and WHERE, which drop it",
    "cross_entropy_nonlast_axis": "MAX as above; LOG2 takes fewer ops; the one-hot sum is a load, not a loop",
}


@dataclass
class Result:
    """What agreed, in the order it is compared; `why` says what differed."""

    name: str
    values: bool = False
    kernels: bool = False
    structure: bool = False
    sequence: bool = False
    why: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        exact = self.structure and self.sequence
        return self.values and self.kernels and (exact or self.name in DIVERGENCES)


def outputs_of(case: dict[str, Any]) -> list[Tensor]:
    """The program's outputs (or the gradients it asks for), not yet computed, over realized inputs."""
    names: dict[str, Any] = {}
    for name, spec in case["inputs"].items():
        data = Tensor(spec["data"], dtype=spec["dtype"]).reshape(tuple(spec["shape"]))
        if name in case["grad"]:
            data.requires_grad = True
        names[name] = data.realize()
    for name, text in case["let"].items():
        names[name] = eval(text, {}, names)
    outputs = [eval(text, {}, names) for text in case["out"]]
    if not case["grad"]:
        return outputs
    return [g.contiguous() for g in outputs[0].gradient(*[names[n] for n in case["grad"]])]


def kernels_of(outputs: list[Tensor]) -> list[list[UOp]]:
    """The unoptimised linear form of every kernel of the outputs' schedule."""
    target = Device.backend("CPU").target
    sink = normalize(UOp.sink(*[t.uop.base for t in outputs])).sink
    return [lower(call.ast, target, optimized=False) for call in schedule(sink).calls]


def names_of(linear: list[UOp]) -> list[str]:
    """Op names in linear order."""
    return [u.op.name for u in linear]


def loop_depth(names: list[str]) -> int:
    depth = deepest = 0
    for n in names:
        depth += (n == "RANGE") - (n == "END")
        deepest = max(deepest, depth)
    return deepest


def structure_of(names: list[str]) -> dict[str, int]:
    """Counts of the ops that make a kernel's shape, and its loop depth."""
    count = Counter(names)
    return {**{op: count[op] for op in STRUCTURE}, "depth": loop_depth(names)}


def compare(case: dict[str, Any]) -> Result:
    """Values, kernel count, structure and op sequence of one case."""
    result = Result(case["name"])
    outputs = outputs_of(case)
    ours = [names_of(k) for k in kernels_of(outputs)]
    result.values = all(_close(t, want, result) for t, want in zip(outputs, case["values"], strict=True))
    theirs = case["kernels"]
    result.kernels = len(ours) == len(theirs)
    if not result.kernels:
        result.why.append(f"kernels: expected {len(theirs)}, got {len(ours)}")
        return result
    result.structure = result.sequence = True
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        shape_a, shape_b = structure_of(a), structure_of(b)
        if shape_a != shape_b:
            result.structure = False
            differ = [
                f"{k}: expected {shape_b[k]}, got {shape_a[k]}" for k in shape_a if shape_a[k] != shape_b[k]
            ]
            result.why.append(f"kernel {i}: {'; '.join(differ)}")
        if a != b:
            result.sequence = False
            result.why.append(
                f"kernel {i}: expected {len(b)} ops, got {len(a)}; first difference at {_first(a, b)}"
            )
    return result


def _first(a: list[str], b: list[str]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


def _close(tensor: Tensor, want: dict[str, Any], result: Result) -> bool:
    got = _flat(tensor.tolist())
    if tensor.dtype != want["dtype"] or list(tensor.shape) != want["shape"]:
        result.why.append(
            f"value: expected {want['dtype']} {want['shape']}, got {tensor.dtype} {list(tensor.shape)}"
        )
        return False
    for x, y in zip(got, want["data"], strict=True):
        y = float(y) if y is not None else math.nan
        if not (x == y or abs(x - y) <= TOLERANCE + TOLERANCE * abs(y) or (x != x and y != y)):
            result.why.append(f"value: expected {y}, got {x}")
            return False
    return True


def _flat(x: Any) -> list[Any]:
    return [z for y in x for z in _flat(y)] if isinstance(x, list) else [x]

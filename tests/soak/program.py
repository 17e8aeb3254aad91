"""A program: random inputs, steps on them, and outputs; as JSON, on torch, and on Tensors.

A step is text: what `OPERATIONS` drew, of `x`, a value made before, and `y`, `z`, inputs.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from soak.operations import Input, draw, size

VERSION = 2  # of the generator: a seed makes the same program in each process of a version
MOST_ELEMENTS = 120_000
NAMES = {"torch": torch, "F": F, "math": math}


@dataclass(frozen=True)
class Step:
    """`ours` and `theirs` (empty: the same) of value number `x` and inputs `inputs`."""

    operation: str
    ours: str
    theirs: str
    x: int
    inputs: tuple[int, ...] = ()
    rough: bool = False
    differentiable: bool = True


@dataclass(frozen=True)
class Program:
    """Values are numbered: first those inputs that steps go from (`roots`), then the steps'."""

    seed: int
    inputs: tuple[Input, ...]
    roots: tuple[int, ...]  # the inputs that are values
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    version: int = VERSION

    def dumps(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def loads(text: str) -> Program:
        d = json.loads(text)
        inputs = tuple(Input(**{**i, "shape": tuple(i["shape"])}) for i in d["inputs"])
        steps = tuple(Step(**{**s, "inputs": tuple(s["inputs"])}) for s in d["steps"])
        return Program(d["seed"], inputs, tuple(d["roots"]), steps, tuple(d["outputs"]), d["version"])

    @property
    def rough(self) -> bool:
        return any(s.rough for s in self.steps)

    @property
    def differentiable(self) -> bool:
        return all(s.differentiable for s in self.steps)

    @property
    def features(self) -> set[str]:
        """What is new about a program: pairs of operations of which one reads the other."""
        made = dict.fromkeys(range(len(self.roots)), "input")
        pairs = set()
        for i, s in enumerate(self.steps):
            made[len(self.roots) + i] = s.operation
            pairs.add(f"{made[s.x]} -> {s.operation}")
        return pairs

    def arrays(self, salt: int = 0) -> list[np.ndarray]:
        """The inputs' elements, from the seed."""
        out = []
        for i, spec in enumerate(self.inputs):
            rng = np.random.default_rng((self.seed, i, salt))
            if spec.below:
                out.append(rng.integers(0, spec.below, spec.shape).astype(np.int32))
            else:
                out.append((rng.normal(size=spec.shape) * spec.scale).astype(np.float32))
        return out

    def evaluate(self, inputs: list[Any], names: dict[str, Any], ours: bool, after: Any = None) -> list[Any]:
        """The outputs. `after` is called with each step's value, and may return another in its place."""
        values = [inputs[i] for i in self.roots]
        for s in self.steps:
            scope = {
                **names,
                "x": values[s.x],
                **dict(zip("yz", (inputs[i] for i in s.inputs), strict=False)),
            }
            value = eval(s.ours if ours or not s.theirs else s.theirs, scope)
            values.append(value if after is None else after(value))
        return [values[i] for i in self.outputs]


def generate(seed: int, most_steps: int = 7) -> Program:
    """The program of a seed."""
    random = Random(seed)
    inputs: list[Input] = []
    values: list[Any] = []
    roots: list[int] = []
    for _ in range(random.choice((1, 1, 2))):
        inputs.append(Input(first_shape(random)))
        roots.append(len(inputs) - 1)
        values.append(torch.zeros(inputs[-1].shape))
    steps: list[Step] = []
    wanted = random.randint(1, most_steps)
    for _ in range(wanted * 6):
        if len(steps) == wanted:
            break
        at = len(values) - 1 if random.random() < 0.75 else random.randrange(len(values))
        found = draw(random, values[at])
        if found is None:
            continue
        name, drawn = found
        scope = {**NAMES, "x": values[at]}
        fresh = [torch.zeros(i.shape, dtype=torch.int32 if i.below else torch.float32) for i in drawn.inputs]
        scope.update(zip("yz", fresh, strict=False))
        try:
            value = eval(drawn.theirs or drawn.ours, scope)
        except RuntimeError:  # torch refuses it: an image that would be empty
            continue
        if not 0 < value.numel() <= MOST_ELEMENTS or value.ndim > 5:
            continue
        numbers = tuple(range(len(inputs), len(inputs) + len(drawn.inputs)))
        inputs += drawn.inputs
        steps.append(Step(name, drawn.ours, drawn.theirs, at, numbers, drawn.rough, drawn.differentiable))
        values.append(value)
    outputs = {len(values) - 1}
    while random.random() < 0.3:
        outputs.add(random.randrange(len(roots), len(values)) if steps else 0)
    return Program(seed, tuple(inputs), tuple(roots), tuple(steps), tuple(sorted(outputs)))


def first_shape(random: Random) -> tuple[int, ...]:
    """Vectors, matrices, batches of matrices, images."""
    while True:
        kind = random.randrange(4)
        shape = {
            0: lambda: (size(random, 5000),),
            1: lambda: (size(random), size(random)),
            2: lambda: (size(random, 12), size(random, 100), size(random, 100)),
            3: lambda: (size(random, 4), size(random, 32), size(random, 40), size(random, 40)),
        }[kind]()
        if math.prod(shape) <= MOST_ELEMENTS // 2:
            return shape

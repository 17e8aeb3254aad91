"""Random valid ONNX graphs of 5 to 40 nodes, with inputs: what `test_random_graphs.py` compares.

A `Maker` adds a node at a time to the values that are there. Each value is known by its shape, its dtype,
the largest magnitude that it may have, and whether it is *exact*: made of small whole numbers by operations
without rounding. Only exact values go into operations that jump (Floor, comparisons, ArgMax, sorting): two
right implementations may differ in the last bit of any other.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

LARGEST = 3000  # elements of a value
EXACT = 1e5  # whole numbers of at most this magnitude are exact after any operation
WIDE = 1e4  # of other floats
OPSET = 21


@dataclass(frozen=True)
class Known:
    """What is known of a value."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    most: float
    exact: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return math.prod(self.shape)


@dataclass
class Made:
    """A model, and arrays for its inputs."""

    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]


RULES: list[tuple[Callable[[Maker], None], int]] = []


def rule(weight: int = 1) -> Callable[[Callable[[Maker], None]], Callable[[Maker], None]]:
    def register(function: Callable[[Maker], None]) -> Callable[[Maker], None]:
        RULES.append((function, weight))
        return function

    return register


class Unfit(Exception):
    """A rule finds no values that it can take."""


@dataclass
class Maker:
    rng: random.Random
    values: list[Known] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    # --- values

    def pick(self, fits: Callable[[Known], bool]) -> Known:
        """A value that fits, late ones more often. Raises Unfit."""
        found = [v for v in self.values if fits(v)]
        if not found:
            raise Unfit
        return found[max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))]

    def floats(self, rank: int = 0, dtypes: tuple[str, ...] = ("float32",), most: float = WIDE) -> Known:
        return self.pick(lambda v: v.dtype in dtypes and v.rank >= rank and v.most <= most and v.count > 0)

    def array(self, shape: tuple[int, ...], dtype: str, whole: bool) -> np.ndarray:
        state = np.random.default_rng(self.rng.randrange(1 << 30))
        if dtype == "bool":
            return state.integers(0, 2, shape).astype(bool)
        if whole or not dtype.startswith("float"):
            return state.integers(0 if dtype == "uint8" else -4, 5, shape).astype(dtype)
        return state.uniform(-2, 2, shape).astype(dtype)

    def input(self) -> None:
        """Another input of the graph."""
        dtype = self.rng.choice(["float32"] * 6 + ["float64", "int64", "int32", "bool"])
        shape = tuple(
            [self.rng.choice([1, 2, 3, 4, 5]) for _ in range(self.rng.choice([1, 2, 2, 3, 3, 4, 4]))]
        )
        whole, name = self.rng.random() < 0.5 or not dtype.startswith("float"), f"x{len(self.inputs)}"
        self.inputs[name] = self.array(shape, dtype, whole)
        self.values.append(Known(name, dtype, shape, 4, whole))

    def constant(self, value: Any, dtype: str = "int64") -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def random_constant(self, shape: tuple[int, ...], dtype: str = "float32", whole: bool = False) -> str:
        return self.constant(self.array(shape, dtype, whole), dtype)

    def add(
        self,
        op: str,
        inputs: list[str],
        *results: tuple[str, tuple[int, ...], float, bool],
        **attributes: Any,
    ) -> None:
        """A node whose outputs have these dtypes, shapes, magnitudes and exactness. Raises Unfit."""
        for dtype, shape, most, exact in results:
            limit = EXACT if exact else WIDE
            if math.prod(shape) > LARGEST or len(shape) > 6 or (most > limit and dtype != "bool"):
                raise Unfit
        names = [f"v{len(self.values) + i}" for i in range(len(results))]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"n{len(self.nodes)}", **attributes))
        self.values += [Known(n, *result) for n, result in zip(names, results)]

    # --- the graph

    def make(self, count: int) -> Made:
        for _ in range(self.rng.randint(1, 4)):
            self.input()
        rules, weights = zip(*RULES)
        while len(self.nodes) < count:
            with contextlib.suppress(Unfit):
                self.rng.choices(rules, weights)[0](self)
        used = {name for node in self.nodes for name in node.input}
        constants = [c for c in self.constants if c.name in used]
        made = [v for v in self.values if v.name not in self.inputs]
        outputs = [v for v in made if v.name not in used or self.rng.random() < 0.1]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [
                helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                for n, x in self.inputs.items()
            ],
            [
                helper.make_tensor_value_info(
                    v.name, helper.np_dtype_to_tensor_dtype(np.dtype(v.dtype)), v.shape
                )
                for v in outputs
            ],
            initializer=constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        return Made(model, self.inputs)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise Unfit from None

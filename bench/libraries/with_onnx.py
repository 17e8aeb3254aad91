"""A model file in polygrad, as a captured forward, and in onnxruntime: the same inputs, the same numbers.

Inputs are Tensors and arrays that are there; a step ends when the outputs are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.libraries.inputs import numbers, operand
from bench.libraries.language import sentences_of
from bench.libraries.shapes import Program

KIND = "onnx"


def arrays(inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    """The inputs by name: each a number, or a spec of `operand`."""
    return {
        name: operand(seed, spec) if isinstance(spec, dict) else np.array(spec)
        for seed, (name, spec) in enumerate(inputs.items(), 1)
    }


def in_onnxruntime(kind: str, sizes: dict[str, Any], optimized: bool = True) -> Program:
    """`optimized`: what it does by default. Of int8 models it then rounds elsewhere than the file says."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    options.inter_op_num_threads, options.log_severity_level = 1, 3
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    is_encoder = kind == "embed"
    path = f"{sizes['path']}/model.onnx" if is_encoder else sizes["path"]
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    if is_encoder:
        given = {"ids": np.array(sentences_of(sizes["sentences"], sizes["tokens"]), np.int64)}
    else:
        given = arrays(sizes["inputs"])

    def step() -> list[Any]:
        return session.run(None, given)

    return Program(step, lambda: _numbers(step()), threads=options.intra_op_num_threads)


def in_polygrad(finish: Callable[[], Any]) -> Callable[[str, dict[str, Any]], Program]:
    """`make` for polygrad; `finish` waits for what was started."""

    def make(kind: str, sizes: dict[str, Any]) -> Program:
        from polygrad import Tensor, TinyJit, onnx

        model = onnx.load(sizes["path"])
        # What is a number is the same at each step: shapes may depend on it.
        whole = {name: spec for name, spec in sizes["inputs"].items() if not isinstance(spec, dict)}
        given = {n: Tensor(x).clone().realize() for n, x in arrays(sizes["inputs"]).items() if n not in whole}
        forward = TinyJit(lambda inputs: list(model.forward({**inputs, **whole}).values()), prune=True)
        for _ in range(2):
            forward(given)
        return Program(lambda: forward(given), lambda: _numbers([y.numpy() for y in forward(given)]), finish)

    return make


def _numbers(outputs: list[Any]) -> list[float]:
    return [x for y in outputs for x in numbers(np.asarray(y, np.float32))]

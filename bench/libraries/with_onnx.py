"""A model file in onnxruntime: the same inputs and numbers as `onnx_polygrad` has.

Inputs are arrays that are there; a step ends when the outputs are.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from bench.libraries.inputs import numbers, operand
from bench.libraries.language import sentences_of
from bench.libraries.shapes import Program


def arrays(inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    """The inputs by name: each a number, or a spec of `operand`."""
    return {
        name: operand(seed, spec) if isinstance(spec, dict) else np.array(spec)
        for seed, (name, spec) in enumerate(inputs.items(), 1)
    }


def in_onnxruntime(kind: str, sizes: dict[str, Any], optimized: bool = True) -> Program:
    """`optimized`: what it does by default. Of int8 models it then rounds elsewhere than the file says."""
    import onnxruntime

    from bench.libraries import language_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    options.inter_op_num_threads, options.log_severity_level = 1, 3
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if kind == "decode":
        return language_onnx.decode(sizes, options)
    is_encoder = kind == "embed"
    path = f"{sizes['path']}/model.onnx" if is_encoder else sizes["path"]
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    if is_encoder:
        given = {"ids": np.array(sentences_of(sizes["sentences"], sizes["tokens"]), np.int64)}
    else:
        given = arrays(sizes["inputs"])

    def step() -> list[Any]:
        return session.run(None, given)

    return Program(step, lambda: numbers_of(step()), threads=options.intra_op_num_threads)


def numbers_of(outputs: list[Any]) -> list[float]:
    """What is compared of all outputs."""
    return [x for y in outputs for x in numbers(np.asarray(y, np.float32))]

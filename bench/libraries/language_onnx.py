"""onnxruntime on a decoder that `bench/onnx_decoders.py` wrote: the next token.

Inputs and outputs are bound once. The past and the present of a layer are one buffer, as in onnxruntime's own
loop for language models, so a step writes one token's keys and values and copies no others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime

from bench.libraries.inputs import numbers
from bench.libraries.language import tokens_of
from bench.libraries.shapes import Program

PAST, PRESENT = "past_key_values.", "present."


class Session:
    """A model and buffers for one sequence of `capacity` tokens."""

    def __init__(self, folder: str, capacity: int, options: onnxruntime.SessionOptions) -> None:
        path, providers = f"{folder}/onnx/model.onnx", ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(path, options, providers=providers)
        self._inputs = {x.name: x.shape for x in self._session.get_inputs()}
        self._vocabulary = self._session.get_outputs()[0].shape[-1]
        self._past = {
            name: _value(np.zeros((1, heads, capacity, size), np.float32))
            for name, (_, heads, _, size) in self._of_layers().items()
        }

    def _of_layers(self) -> dict[str, Any]:
        return {name: shape for name, shape in self._inputs.items() if name.startswith(PAST)}

    def bind(self, tokens: list[int], seen: int) -> tuple[Any, np.ndarray]:
        """A run over `tokens` behind `seen` others, to be passed to `run`; the memory of its scores, float32
        (1, tokens, vocabulary)."""
        total = seen + len(tokens)
        values = {
            "input_ids": np.array([tokens]),
            "attention_mask": np.ones((1, total), np.int64),
            "position_ids": np.arange(seen, total)[None],
        }
        binding = self._session.io_binding()
        for name in self._inputs:
            binding.bind_ortvalue_input(name, self._past.get(name) or _value(values[name]))
        for name, value in self._past.items():
            binding.bind_ortvalue_output(PRESENT + name.removeprefix(PAST), value)
        scores = np.empty((1, len(tokens), self._vocabulary), np.float32)
        binding.bind_ortvalue_output("logits", _value(scores))
        return binding, scores

    def run(self, binding: Any) -> None:
        self._session.run_with_iobinding(binding)


def _value(array: np.ndarray) -> onnxruntime.OrtValue:
    """Of the array's own memory."""
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def decode(sizes: dict[str, Any], options: onnxruntime.SessionOptions) -> Program:
    """See `bench.libraries.language`; the folder is `sizes["onnx"]`."""
    count = sizes["tokens"]
    *prompt, last = tokens_of(count)
    session = Session(sizes["onnx"], count + 1, options)
    if prompt:
        binding, _ = session.bind(prompt, 0)
        session.run(binding)
    binding, scores = session.bind([last], len(prompt))

    def step() -> int:
        session.run(binding)
        return int(scores.argmax())

    def check() -> list[float]:
        step()
        return numbers(scores)

    return Program(step, check, threads=options.intra_op_num_threads)

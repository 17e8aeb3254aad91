"""Makes an int8 model of a float32 one, by onnxruntime's own tools, in the peers' environment:

    python -m bench.onnx_quantized SOURCE TARGET INPUTS

Weights and activations are 8 bits, with QuantizeLinear and DequantizeLinear around each operation (QDQ), and
scales from three random inputs. INPUTS is JSON, as `with_onnx.arrays` reads it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quant_pre_process,
    quantize_static,
)

from bench.libraries.with_onnx import arrays

ROUNDS = 3


class Readings(CalibrationDataReader):
    def __init__(self, inputs: dict[str, Any]) -> None:
        self._rounds: Iterator[Any] = iter([arrays(inputs)] * ROUNDS)

    def get_next(self) -> Any:
        return next(self._rounds, None)


def main(source: str, target: str, inputs: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        prepared = os.path.join(folder, "prepared.onnx")
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            target,
            Readings(json.loads(inputs)),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["Conv", "MatMul", "Gemm", "Add", "Mul", "Relu", "MaxPool"],
        )


if __name__ == "__main__":
    main(*sys.argv[1:])

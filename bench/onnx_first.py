"""From an ONNX file to the first result, in a process of its own:

    python -m bench.onnx_first LIBRARY PATH INPUTS

LIBRARY is polygrad or onnxruntime; INPUTS is JSON, as `with_onnx.arrays` reads it. The clock starts where the
library is imported with its native code: onnxruntime's import loads that, polygrad's device does.
The last line printed is JSON: `value`, the seconds from the file to outputs that are there, and `check`, what
is compared of these.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from bench.libraries.with_onnx import arrays, numbers_of

Found = tuple[float, list[Any]]


def polygrad_first(path: str, given: dict[str, Any]) -> Found:
    from polygrad import Device, Tensor, onnx

    assert Device[Device.DEFAULT]
    start = time.perf_counter()
    outputs = onnx.load(path).forward(given).values()
    Tensor.realize(*outputs)
    found = [y.numpy() for y in outputs]
    return time.perf_counter() - start, found


def onnxruntime_first(path: str, given: dict[str, Any]) -> Found:
    import onnxruntime

    start = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = int(os.environ["OMP_NUM_THREADS"]), 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    found = session.run(None, given)
    return time.perf_counter() - start, found


FIRST = {"polygrad": polygrad_first, "onnxruntime": onnxruntime_first}


if __name__ == "__main__":
    library, path, inputs = sys.argv[1:]
    value, found = FIRST[library](path, arrays(json.loads(inputs)))
    print(json.dumps({"value": value, "check": numbers_of(found)}))

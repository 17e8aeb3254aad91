"""From an ONNX file to the first result, in a process of its own:

    python -m bench.onnx_first LIBRARY PATH INPUTS

LIBRARY is polygrad or onnxruntime, which is imported before; INPUTS is JSON, as `with_onnx.arrays` reads it.
The last line printed is JSON: `value`, the seconds from the file to outputs that are there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from bench.libraries.with_onnx import arrays


def polygrad_first(path: str, given: dict[str, Any]) -> float:
    from polygrad import onnx

    start = time.perf_counter()
    for y in onnx.load(path).forward(given).values():
        y.numpy()
    return time.perf_counter() - start


def onnxruntime_first(path: str, given: dict[str, Any]) -> float:
    import onnxruntime

    start = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = int(os.environ["OMP_NUM_THREADS"]), 3
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, given)
    return time.perf_counter() - start


FIRST = {"polygrad": polygrad_first, "onnxruntime": onnxruntime_first}


if __name__ == "__main__":
    library, path, inputs = sys.argv[1:]
    print(json.dumps({"value": FIRST[library](path, arrays(json.loads(inputs)))}))

"""The cases of the package onnx's backend test suite, run by polygrad, onnxruntime or tinygrad.

    python scripts/onnx_runners.py PACKAGE KIND FIRST

prints a JSON line for each case from number FIRST on: its name, and why it fails, or null. A package may
crash; `onnx_table.py` then starts another process behind the case that it was at.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from polygrad import Device

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
import adapter  # names a driver to WEBGPU
import onnx_suite as suite

assert adapter.missing
SECONDS = 120  # that a case may take
_LONGEST_REASON = 120


def run_polygrad(case: suite.Case) -> None:
    """On the device that DEVICE names."""
    device = Device.DEFAULT
    if not suite.is_run(case.name, device):
        raise RuntimeError(suite.reason(case.name, device))
    suite.run(case)


# Types of onnxruntime that numpy does not have.
_OTHER = ("tensor(bfloat16", "tensor(float8", "tensor(float4", "tensor(float6", "tensor(int4", "tensor(uint4",
          "tensor(int2", "tensor(uint2")  # fmt: skip


def run_onnxruntime(case: suite.Case) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    for inputs, outputs in case.data():
        given = dict(zip([i.name for i in case.model.graph.input], inputs))
        model = _with_small_integers(case.model, given)
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        ports = [*session.get_inputs(), *session.get_outputs()]
        if any(p.type.startswith(_OTHER) for p in ports):
            values = {n: _ort_value(x) for n, x in given.items()}
            results = [_array(v) for v in session.run_with_ort_values(None, values)]
        else:
            results = session.run(None, given)
        check_all(results, outputs, case)


def _with_small_integers(model: onnx.ModelProto, given: dict[str, Any]) -> onnx.ModelProto:
    """The model with inputs of 2 and 4 bits, which Python cannot give to onnxruntime, as initializers."""
    small = [n for n, x in given.items() if isinstance(x, np.ndarray) and x.dtype.name in suite.SMALL_INTS]
    if not small:
        return model
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for name in small:
        out.graph.initializer.append(numpy_helper.from_array(given.pop(name), name))
        out.graph.input.remove(next(i for i in out.graph.input if i.name == name))
    return out


def _ort_value(x: Any) -> Any:
    import onnxruntime

    if isinstance(x, np.ndarray) and x.dtype.name in suite.FLOATS:
        element = helper.np_dtype_to_tensor_dtype(x.dtype)
        bits = np.ascontiguousarray(x).view(np.uint16 if x.dtype.itemsize == 2 else np.uint8).reshape(x.shape)
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, element)
    return onnxruntime.OrtValue.ortvalue_from_numpy(x)


def _array(value: Any) -> Any:
    """An OrtValue as an array, also of elements that numpy does not have."""
    if not value.is_tensor() or value.element_type() == onnx.TensorProto.STRING:
        return value.numpy()
    raw = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    tensor = onnx.TensorProto(data_type=value.element_type(), dims=value.shape(), raw_data=raw)
    return numpy_helper.to_array(tensor)


def run_tinygrad(case: suite.Case) -> None:
    from tinygrad import Tensor, dtypes
    from tinygrad.nn.onnx import OnnxRunner

    def given(x: Any) -> Any:
        if isinstance(x, np.ndarray) and x.dtype.name == "bfloat16":
            return Tensor(x.astype(np.float32)).cast(dtypes.bfloat16)
        return [given(v) for v in x] if isinstance(x, list) else x

    def plain(y: Any) -> Any:
        if isinstance(y, Tensor):
            return (y.cast(dtypes.float32) if y.dtype == dtypes.bfloat16 else y).numpy()
        return [plain(v) for v in y] if isinstance(y, (list, tuple)) else y

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(case.model, path)
        runner = OnnxRunner(path)
        for inputs, outputs in case.data():
            names = [i.name for i in case.model.graph.input][: len(inputs)]
            found = runner({n: given(x) for n, x in zip(names, inputs)})
            check_all([plain(y) for y in found.values()], outputs, case)


PACKAGES: dict[str, Callable[[suite.Case], None]] = {
    "polygrad": run_polygrad,
    "onnxruntime": run_onnxruntime,
    "tinygrad": run_tinygrad,
}


def check_all(found: list[Any], wanted: list[Any], case: suite.Case) -> None:
    """Raises AssertionError unless shapes, dtypes and, but for random numbers, values are those wanted."""
    assert len(found) == len(wanted), f"{len(wanted)} outputs expected, got {len(found)}"
    for got, want in zip(found, wanted):
        check(got, want, case)


def check(got: Any, want: Any, case: suite.Case) -> None:
    if isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)), f"a sequence expected, got {type(got).__name__}"
        check_all(list(got), list(want), case)
        return
    if want is None:
        assert got is None, "no value expected"
        return
    want, got = np.asarray(want), np.asarray(got)
    assert got.shape == want.shape, f"shape {want.shape} expected, got {got.shape}"
    if want.dtype.kind in "OUS":
        np.testing.assert_array_equal(got.astype(str), want.astype(str))
        return
    name = want.dtype.name
    if name in suite.FLOATS or name in suite.SMALL_INTS:  # numpy has no such dtypes: values are compared
        want = want.astype(np.float32)
        got = got.astype(np.float32)
    assert got.dtype == want.dtype, f"dtype {name} expected, got {got.dtype}"
    if not suite.is_random(case.name):
        rtol = max(case.test.rtol, 2**-6 if name == "bfloat16" else 0)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=case.test.atol)


def reason_of(package: str, case: suite.Case) -> str | None:
    """Why a package fails a case, in a line, or None."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} seconds")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        PACKAGES[package](case)
    except BaseException as e:
        words = " ".join(str(e).split()) or type(e).__name__
        return f"{type(e).__name__}: {words}"[:_LONGEST_REASON]
    finally:
        signal.alarm(0)
    return None


def main(package: str, kind: str, first: str) -> None:
    for case in suite.cases(kind)[int(first) :]:
        line = json.dumps([case.name, reason_of(package, case)])
        sys.__stdout__.write(line + "\n")
        sys.__stdout__.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

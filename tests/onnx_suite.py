"""The backend test suite of the package `onnx`: its cases, and whether ours computes what they say.

Used by the tests and by `scripts/onnx_table.py`. A case is a model with inputs and outputs, made in memory
(`node`) or in the package's files.
"""

from __future__ import annotations

import fnmatch
import functools
import glob
import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import polygrad.onnx
from polygrad import Tensor

# Cases that fail, by patterns, and why.
REASONS = {
    "image_decoder_*": "ImageDecoder does not exist here: Python has no decoders of image formats",
    "attention_4d_causal_fp16*": "two elements differ in the last digit of float16, in which numpy adds",
    "dft_inverse*": "expected is the rounding error of numpy's transform where ours is exactly 0",
    "string_split_empty_tensor": "text comes as nested lists, and an empty one has no second axis",
}
# Other devices than the CPU that the suite runs on, and what fails there beside, in the same form.
_NO_DOUBLES = "WebGPU has no float64"
_NOT_COMPILED = (
    "a kernel keeps the compiler of SwiftShader, the tests' software GPU, busy for minutes: it is not run"
)
DEVICE_REASONS: dict[str, dict[str, str]] = {
    "WASM": {},
    "WEBGPU": {"attention_4d_gqa_with_past_and_present_fp16*": _NOT_COMPILED},
}
# Of random numbers only shape and dtype can be checked.
RANDOM = ("bernoulli*", "training_dropout_default*", "training_dropout", "training_dropout_mask")
_RANDOM_REASON = "random numbers are of our own generator"
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
FLOATS = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn",
          "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "bfloat16")  # fmt: skip
SMALL_INTS = {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8}


@dataclass(frozen=True)
class Case:
    kind: str
    test: Any

    @property
    def name(self) -> str:
        return self.test.name.removeprefix("test_")

    @functools.cached_property
    def model(self) -> onnx.ModelProto:
        return self.test.model or onnx.load(os.path.join(self.test.model_dir, "model.onnx"))

    def data(self) -> list[tuple[list[Any], list[Any]]]:
        if self.test.data_sets is not None:
            return [([plain(x) for x in xs], [plain(y) for y in ys]) for xs, ys in self.test.data_sets]
        out = []
        for folder in sorted(glob.glob(os.path.join(self.test.model_dir, "test_data_set_*"))):
            files = [sorted(glob.glob(f"{folder}/{k}_*.pb"), key=_number) for k in ("input", "output")]
            infos = self.model.graph.input, self.model.graph.output
            out.append(tuple([_read(f, i) for f, i in zip(fs, info)] for fs, info in zip(files, infos)))
        return out


def _number(path: str) -> int:
    return int(path.rpartition("_")[2].removesuffix(".pb"))


def _read(path: str, info: Any) -> Any:
    raw = open(path, "rb").read()
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(raw))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(raw))
    return numpy_helper.to_array(onnx.TensorProto.FromString(raw))


def plain(x: Any) -> Any:
    if isinstance(x, onnx.TensorProto):
        return numpy_helper.to_array(x)
    if isinstance(x, onnx.SequenceProto):
        return numpy_helper.to_list(x)
    if isinstance(x, onnx.OptionalProto):
        return numpy_helper.to_optional(x)
    return np.asarray(x) if isinstance(x, np.generic) else x


@functools.cache
def cases(kind: str) -> list[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [Case(kind, t) for t in load_model_tests(kind=kind)]


def to_ours(x: Any, device: str | None = None) -> Any:
    """An array of numpy as forward() takes it: a Tensor, so that ops and not their folding are judged."""
    if isinstance(x, (list, tuple)):
        return [to_ours(v, device) for v in x]
    if x is None or isinstance(x, str):
        return x
    x = np.asarray(x)
    name = x.dtype.name
    if x.dtype.kind in "OUS":
        return x.astype(str).tolist()
    if name in SMALL_INTS:
        return Tensor(x.astype(SMALL_INTS[name]), device)
    if name in FLOATS:
        t = Tensor(x.astype(np.float32), device)
        dtype_name = {"bfloat16": "bfloat16", "float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2"}.get(name)
        return t.cast(dtype_name) if dtype_name else t
    return Tensor(np.ascontiguousarray(x).reshape(x.shape), device)


def is_random(name: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in RANDOM)


def reason(name: str, device: str = "CPU") -> str | None:
    """Why a case fails, None for one that passes."""
    if is_random(name):
        return _RANDOM_REASON
    reasons = {**REASONS, **DEVICE_REASONS.get(device, {})}
    return next((text for pattern, text in reasons.items() if fnmatch.fnmatch(name, pattern)), None)


def reason_of_failure(name: str, device: str, error: str) -> str | None:
    """The reason of a failure whose text is `error`, None for one that has none."""
    if device == "WEBGPU" and "float64: the device has no such dtype" in error:
        return _NO_DOUBLES
    return reason(name, device)


def is_run(name: str, device: str) -> bool:
    """Whether a case is computed at all."""
    return reason(name, device) != _NOT_COMPILED


def check(got: Any, want: Any, rtol: float, atol: float, values: bool = True) -> None:
    """Raises AssertionError. Without `values` only shapes and dtypes are compared."""
    if isinstance(want, (list, tuple)):
        assert isinstance(got, list) and len(got) == len(want), f"expected {len(want)} elements, got {got}"
        for g, w in zip(got, want):
            check(g, w, rtol, atol, values)
        return
    if want is None:
        assert got is None
        return
    want = np.asarray(want)
    if want.dtype.kind in "OUS":
        np.testing.assert_array_equal(np.array(got, dtype=object), want.astype(str).astype(object))
        return
    name = want.dtype.name
    assert isinstance(got, Tensor), f"expected a tensor, got {got!r:.80}"
    dtype_name = {
        "bfloat16": "bfloat16",
        "float8_e4m3fn": "fp8e4m3",
        "float8_e5m2": "fp8e5m2",
        **SMALL_INTS,
    }.get(name)
    expected = (
        dtype_name
        if isinstance(dtype_name, str)
        else np.dtype(dtype_name).name
        if dtype_name
        else "float32"
        if name in FLOATS
        else name
    )
    assert str(got.dtype) == expected, f"expected dtype {expected}, got {got.dtype}"
    assert got.shape == want.shape, f"expected shape {want.shape}, got {got.shape}"
    if not values:
        return
    value = got.numpy()
    if name in FLOATS or name in SMALL_INTS:
        want, value = want.astype(np.float32), value.astype(np.float32)
        rtol = 2**-6 if name == "bfloat16" else rtol
    np.testing.assert_allclose(value, want, rtol=rtol, atol=atol)


def devices_of(results: Any) -> set[str]:
    """The devices of all Tensors among the outputs, but of constants, which are computed on any."""
    if isinstance(results, list):
        return {device for result in results for device in devices_of(result)}
    return {results._device} if isinstance(results, Tensor) and results._device is not None else set()


def run(case: Case, device: str | None = None) -> None:
    """Raises what is wrong. `device`: of a model that is loaded on another than the default one."""
    model = polygrad.onnx.load(case.model.SerializeToString(), device=device)
    for inputs, outputs in case.data():
        names = [i.name for i in case.model.graph.input][: len(inputs)]
        tensors = {n: to_ours(x, device) for n, x in zip(names, inputs)}
        results = list(model.forward(tensors).values())
        assert len(results) == len(outputs)
        assert device is None or devices_of(results) <= {device}
        for got, want in zip(results, outputs):
            check(got, want, case.test.rtol, case.test.atol, not is_random(case.name))

"""Values that the page puts into an ONNX file, read by the packages `onnx` and `onnxruntime`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import bench_package  # noqa: F401
import numpy as np
import onnx
import onnxruntime
import pytest

from bench.hosts import ROOT

SCRIPT = """
import { readFileSync, writeFileSync } from "node:fs";
import { withValues } from "./bench/page/onnx_values.mjs";
const [path] = process.argv.slice(1);
const values = [
  { name: "a", dtype: "float32", shape: [2, 300], data: Float32Array.from({ length: 600 }, (_, i) => i / 8) },
  { name: "b", dtype: "DTYPE", shape: [300], data: ARRAY.from({ length: 300 }, (_, i) => ELEMENT(i - 150)) },
];
writeFileSync(path, withValues(new Uint8Array(readFileSync(path)), values));
"""


ARRAYS = {"int32": ("Int32Array", "Number"), "int64": ("BigInt64Array", "BigInt")}


def put_values(path: Path, dtype: str) -> subprocess.CompletedProcess[str]:
    array, element = ARRAYS.get(dtype, ARRAYS["int32"])
    script = SCRIPT.replace("DTYPE", dtype).replace("ARRAY", array).replace("ELEMENT", element)
    command = ["node", "--input-type=module", "--eval", script, "--", str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def save_sum(path: Path, dtype: str = "int32", ir_version: int = 10) -> None:
    """A model of a + float(b)."""
    helper, types = onnx.helper, onnx.TensorProto
    nodes = [
        helper.make_node("Cast", ["b"], ["c"], to=types.FLOAT),
        helper.make_node("Add", ["a", "c"], ["out"]),
    ]
    inputs = [
        helper.make_tensor_value_info("a", types.FLOAT, (2, 300)),
        helper.make_tensor_value_info("b", types.INT32 if dtype == "int32" else types.INT64, (300,)),
    ]
    outputs = [helper.make_tensor_value_info("out", types.FLOAT, (2, 300))]
    graph = helper.make_graph(nodes, "sum", inputs, outputs)
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=ir_version), path)


@pytest.mark.e2e
@pytest.mark.parametrize("dtype", ARRAYS)
def test_inputs_have_the_values_and_stay_inputs(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "sum.onnx"
    save_sum(path, dtype)
    done = put_values(path, dtype)
    assert done.returncode == 0, done.stderr
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [x.name for x in model.graph.input] == ["a", "b"]
    a = (np.arange(600, dtype=np.float32) / 8).reshape(2, 300)
    b = np.arange(300, dtype=dtype) - 150
    held = {x.name: onnx.numpy_helper.to_array(x) for x in model.graph.initializer}
    np.testing.assert_array_equal(held["a"], a)
    np.testing.assert_array_equal(held["b"], b)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert not session.get_inputs()
    np.testing.assert_array_equal(session.run(None, {})[0], a + b)
    np.testing.assert_array_equal(session.run(None, {"b": np.zeros_like(b)})[0], a)


@pytest.mark.e2e
def test_a_dtype_that_it_does_not_know_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "sum.onnx"
    save_sum(path)
    before = path.read_bytes()
    done = put_values(path, "complex64")
    assert "dtype: expected one of float32" in done.stderr
    assert path.read_bytes() == before


@pytest.mark.e2e
def test_a_file_in_which_values_would_be_constants_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "sum.onnx"
    save_sum(path, ir_version=3)
    before = path.read_bytes()
    assert "model: expected IR version 4 or later, got 3" in put_values(path, "int32").stderr
    assert path.read_bytes() == before

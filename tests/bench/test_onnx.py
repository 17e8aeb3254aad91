"""The suite of ONNX models: both runtimes compute the same from one file, and what the rows are."""

from __future__ import annotations

import json

import bench_package  # noqa: F401
import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_models import FLOAT, model

from bench import onnx_quantized
from bench.libraries import with_onnx
from bench.suites import onnx as suite


@pytest.fixture
def sizes(tmp_path):
    """A convolution and a product, which read a number that says a shape."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(4, 3, 3, 3)), "p": rng.normal(size=(4, 5))}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("ReduceMean", ["r", "axes"], ["m"], keepdims=0),
        helper.make_node("MatMul", ["m", "p"], ["z"]),
        helper.make_node("Tile", ["z", "times"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", FLOAT, ["batch", 3, 8, 8])
    times = helper.make_tensor_value_info("times", 7, [2])
    values = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()]
    values.append(numpy_helper.from_array(np.int64([2, 3]), "axes"))
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, [x, times], ["y"], values, opset=18))
    return {"path": str(path), "inputs": {"x": suite.floats(2, 3, 8, 8), "times": [1, 2]}}


def test_both_runtimes_compute_the_same_within_1e_5(sizes, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    theirs = with_onnx.in_onnxruntime(with_onnx.KIND, sizes)
    ours = with_onnx.in_polygrad(lambda: None)(with_onnx.KIND, sizes)
    want = theirs.check()
    assert len(want) == 20 and theirs.threads == 1
    np.testing.assert_allclose(ours.check(), want, rtol=1e-5, atol=1e-5)


def test_an_int8_model_is_made_and_both_agree_on_it(sizes, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    target = str(tmp_path / "int8.onnx")
    onnx_quantized.main(sizes["path"], target, json.dumps(sizes["inputs"]))
    whole = with_onnx.in_onnxruntime(with_onnx.KIND, sizes).check()
    sizes = {**sizes, "path": target}
    theirs = with_onnx.in_onnxruntime(with_onnx.KIND, sizes, optimized=False).check()
    ours = with_onnx.in_polygrad(lambda: None)(with_onnx.KIND, sizes).check()
    scale = max(map(abs, whole))
    assert 0 < max(abs(a - b) for a, b in zip(whole, theirs)) < 0.2 * scale
    assert max(abs(a - b) for a, b in zip(ours, theirs)) < suite.TOLERANCE * scale


def test_the_rows_have_all_batches_and_threads():
    rows = [(model.name, dtype, case) for model, dtype, case in suite.cases()]
    assert len(rows) == len({(case.name, case.threads) for _, _, case in rows}) == 100
    assert len(list(suite.cases(quick=True))) == 25
    silero = next(m for m in suite.TABLE if m.name == "silero-vad")
    shapes = {name: spec["shape"] for name, spec in silero.batched(8).items() if isinstance(spec, dict)}
    assert shapes == {"input": [8, 576], "state": [2, 8, 128]}


def test_the_mean_is_geometric_and_a_goal():
    assert suite.mean_of([2.0, 0.5]).value == pytest.approx(1.0) and suite.mean_of([2.0, 0.5]).met
    assert not suite.mean_of([0.9]).met and suite.mean_of([]).value is None

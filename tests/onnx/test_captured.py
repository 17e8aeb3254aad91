"""`Instance.capture` and `Instance.export`: one Program for all symbolic sizes, and files that run alone."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, attention, ints, model

import polygrad.onnx
from polygrad import Tensor, export
from polygrad.errors import ArgumentError, CaptureError, OnnxError, ShapeError
from polygrad.nn.optim import Adam

SIZES = [(1, 3), (2, 5), (8, 16), (3, 1), (4, 7), (1, 16), (2, 5)]


def arrays(n, length):
    rng = np.random.default_rng(n + 10 * length)
    return {"x": rng.normal(size=(n, length, 4)).astype(np.float32), "ids": rng.integers(0, 7, (n, length))}


def test_one_program_for_all_sizes_within_1e_5():
    data = attention(flat=True)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    step = polygrad.onnx.load(data).capture(**{"batch": (1, 8), "length.1": (1, 16)})
    programs = set()
    for n, length in SIZES:
        inputs = arrays(n, length)
        found = step(inputs)
        for (name, got), want in zip(found.items(), session.run(None, inputs), strict=True):
            assert got.shape == want.shape, name
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
        if step._jit.captured:
            programs.add(id(step._jit.program))
    assert len(programs) == 1
    assert {v.arg.name for v in step.variables.values()} == {"batch", "length_1"}


@pytest.mark.parametrize("device", [None, "CPU", "WASM"])
def test_sizes_that_are_outputs_are_those_of_each_call(device):
    x = helper.make_tensor_value_info("x", FLOAT, ["n", 2])
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Relu", ["x"], ["y"])]
    s = helper.make_tensor_value_info("s", TensorProto.INT64, [2])
    step = polygrad.onnx.load(model(nodes, [x], [s, "y"]), device=device).capture(n=(1, 8))
    assert [step(x=[[1.0, 2.0]] * n)["s"].tolist() for n in (8, 8, 3, 5)] == [[8, 2], [8, 2], [3, 2], [5, 2]]


def test_what_depends_on_initializers_alone_is_computed_once_and_after_writes_within_1e_6(tmp_path):
    x = helper.make_tensor_value_info("x", FLOAT, ["n", 4])
    nodes = [
        helper.make_node("Softmax", ["w"], ["p"], axis=0),
        helper.make_node("MatMul", ["x", "p"], ["y"]),
    ]
    w = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    m = polygrad.onnx.load(model(nodes, [x], ["y"], [numpy_helper.from_array(w, "w")]))
    step = m.capture(n=(1, 8))

    def check(weights):
        for n in (1, 8, 3):
            given = np.random.default_rng(n).normal(size=(n, 4)).astype(np.float32)
            e = np.exp(weights - weights.max(0))
            np.testing.assert_allclose(
                step(x=given)["y"].numpy(), given @ (e / e.sum(0)), rtol=1e-5, atol=1e-6
            )

    check(w)
    assert len(step._jit.program.launches) == 1
    m.parameters["w"].assign(Tensor(w[::-1].copy() * 3)).realize()
    check(w[::-1] * 3)
    assert len(step._jit.program.launches) == 1
    m.export(tmp_path / "m.pgrd", n=(1, 8))
    assert {s.name for s in export.load(tmp_path / "m.pgrd", native=True).parameters} == {"w"}


@pytest.mark.parametrize("by", ["scales", "sizes"])
def test_images_of_any_number_are_resized_within_1e_6(by):
    """Of an axis that keeps its size that may be symbolic."""
    x = helper.make_tensor_value_info("x", FLOAT, ["n", 3, "rows", 5])
    scales = numpy_helper.from_array(np.float32([1, 1, 2, 1.5]), "scales")
    constants = [scales, ints("hw", [12, 7]), ints("zero", [0]), ints("two", [2])]
    inputs = ["x", "", "scales"] if by == "scales" else ["x", "", "", "sizes"]
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "two", "zero"], ["nc"]),
        helper.make_node("Concat", ["nc", "hw"], ["sizes"], axis=0),
        helper.make_node("Resize", inputs, ["y"], mode="linear"),
    ]
    data = model(nodes, [x], ["y"], constants)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    m = polygrad.onnx.load(data)
    step = m.capture(n=(1, 4), rows=6)
    for n in (2, 2, 4, 1):
        images = np.random.default_rng(n).normal(size=(n, 3, 6, 5)).astype(np.float32)
        (want,) = session.run(None, {"x": images})
        np.testing.assert_allclose(step(x=images)["y"].numpy(), want, rtol=1e-6, atol=1e-6)
    with pytest.raises(OnnxError, match="axis 2 has the symbolic size rows=6: only an axis of a fixed size"):
        m.capture(n=1, rows=(1, 6))(x=images)


def test_a_size_may_be_fixed():
    step = polygrad.onnx.load(attention()).capture(**{"batch": 2, "length.1": (1, 16)})
    assert list(step.variables) == ["length.1"]
    assert [step(arrays(2, k))["pool"].shape for k in (3, 5, 4)] == [(2, 4)] * 3
    with pytest.raises(ShapeError, match="size 'batch' to be 2, got 3"):
        step(arrays(3, 4))


def test_what_cannot_be_captured():
    m = polygrad.onnx.load(attention())
    with pytest.raises(ArgumentError, match=r"bounds of the sizes \['batch', 'length.1'\], got {'batch': 2}"):
        m.capture(batch=2)
    with pytest.raises(ArgumentError, match=r"bounds of 'batch' from 1 in order, got \(3, 2\)"):
        m.capture(**{"batch": (3, 2), "length.1": 4})
    step = m.capture(**{"batch": (1, 8), "length.1": (1, 16)})
    with pytest.raises(ShapeError, match=r"size 'length.1' to be from 1 to 16, got 17"):
        step(arrays(1, 17))
    with pytest.raises(ArgumentError, match=r"expected the inputs \['x', 'ids'\], got \['x'\]"):
        step(x=arrays(1, 2)["x"])
    with pytest.raises(CaptureError, match="call it twice"):
        step.save("never.pgrd")
    unnamed = model([helper.make_node("Relu", ["x"], ["y"])], ["x"], ["y"])
    with pytest.raises(ArgumentError, match=r"tensors of a known rank, got x: float \(\?\)"):
        polygrad.onnx.load(unnamed).capture()


def test_sizes_without_names():
    x = helper.make_tensor_value_info("x", FLOAT, [None, 3, None])
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
    step = polygrad.onnx.load(model(nodes, [x], ["y"], [ints("axes", [2])])).capture(
        **{"x.0": 2, "x.2": (1, 5)}
    )
    for n in (1, 4, 5, 2):
        x = np.random.default_rng(n).normal(size=(2, 3, n)).astype(np.float32)
        np.testing.assert_allclose(step(x=x)["y"].numpy(), x.sum(2), rtol=1e-5, atol=1e-6)


def test_numbers_that_decide_cannot_be_captured():
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(op, ["x"], ["r"])], op, [], [helper.make_tensor_value_info("r", FLOAT, None)]
        )
        for name, op in (("then", "Neg"), ("else", "Abs"))
    }
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "limit"], ["c"]),
        helper.make_node("If", ["c"], ["y"], **branches),
    ]
    x = helper.make_tensor_value_info("x", FLOAT, [2])
    data = model(nodes, [x], ["y"], [numpy_helper.from_array(np.float32(0), "limit")])
    step = polygrad.onnx.load(data).capture()
    with pytest.raises(CaptureError):
        for _ in range(2):
            step(x=[1.0, 2.0])


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_an_exported_model_runs_alone_within_1e_5(tmp_path, device):
    data = attention()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    m = polygrad.onnx.load(data, device=device)
    m.export(tmp_path / "m.pgrd", **{"batch": (1, 8), "length.1": (1, 16)})
    alone = export.load(tmp_path / "m.pgrd", native=True)
    shapes = {s.name: s.shape for s in alone.inputs}
    assert shapes == {"x": ("batch", "length_1", 4), "ids": ("batch", "length_1")}
    assert {s.name for s in alone.parameters} >= {"w", "table"}
    for n, length in SIZES[:4]:
        inputs = arrays(n, length)
        found = alone.run(**inputs)
        for name, want in zip(("o", "pool"), session.run(None, inputs)):
            np.testing.assert_allclose(found[name].tolist(), want, rtol=1e-5, atol=1e-5)


def test_an_output_that_is_an_input_or_another_output_can_be_exported(tmp_path):
    x = helper.make_tensor_value_info("x", FLOAT, [3])
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Identity", ["y"], ["z"]),
        helper.make_node("Identity", ["w"], ["weight"]),
    ]
    w = numpy_helper.from_array(np.float32([4, 5]), "w")
    polygrad.onnx.load(model(nodes, [x], ["same", "y", "z", "weight"], [w])).export(tmp_path / "m.pgrd")
    found = export.load(tmp_path / "m.pgrd", native=True).run(x=[-1.0, 0.0, 2.0])
    assert {k: v.tolist() for k, v in found.items()} == {
        "same": [-1, 0, 2], "y": [0, 0, 2], "z": [0, 0, 2], "weight": [4, 5],
    }  # fmt: skip


def test_an_output_whose_size_is_computed_cannot_be_exported(tmp_path):
    m = polygrad.onnx.load(attention(flat=True))
    with pytest.raises(ArgumentError, match="flat"):
        m.export(tmp_path / "m.pgrd", **{"batch": (1, 8), "length.1": (1, 16)})


def test_a_model_is_fine_tuned_captured_and_exported(tmp_path):
    """Initializers are parameters: after training, captures and files have the new ones."""
    m = polygrad.onnx.load(attention(), requires_grad=True)
    before = {name: t.numpy().copy() for name, t in m.parameters.items()}
    optimizer = Adam(list(m.parameters.values()), lr=0.05)
    inputs, want = arrays(2, 5), np.ones((2, 4), np.float32)
    losses = []
    with Tensor.train():
        for _ in range(30):
            optimizer.zero_grad()
            loss = (m(inputs)["pool"] - want).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    assert all(np.abs(m.parameters[name].numpy() - old).max() > 1e-3 for name, old in before.items())
    trained = m(inputs)["pool"].numpy()
    m.export(tmp_path / "m.pgrd", **{"batch": (1, 2), "length.1": (1, 8)})
    found = export.load(tmp_path / "m.pgrd", native=True).run(**inputs)["pool"]
    np.testing.assert_allclose(found.tolist(), trained, rtol=1e-5, atol=1e-5)

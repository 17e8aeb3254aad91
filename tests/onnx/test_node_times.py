"""`Instance.profile`: every node has the launches that compute it, and the forward pass stays what it is."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import FLOAT, attention, ints, model

import polygrad.onnx
from polygrad import Tensor
from polygrad.errors import ArgumentError, ShapeError


def test_each_node_has_its_launches_and_outputs():
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["p"], name="product"),
        helper.make_node("Relu", ["p"], ["r"], name="positive"),
        helper.make_node("Reshape", ["r", "shape"], ["flat"], name="view"),
        helper.make_node("TopK", ["flat", "k"], ["values", "places"], name="best"),
    ]
    x = helper.make_tensor_value_info("x", FLOAT, [4, 4])
    m = polygrad.onnx.load(model(nodes, [x], ["values"], [ints("shape", [16]), ints("k", [2])]))
    data = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    before = m.forward(x=data)["values"].tolist()
    times = m.profile(x=data, seconds=0.01)
    found = {n.name: n for n in times.nodes}
    assert list(found) == ["product", "positive", "view", "best"]
    assert [n.op for n in times.nodes] == ["MatMul", "Relu", "Reshape", "TopK"]
    assert found["view"].launches == 0 and found["view"].seconds == 0
    for name in ("product", "positive", "best"):
        assert found[name].launches > 0 and found[name].seconds > 0
    assert found["best"].outputs == ("float of shape (2,)", "int64 of shape (2,)")
    assert 0 < times.fused_launches < sum(n.launches for n in times.nodes) and times.rounds > 0
    assert m.forward(x=data)["values"].tolist() == before


def test_printed_it_is_a_table_of_ops():
    m = polygrad.onnx.load(attention())
    x, ids = Tensor.ones(2, 3, 4), Tensor.zeros(2, 3, dtype="int64")
    lines = str(m.profile({"x": x, "ids": ids}, seconds=0.01)).splitlines()
    assert lines[0].startswith("15 nodes one by one: ") and "; together: " in lines[0]
    assert lines[1].split() == ["op", "nodes", "launches", "time", "share"]
    counts = {line.split()[0]: int(line.split()[1]) for line in lines[3:]}
    assert counts["MatMul"] == 3 and sum(counts.values()) == 15


def test_what_runs_inside_of_a_node_is_the_nodes():
    body = helper.make_graph(
        [helper.make_node("Mul", ["x", "x"], ["b"])],
        "body",
        [],
        [helper.make_tensor_value_info("b", FLOAT, None)],
    )
    node = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=body, else_branch=body)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    m = polygrad.onnx.load(model([node], ["x", condition], ["y"]))
    (found,) = m.profile(x=[1.0, 3.0], c=True, seconds=0.01).nodes
    assert (found.name, found.op) == ("choice", "If") and found.launches > 0


@pytest.mark.parametrize(
    ("inputs", "error", "match"),
    [
        ({}, ArgumentError, "expected the inputs"),
        ({"x": [[1.0]], "ids": [[0]]}, ShapeError, "input 'x' has shape"),
    ],
)
def test_inputs_that_do_not_fit(inputs, error, match):
    with pytest.raises(error, match=match):
        polygrad.onnx.load(attention()).profile(inputs)

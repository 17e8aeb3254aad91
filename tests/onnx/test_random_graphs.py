"""Random graphs: onnx's shape inference and onnxruntime agree with ours in shape, dtype and values.

Values within 2e-4 of the largest of an output; whole numbers exactly.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx.shape_inference
import onnx_random
import onnxruntime
import pytest
from onnx import helper

import polygrad.onnx
from polygrad import Tensor

GROUP = 10


def inferred(model):
    """Shape and dtype of each output, by onnx's shape inference."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    for port in whole.graph.output:
        port.ClearField("type")
    flags = {"check_type": True, "strict_mode": True}
    try:
        found = onnx.shape_inference.infer_shapes(whole, data_prop=True, **flags)
    except onnx.shape_inference.InferenceError:  # it takes products of vectors for products of their lengths
        found = onnx.shape_inference.infer_shapes(whole, **flags)
    out = {}
    for port in found.graph.output:
        tensor = port.type.tensor_type
        sizes = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
        shape = tuple(sizes) if tensor.HasField("shape") else None
        out[port.name] = (shape, helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    return out


def by_onnxruntime(made):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    data = made.model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, made.inputs)))


def check(seed):
    made = onnx_random.make(seed)
    onnx.checker.check_model(made.model, full_check=True)
    given = {name: Tensor(x) for name, x in made.inputs.items()}
    found = polygrad.onnx.load(made.model.SerializeToString()).forward(given)
    Tensor.realize(*found.values())
    for name, (shape, dtype) in inferred(made.model).items():
        got = found[name]
        assert str(got.dtype) == dtype.name, f"seed {seed}, {name}: {dtype} inferred, got {got.dtype}"
        assert shape is None or (
            len(got.shape) == len(shape) and all(n in (None, k) for n, k in zip(shape, got.shape))
        ), f"seed {seed}, {name}: shape {shape} inferred, got {got.shape}"
    for name, want in by_onnxruntime(made).items():
        got = found[name].numpy()
        assert got.dtype == want.dtype and got.shape == want.shape, f"seed {seed}, {name}"
        rtol = 2e-4 if want.dtype.kind == "f" else 0
        atol = rtol * max(float(np.abs(want).max(initial=0)), 1) if rtol else 0
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=f"seed {seed}, {name}")


@pytest.mark.parametrize(
    "group", [*range(10), *(pytest.param(i, marks=pytest.mark.slow) for i in range(10, 30))]
)
def test_random_graphs_within_2e_4(group):
    for seed in range(GROUP * group, GROUP * (group + 1)):
        check(seed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("group", range(5))
def test_many_random_graphs_within_2e_4(group):
    for seed in range(1_000 + 100 * group, 1_000 + 100 * (group + 1)):
        check(seed)


def test_the_graphs_have_most_ops():
    ops = {n.op_type for seed in range(200) for n in onnx_random.make(seed).model.graph.node}
    sizes = [len(onnx_random.make(seed).model.graph.node) for seed in range(200)]
    assert len(ops) > 90 and min(sizes) >= 5 and max(sizes) > 35

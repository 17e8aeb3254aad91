"""Products of quantised numbers by their integers: exact sums, which onnxruntime computes as the file says.

Floats within 1e-6 of the largest number of an exact result in float64; integers exactly.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model, node_model

import polygrad.onnx
from polygrad import Tensor
from polygrad.engine.profile import profile
from polygrad.onnx.integer_products import MOST_TERMS
from polygrad.uop.ops import Ops

BYTES = ("int8", "uint8")


def codes(rng, dtype, shape):
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


def ports(inputs):
    return [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in inputs.items()
    ]


def run(data, inputs):
    return polygrad.onnx.load(data).forward({n: Tensor(x) for n, x in inputs.items()})


def by_onnxruntime(data, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, inputs)


class Quantized:
    """An input or an initializer of random codes with random scales and zero points, and its numbers."""

    def __init__(self, rng, name, dtype, shape, axis=None, symmetric=False):
        count = () if axis is None else (shape[axis],)
        self.name, self.axis, self.codes = name, axis, codes(rng, dtype, shape)
        self.scale = rng.uniform(0.01, 0.1, count).astype(np.float32)
        zero = np.zeros(count) if symmetric else codes(rng, dtype, count)
        self.zero = np.array(zero, dtype)
        at = [1] * len(shape)
        if axis is not None:
            at[axis] = -1
        whole = self.codes.astype(np.float64) - self.zero.astype(np.float64).reshape(at)
        self.numbers = whole * self.scale.astype(np.float64).reshape(at)

    def node(self):
        names = [f"{self.name}{end}" for end in ("", "_scale", "_zero")]
        attributes = {} if self.axis is None else {"axis": self.axis}
        return helper.make_node("DequantizeLinear", names, [f"{self.name}_f"], **attributes)

    def constants(self):
        pairs = (("_scale", self.scale), ("_zero", self.zero))
        return [numpy_helper.from_array(x, f"{self.name}{end}") for end, x in pairs]


def check(op, operands, wanted, bias=None, **attributes):
    """A node of dequantised inputs computes `wanted`, as onnxruntime does."""
    names = [f"{x.name}_f" for x in operands]
    constants = [c for x in operands for c in x.constants()]
    if bias is not None:
        names.append("bias")
        constants.append(numpy_helper.from_array(bias, "bias"))
    nodes = [*(x.node() for x in operands), helper.make_node(op, names, ["y"], **attributes)]
    inputs = {x.name: x.codes for x in operands}
    data = model(nodes, ports(inputs), ["y"], constants)
    found = run(data, inputs)["y"].numpy()
    assert found.dtype == np.float32 and found.shape == wanted.shape
    scale = max(float(np.abs(wanted).max()), 1e-3)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * scale)
    (theirs,) = by_onnxruntime(data, inputs)
    np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-4 * scale)


def convolved(x, w, **settings):
    return torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), **settings).numpy()


@pytest.mark.parametrize("seed", range(24))
def test_random_convolutions_within_1e_6(seed):
    rng = np.random.default_rng(seed)
    groups, each, per = rng.integers(1, 4), rng.integers(1, 6), rng.integers(1, 4)
    kernel, stride, dilation, pad = (int(rng.integers(1, n)) for n in (4, 3, 3, 3))
    x = Quantized(rng, "x", BYTES[seed % 2], (2, groups * each, 9, 11), symmetric=seed % 5 == 0)
    w = Quantized(
        rng,
        "w",
        BYTES[seed // 2 % 2],
        (groups * per, each, kernel, kernel),
        axis=0 if seed % 3 else None,
        symmetric=seed % 4 < 2,
    )
    bias = rng.normal(size=groups * per).astype(np.float32)
    wanted = convolved(x.numbers, w.numbers, stride=stride, dilation=dilation, padding=pad, groups=groups)
    check(
        "Conv",
        (x, w),
        wanted + bias[:, None, None],
        bias,
        pads=[pad] * 4,
        strides=[stride] * 2,
        dilations=[dilation] * 2,
        group=int(groups),
    )


@pytest.mark.parametrize("seed", range(16))
def test_random_products_within_1e_6(seed):
    rng = np.random.default_rng(seed)
    m, k, n = (int(rng.integers(1, 40)) for _ in range(3))
    left, right = [((m, k), (k, n)), ((3, m, k), (k, n)), ((k,), (k, n)), ((2, m, k), (2, k, n))][seed % 4]
    a = Quantized(rng, "a", BYTES[seed % 2], left, symmetric=seed % 5 == 0)
    axis = len(right) - 1 if seed % 3 else None
    b = Quantized(rng, "b", BYTES[seed // 2 % 2], right, axis=axis, symmetric=seed % 4 < 2)
    check("MatMul", (a, b), a.numbers @ b.numbers)


@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_gemm_within_1e_6(left, right):
    rng = np.random.default_rng(2 * left + right)
    a = Quantized(rng, "a", "uint8", (9, 5) if left else (5, 9))
    b = Quantized(rng, "b", "int8", (7, 9) if right else (9, 7), axis=0 if right else 1)
    bias = rng.normal(size=7).astype(np.float32)
    wanted = 0.5 * ((a.numbers.T if left else a.numbers) @ (b.numbers.T if right else b.numbers)) + 2 * bias
    check("Gemm", (a, b), wanted, bias, alpha=0.5, beta=2.0, transA=left, transB=right)


def test_a_product_of_moved_codes_is_one_of_integers():
    rng = np.random.default_rng(0)
    a, b = Quantized(rng, "a", "uint8", (4, 6)), Quantized(rng, "b", "int8", (5, 6))
    nodes = [
        a.node(),
        b.node(),
        helper.make_node("Transpose", ["b_f"], ["t"]),
        helper.make_node("MatMul", ["a_f", "t"], ["y"]),
    ]
    inputs = {"a": a.codes, "b": b.codes}
    found = run(model(nodes, ports(inputs), ["y"], [*a.constants(), *b.constants()]), inputs)["y"]
    assert integer_sums(found) == 1
    wanted = a.numbers @ b.numbers.T
    np.testing.assert_allclose(found.numpy(), wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())


def integer_sums(y):
    """How many sums of products of integers a graph has."""
    sums = [n for n in y.uop.toposort() if n.op is Ops.REDUCE_AXIS and n.dtype.is_int]
    return sum(any(s.op is Ops.MUL for s in _below(n)) for n in sums)


def _below(n):
    (source,) = n.src
    while source.op in (Ops.RESHAPE, Ops.PERMUTE):
        (source,) = source.src
    return [source]


def test_what_could_overflow_or_is_no_byte_stays_in_floats():
    rng = np.random.default_rng(0)
    for size, dtype, count in ((MOST_TERMS, "uint8", 1), (MOST_TERMS + 1, "uint8", 0), (8, "int16", 0)):
        a, b = (Quantized(rng, name, dtype, (1, size)) for name in "ab")
        nodes = [
            a.node(),
            b.node(),
            helper.make_node("Gemm", ["a_f", "b_f"], ["y"], transB=1),
        ]
        inputs = {"a": a.codes, "b": b.codes}
        y = run(model(nodes, ports(inputs), ["y"], [*a.constants(), *b.constants()]), inputs)["y"]
        assert integer_sums(y) == count
        wanted = a.numbers @ b.numbers.T
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5 if count == 0 else 1e-6)


def test_the_scale_of_a_row_of_a_kernel_that_is_no_output_channel_stays_in_floats():
    rng = np.random.default_rng(0)
    x, w = Quantized(rng, "x", "uint8", (1, 4, 6, 6)), Quantized(rng, "w", "int8", (5, 4, 3, 3), axis=1)
    nodes = [x.node(), w.node(), helper.make_node("Conv", ["x_f", "w_f"], ["y"])]
    inputs = {"x": x.codes, "w": w.codes}
    y = run(model(nodes, ports(inputs), ["y"], [*x.constants(), *w.constants()]), inputs)["y"]
    assert integer_sums(y) == 0
    np.testing.assert_allclose(y.numpy(), convolved(x.numbers, w.numbers), rtol=1e-4, atol=1e-4)


def test_a_quantised_convolution_runs_as_dot_products():
    """Where the processor has them. The codes between two convolutions are stored in bytes."""
    rng = np.random.default_rng(0)
    x = Quantized(rng, "x", "uint8", (1, 32, 28, 28))
    w = Quantized(rng, "w", "int8", (32, 32, 3, 3), axis=0, symmetric=True)
    step = [
        numpy_helper.from_array(np.float32(20), "y_scale"),
        numpy_helper.from_array(np.uint8(128), "y_zero"),
    ]
    nodes = [x.node(), w.node()]
    source = "x_f"
    for i in range(2):
        nodes += [
            helper.make_node("Conv", [source, "w_f"], [f"conv{i}"], pads=[1] * 4),
            helper.make_node("QuantizeLinear", [f"conv{i}", "y_scale", "y_zero"], [f"q{i}"]),
            helper.make_node("DequantizeLinear", [f"q{i}", "y_scale", "y_zero"], [f"f{i}"]),
        ]
        source = f"f{i}"
    inputs = {"x": x.codes}
    constants = [*x.constants(), *w.constants(), numpy_helper.from_array(w.codes, "w"), *step]
    out = helper.make_tensor_value_info("q1", TensorProto.UINT8, None)
    data = model(nodes, ports(inputs), [out], constants)
    m, given = polygrad.onnx.load(data), Tensor(x.codes).realize()
    (theirs,) = by_onnxruntime(data, inputs)
    assert np.abs(m(x=given)["q1"].numpy().astype(int) - theirs.astype(int)).max() <= 1
    found = profile(lambda: m(x=given)["q1"].realize(), 0)
    dots = [n for launch in found.launches for n in launch.origin.ast.toposort() if n.op is Ops.DOT]
    assert len(dots) in (0, 2)
    if dots:
        stored = [launch.buffers[0] for launch in found.launches if launch.buffers[0].size == 32 * 28 * 28]
        assert stored and all(b.dtype.itemsize == 1 for b in stored)


# --- the ops of integers


@pytest.mark.parametrize("seed", range(8))
def test_integer_ops_are_exact(seed):
    rng = np.random.default_rng(seed)
    x, w = codes(rng, BYTES[seed % 2], (2, 4, 7, 8)), codes(rng, BYTES[seed // 2 % 2], (6, 2, 3, 2))
    zero, zeros = codes(rng, x.dtype, ()), codes(rng, w.dtype, (6,) if seed % 3 else ())
    settings = {"pads": [1, 0, 2, 1], "strides": [2, 1], "group": 2}
    data, names = node_model("ConvInteger", [x, w, zero, zeros], attributes=settings)
    wide = x.astype(np.int64) - zero
    wide = np.pad(wide, ((0, 0), (0, 0), (1, 2), (0, 1)))
    by = w.astype(np.int64) - zeros.reshape(-1, 1, 1, 1)
    found = run(data, dict(zip(names, (x, w, zero, zeros))))["y0"].numpy()
    np.testing.assert_array_equal(found, convolved(wide, by, stride=(2, 1), groups=2))
    a, b = codes(rng, BYTES[seed % 2], (3, 5, 9)), codes(rng, BYTES[seed // 2 % 2], (9, 4))
    a_zero, b_zero = codes(rng, a.dtype, (5,) if seed % 2 else ()), codes(rng, b.dtype, (4,))
    data, names = node_model("MatMulInteger", [a, b, a_zero, b_zero])
    rows = a_zero.reshape(-1, 1) if a_zero.ndim else a_zero
    wanted = (a.astype(np.int64) - rows) @ (b.astype(np.int64) - b_zero)
    found = run(data, dict(zip(names, (a, b, a_zero, b_zero))))["y0"].numpy()
    np.testing.assert_array_equal(found, wanted)


def test_a_vector_on_the_right_has_zero_points_of_rows():
    rng = np.random.default_rng(0)
    a, b, a_zero, b_zero = (codes(rng, "uint8", shape) for shape in ((3, 5), (5,), (3,), ()))
    data, names = node_model("MatMulInteger", [a, b, a_zero, b_zero])
    found = run(data, dict(zip(names, (a, b, a_zero, b_zero))))["y0"].numpy()
    np.testing.assert_array_equal(
        found, (a.astype(np.int64) - a_zero[:, None]) @ (b.astype(np.int64) - b_zero)
    )


def test_no_images_and_no_terms():
    rng = np.random.default_rng(0)
    images, kernel, zero = codes(rng, "uint8", (0, 2, 5, 6)), codes(rng, "uint8", (3, 2, 3, 2)), np.uint8(7)
    data, names = node_model("ConvInteger", [images, kernel, zero, zero])
    found = run(data, dict(zip(names, (images, kernel, zero, zero))))["y0"].numpy()
    assert found.shape == (0, 3, 3, 5) and found.dtype == np.int32
    a, b = np.empty((3, 0), np.uint8), np.empty((0, 4), np.uint8)
    data, names = node_model("MatMulInteger", [a, b, zero, zero])
    found = run(data, dict(zip(names, (a, b, zero, zero))))["y0"].numpy()
    np.testing.assert_array_equal(found, np.zeros((3, 4)))


def test_zero_points_of_an_axis_lie_on_the_device_of_the_model_within_1e_6():
    """As initializers, which the host reads; here on INTERP, which is not the default device."""
    rng = np.random.default_rng(0)
    a = Quantized(rng, "a", "uint8", (4, 5))
    b = Quantized(rng, "b", "int8", (5, 6), axis=1)
    y_scale, y_zero = rng.uniform(1, 2, 6).astype(np.float32), codes(rng, "uint8", 6)
    nodes = [
        a.node(),
        b.node(),
        helper.make_node("MatMul", ["a_f", "b_f"], ["y"]),
        helper.make_node("MatMulInteger", ["a", "b", "a_zero", "b_zero"], ["whole"]),
        helper.make_node("QuantizeLinear", ["y", "y_scale", "y_zero"], ["q"], axis=1),
        helper.make_node("Identity", ["b_f"], ["numbers"]),
    ]
    more = [numpy_helper.from_array(y_scale, "y_scale"), numpy_helper.from_array(y_zero, "y_zero")]
    inputs = {"a": a.codes, "b": b.codes}
    outputs = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in (
            ("y", TensorProto.FLOAT),
            ("whole", TensorProto.INT32),
            ("q", TensorProto.UINT8),
            ("numbers", TensorProto.FLOAT),
        )
    ]
    data = model(nodes, ports(inputs), outputs, [*a.constants(), *b.constants(), *more])
    m = polygrad.onnx.load(data, device="INTERP")
    found = m.forward({name: Tensor(x, device="INTERP") for name, x in inputs.items()})
    assert {y.device for y in found.values()} == {"INTERP"}
    wanted = a.numbers @ b.numbers
    np.testing.assert_allclose(found["y"].numpy(), wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    np.testing.assert_allclose(found["numbers"].numpy(), b.numbers, rtol=1e-6)
    whole = (a.codes.astype(int) - a.zero) @ (b.codes.astype(int) - b.zero)
    np.testing.assert_array_equal(found["whole"].numpy(), whole)
    wanted_codes = np.clip(np.rint(wanted / y_scale) + y_zero, 0, 255)
    np.testing.assert_array_equal(found["q"].numpy(), wanted_codes)


def test_the_gradient_of_dequantised_operands_of_a_product_within_1e_5():
    rng = np.random.default_rng(0)
    a, b = Quantized(rng, "a", "uint8", (4, 5)), Quantized(rng, "b", "int8", (5, 3))
    training = "ai.onnx.preview.training"
    names = {"xs": ["a_f", "b_f"], "y": "y"}
    nodes = [
        a.node(),
        b.node(),
        helper.make_node("MatMul", ["a_f", "b_f"], ["y"]),
        helper.make_node("Gradient", names["xs"], ["da", "db"], domain=training, **names),
    ]
    inputs = {"a": a.codes, "b": b.codes}
    constants = [*a.constants(), *b.constants()]
    opset = helper.make_opsetid(training, 1)
    found = run(model(nodes, ports(inputs), ["da", "db"], constants, more=[opset]), inputs)
    ones = np.ones((4, 3))
    np.testing.assert_allclose(found["da"].numpy(), ones @ b.numbers.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["db"].numpy(), a.numbers.T @ ones, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_dequantised_numbers_within_1e_6():
    rng = np.random.default_rng(0)
    a = Quantized(rng, "a", "uint8", (4, 5))
    training = "ai.onnx.preview.training"
    opset = helper.make_opsetid(training, 1)
    nodes = [
        a.node(),
        helper.make_node("Mul", ["a_f", "a_f"], ["y"]),
        helper.make_node("Gradient", ["a_f"], ["g"], domain=training, xs=["a_f"], y="y"),
        helper.make_node("Gradient", ["a_f"], ["one"], domain=training, xs=["a_f"], y="a_f"),
    ]
    found = run(
        model(nodes, ports({"a": a.codes}), ["g", "one"], a.constants(), more=[opset]), {"a": a.codes}
    )
    np.testing.assert_allclose(found["g"].numpy(), 2 * a.numbers, rtol=1e-6)
    np.testing.assert_array_equal(found["one"].numpy(), np.ones((4, 5)))


@pytest.mark.parametrize("dtype", BYTES)
def test_halves_are_rounded_to_even_and_ends_are_saturated(dtype):
    limits = np.iinfo(dtype)
    x = np.concatenate([np.arange(-300, 300) / 2, [-np.inf, np.inf, 1e30, -1e30]]).astype(np.float32)
    for zero in (limits.min, 3, limits.max):
        data, names = node_model("QuantizeLinear", [x, np.float32(1), np.array(zero, dtype)])
        found = run(data, dict(zip(names, (x, np.float32(1), np.array(zero, dtype)))))["y0"].numpy()
        wanted = np.clip(np.rint(x.astype(np.float64)) + zero, limits.min, limits.max)
        np.testing.assert_array_equal(found, wanted.astype(dtype))

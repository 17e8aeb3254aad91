"""Functions of codes that are looked up: when they are, and the bits that the nodes have."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model

import polygrad.onnx
from polygrad import Tensor
from polygrad.engine.profile import profile
from polygrad.helpers import prod
from polygrad.onnx import lookups
from polygrad.onnx.channels_last import channels_first
from polygrad.uop.ops import Ops

CONSTANTS = {
    "s": np.float32(0.05),
    "t": np.float32(0.031),
    "half": np.float32([0.5]),
    "vector": np.float32([1, 2, 3] * 4).reshape(12, 1, 1),
    "scales": np.float32([0.1, 0.2, 0.3] * 4),
    "zeros": np.uint8([1, 2, 3] * 4),
    "shape": np.int64([1, 12, 36, 18]),
}
SHAPE = (1, 12, 18, 36)  # of more elements than the fewest that are looked up


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


def pair(source, name, scale="t"):
    """A value as codes, and as numbers again."""
    return [
        node("QuantizeLinear", f"{source} {scale} z", f"{name}_q"),
        node("DequantizeLinear", f"{name}_q {scale} z", name),
    ]


INPUT = pair("x", "f", "s")
GATE = [node("Sigmoid", "f", "g0"), *pair("g0", "g")]
LAST = node("QuantizeLinear", "h t z", "y")
SWISH = [*INPUT, *GATE, node("Mul", "f g", "h"), LAST]
HARD = [  # clip(x + 0.5) * x / 0.5, as several frameworks write it; a constant of one element on either side
    *INPUT,
    node("Add", "half f", "a0"),
    *pair("a0", "a"),
    node("Clip", "a", "c0"),
    *pair("c0", "c"),
    node("Mul", "f c", "m0"),
    *pair("m0", "m"),
    node("Div", "m half", "h"),
    LAST,
]
# Not functions of one tensor of codes, or short ones.
TWO = [*INPUT, node("Neg", "x", "n0"), *pair("n0", "n", "s"), *GATE, node("Mul", "n g", "h"), LAST]
SHORT = [*INPUT, node("Relu", "f", "h"), LAST]
BY_AXIS = [
    node("QuantizeLinear", "x scales zeros", "q", axis=1),
    node("DequantizeLinear", "q scales zeros", "f", axis=1),
    *GATE,
    node("Mul", "f g", "h"),
    LAST,
]
VECTOR = [*INPUT, *GATE, node("Add", "f vector", "v"), node("Mul", "v g", "h"), LAST]
MOVED = [
    *INPUT,
    *GATE,
    node("Reshape", "f shape", "r"),
    node("Reshape", "g shape", "u"),
    node("Mul", "r u", "h"),
    LAST,
]


def file_of(nodes, dtype="uint8", shape=SHAPE):
    constants = {**CONSTANTS, "z": np.array(100, dtype)}
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    outs = [helper.make_tensor_value_info("y", kind, None)]
    return model(nodes, ports, outs, [numpy_helper.from_array(np.array(v), k) for k, v in constants.items()])


@pytest.fixture
def count(monkeypatch):
    """How many tensors were looked up."""
    found = []
    whole = lookups._look_up
    monkeypatch.setattr(lookups, "_look_up", lambda f: found.append(f.depth) or whole(f))
    return found


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("nodes", "depth"), [(SWISH, 4), (HARD, 8)], ids=["swish", "hard"])
def test_a_function_of_codes_has_the_bits_of_its_nodes(nodes, depth, dtype, device, count, monkeypatch):
    monkeypatch.setattr(lookups, "_pays", lambda f: f.depth >= depth)  # on any processor
    x = np.random.default_rng(0).normal(0, 4, SHAPE).astype(np.float32)
    m = polygrad.onnx.load(file_of(nodes, dtype), device=device)
    step = m.capture()
    found = [m(x=x)["y"].numpy(), *(step(x=x)["y"].numpy() for _ in range(3))]
    assert set(count) == {depth}
    monkeypatch.setattr(lookups, "_pays", lambda f: False)
    want = polygrad.onnx.load(file_of(nodes, dtype), device=device)(x=x)["y"].numpy()
    assert len(np.unique(want)) > 10
    for y in found:
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize(
    "nodes", [TWO, SHORT, BY_AXIS, VECTOR, MOVED], ids=["two", "short", "axis", "vector", "moved"]
)
def test_what_depends_on_more_or_is_short_is_computed(nodes, count):
    x = np.random.default_rng(1).normal(0, 4, SHAPE).astype(np.float32)
    m = polygrad.onnx.load(file_of(nodes), device="WASM")
    with channels_first():
        want = m(x=x)["y"].numpy()
    np.testing.assert_array_equal(m(x=x)["y"].numpy(), want)
    assert count == []


@pytest.mark.parametrize(
    ("device", "shape", "looked_up"),
    [
        ("WASM", SHAPE, True),
        ("WASM", (1, 12, 5, 5), False),  # few elements
        ("INTERP", SHAPE, False),  # no vectors
    ],
)
def test_where_functions_are_looked_up(device, shape, looked_up, count):
    m = polygrad.onnx.load(file_of(SWISH, shape=shape), device=device)
    m.forward(x=Tensor.zeros(*shape, device=device))
    assert bool(count) is looked_up
    count.clear()
    with channels_first():  # as files are written
        m.forward(x=Tensor.zeros(*shape, device=device))
    assert not count


def test_a_look_up_reads_bytes():
    step = polygrad.onnx.load(file_of(SWISH), device="WASM").capture()
    x = Tensor(np.ones(SHAPE, np.float32), device="WASM").realize()
    found = profile(lambda: step(x=x), 0)
    params = [n for n in found.launches[-1].origin.ast.toposort() if n.op is Ops.PARAM]
    size = prod(SHAPE)
    assert sorted((p.dtype.itemsize, p.arg.size) for p in params) == [(1, 256), (1, size), (1, size)]


def test_values_of_a_run_are_released_with_it(monkeypatch):
    """No value refers to the run that it is of."""
    kept = []
    whole = lookups._look_up

    def look_up(f):
        out = whole(f)
        kept.append(weakref.ref(out))
        return out

    monkeypatch.setattr(lookups, "_look_up", look_up)
    m = polygrad.onnx.load(file_of(SWISH), device="WASM")
    x = Tensor.zeros(*SHAPE, device="WASM")
    gc.disable()
    try:
        m.forward(x=x)
        assert kept and all(tensor() is None for tensor in kept)
    finally:
        gc.enable()

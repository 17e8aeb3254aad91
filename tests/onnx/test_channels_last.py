"""Images that lie channels last: which values do, how convolutions read them, and the same results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import helper, numpy_helper
from onnx_models import FLOAT, model

import polygrad.onnx
from polygrad import Tensor, Variable
from polygrad.dtype import dtypes
from polygrad.engine.profile import profile
from polygrad.errors import ArgumentError, OnnxError, ShapeError
from polygrad.onnx import channels_last
from polygrad.onnx.channels_last import convolution, names_of_images, store_image
from polygrad.onnx.proto import read_model
from polygrad.uop.ops import Ops

CONVOLUTIONS = [  # channels, outputs, size, kernel, groups, strides, dilations, pairs
    (16, 24, (9, 7), (3, 3), 1, (1, 1), (1, 1), [(1, 1), (1, 1)]),
    (3, 8, (12, 10), (5, 3), 1, (2, 1), (1, 2), [(2, 0), (1, 3)]),
    (32, 32, (7, 7), (5, 5), 32, (1, 1), (1, 1), [(2, 2), (2, 2)]),
    (24, 48, (8, 9), (3, 3), 24, (2, 2), (1, 1), [(0, 1), (1, 0)]),
    (16, 8, (6, 5), (1, 1), 2, (2, 2), (1, 1), [(0, 0), (0, 0)]),
    (20, 5, (6, 5), (2, 2), 1, (1, 1), (2, 2), [(0, 0), (0, 0)]),
    (12, 96, (7, 7), (3, 3), 1, (1, 1), (1, 1), [(1, 1), (1, 1)]),  # in panels
    (12, 64, (5, 6), (1, 3), 1, (1, 2), (1, 1), [(0, 0), (1, 1)]),
]


@pytest.fixture
def of_any_size(monkeypatch):
    """Small images and short sums are as large ones are."""
    for name in ("_MIN_ELEMENTS", "_MIN_PRODUCTS"):
        monkeypatch.setattr(channels_last, name, 0)


def by_torch(x, w, groups, strides, dilations, pairs):
    (top, bottom), (left, right) = pairs
    padded = torch.nn.functional.pad(torch.tensor(x, dtype=torch.float64), (left, right, top, bottom))
    w = torch.tensor(w, dtype=torch.float64)
    return torch.conv2d(padded, w, None, strides, 0, dilations, groups).numpy()


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("last", [True, False])
def test_convolutions_within_1e_5_of_the_largest(case, last, device, of_any_size):
    channels, outputs, size, kernel, groups, strides, dilations, pairs = case
    rng = np.random.default_rng(len(str(case)))
    x = rng.normal(size=(2, channels, *size)).astype(np.float32)
    w = rng.normal(size=(outputs, channels // groups, *kernel)).astype(np.float32)
    given = Tensor(x, device=device)
    found = convolution(
        store_image(given) if last else given,
        Tensor(w, device=device),
        dtypes.float32,
        pairs=pairs,
        groups=groups,
        strides=strides,
        dilations=dilations,
    )
    want = by_torch(x, w, groups, strides, dilations, pairs)
    assert found.shape == want.shape and found.dtype is dtypes.float32
    np.testing.assert_allclose(found.numpy(), want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions_of_bytes_are_exact(case, device, of_any_size):
    channels, outputs, size, kernel, groups, strides, dilations, pairs = case
    rng = np.random.default_rng(len(str(case)))
    x = rng.integers(0, 256, (2, channels, *size)).astype(np.uint8)
    w = rng.integers(-128, 128, (outputs, channels // groups, *kernel)).astype(np.int8)
    found = convolution(
        store_image(Tensor(x, device=device)),
        Tensor(w, device=device),
        dtypes.int32,
        pairs=pairs,
        groups=groups,
        strides=strides,
        dilations=dilations,
    )
    assert found.dtype is dtypes.int32
    np.testing.assert_array_equal(found.numpy(), by_torch(x, w, groups, strides, dilations, pairs))


def test_gradients_of_a_convolution_within_1e_4_of_the_largest(of_any_size):
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((2, 16, 6, 5), (8, 16, 3, 3))]
    x, w = (Tensor(a, requires_grad=True) for a in arrays)
    options = {"pairs": [(1, 1), (0, 2)], "groups": 1, "strides": (1, 2), "dilations": (1, 1)}
    convolution(store_image(x * 2), w, dtypes.float32, **options).square().sum().backward()
    tx, tw = (torch.tensor(a, requires_grad=True) for a in arrays)
    padded = torch.nn.functional.pad(tx * 2, (0, 2, 1, 1))
    torch.conv2d(padded, tw, None, (1, 2)).square().sum().backward()
    for ours, theirs in ((x, tx), (w, tw)):
        want = theirs.grad.numpy()
        np.testing.assert_allclose(ours.grad.numpy(), want, rtol=0, atol=1e-4 * np.abs(want).max())


def test_a_weight_that_does_not_fit_is_a_shape_error():
    options = {"pairs": [(0, 0), (0, 0)], "groups": 1, "strides": (1, 1), "dilations": (1, 1)}
    with pytest.raises(ShapeError, match="expected input"):
        convolution(Tensor.zeros(1, 16, 5, 5), Tensor.zeros(8, 15, 3, 3), dtypes.float32, **options)


@pytest.mark.parametrize("device", ["CPU", "INTERP"])  # as products of matrices, and by conv2d
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"strides": (0, 1)}, "conv2d: stride: expected an int from 1 up, or 2 of them"),
        ({"strides": (1,)}, "conv2d: stride: expected an int from 1 up, or 2 of them"),
        ({"dilations": (1, 0)}, "conv2d: dilation: expected an int from 1 up, or 2 of them"),
    ],
)
def test_steps_below_1_or_of_another_number_are_an_argument_error(changed, message, device, of_any_size):
    options = {"pairs": [(0, 0), (0, 0)], "groups": 1, "strides": (1, 1), "dilations": (1, 1), **changed}
    with pytest.raises(ArgumentError, match=message):
        x, w = Tensor.zeros(1, 16, 5, 5, device=device), Tensor.zeros(8, 16, 3, 3, device=device)
        convolution(x, w, dtypes.float32, **options)


@pytest.mark.parametrize(
    ("bias", "attributes", "message"),
    [
        (1, {}, r"expected a bias of shape \(8,\), got \(1,\)"),
        (5, {}, r"expected a bias of shape \(8,\), got \(5,\)"),
        (8, {"pads": [1, 1]}, r"expected 4 pads for 2 spatial axes, got \[1, 1\]"),
        (8, {"pads": [1] * 6}, "expected 4 pads for 2 spatial axes"),
        (8, {"dilations": [0, 1]}, "conv2d: dilation"),
    ],
)
@pytest.mark.parametrize("quantized", [False, True])
def test_a_node_whose_bias_or_windows_do_not_fit_is_an_onnx_error(bias, attributes, message, quantized):
    constants = {
        "s": np.float32(0.5), "b": np.zeros(bias, np.float32),
        "w": np.ones((8, 16, 3, 3), np.int8 if quantized else np.float32),
    }  # fmt: skip
    nodes = [node("Conv", "f v b" if quantized else "x w b", "y", **attributes)]
    if quantized:
        nodes = [
            node("QuantizeLinear", "x s", "q"),
            node("DequantizeLinear", "q s", "f"),
            node("DequantizeLinear", "w s", "v"),
            *nodes,
        ]
    else:
        del constants["s"]
    ports = [helper.make_tensor_value_info("x", FLOAT, [1, 16, 6, 6])]
    data = model(nodes, ports, ["y"], [numpy_helper.from_array(np.array(v), k) for k, v in constants.items()])
    with pytest.raises(OnnxError, match=message):
        polygrad.onnx.load(data)(x=np.zeros((1, 16, 6, 6), np.float32))


# --- where values lie


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int8"])
def test_an_image_of_many_channels_lies_channels_last(dtype, device, of_any_size):
    x = Tensor(np.arange(2 * 8 * 3 * 2).reshape(2, 8, 3, 2) % 100, device=device).cast(dtype)
    y = store_image(x)
    assert y.uop.op is Ops.PERMUTE and y.uop.src[0].op is Ops.CONTIGUOUS
    assert y.uop.src[0].shape == (2, 3, 2, 8)
    np.testing.assert_array_equal(y.numpy(), x.numpy())


@pytest.mark.parametrize(
    ("shape", "dtype", "device"),
    [
        ((2, 4, 3, 3), "float32", "CPU"),  # few channels
        ((2, 64, 1, 1), "float32", "CPU"),  # no image
        ((64, 16, 7, 9), "float32", "CPU"),  # small
        ((2, 64, 9), "float32", "CPU"),
        ((2, 64, 3, 3), "float64", "CPU"),
        ((2, 64, 3, 3), "float32", "INTERP"),  # no vectors
    ],
)
def test_others_stay_as_they_are(shape, dtype, device):
    x = Tensor.zeros(*shape, dtype=dtype, device=device)
    assert store_image(x) is x


def test_an_image_is_stored_once():
    y = store_image(Tensor.ones(3, 16, 8, 8) * 2)
    assert store_image(y) is y
    computed = Tensor.ones(3, 8, 8, 16).contiguous().realize().permute(0, 3, 1, 2)
    assert store_image(computed) is computed
    batch = Variable("batch", 1, 3).bind(2)
    y = store_image((Tensor.ones(3, 16, 8, 8) * 2).shrink([(0, batch), None, None, None]))
    assert store_image(y) is y
    moved = y.transpose(2, 3)
    assert store_image(moved) is not moved


@pytest.mark.parametrize(
    ("shape", "outputs", "kernel", "last"),
    [
        ((1, 16, 8, 8), 16, 3, True),
        ((1, 16, 2, 2), 16, 3, False),  # a short sum
        ((64, 16, 2, 2), 16, 3, False),  # and so for more images
        ((1, 256, 1, 1), 256, 1, False),  # one position
        ((1, 256, 1, 2), 256, 1, True),
    ],
)
def test_which_convolutions_are_channels_last(shape, outputs, kernel, last):
    weight = Tensor.zeros(outputs, shape[1], kernel, kernel)
    pad = (kernel // 2, kernel // 2)
    options = {"pairs": [pad, pad], "groups": 1, "strides": (1, 1), "dilations": (1, 1)}
    found = convolution(Tensor.zeros(*shape), weight, dtypes.float32, **options)
    assert (found.uop.op is Ops.PERMUTE) is last


def names(nodes, outputs=("y",)):
    graph = read_model(model(nodes, ["x"], list(outputs))).graph
    return names_of_images(graph.nodes, [info.name for info in graph.outputs])


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


def test_values_that_windows_and_planes_are_read_of():
    nodes = [
        node("Conv", "x w", "a"),
        node("Relu", "a", "b"),
        node("GlobalAveragePool", "b", "mean"),
        node("Mul", "b mean", "c"),
        node("Conv", "c v", "d"),
        node("Add", "d c", "e"),
        node("Mul", "e e", "f"),
        node("Concat", "e f", "g", axis=1),
        node("Relu", "g", "h"),
        node("Pad", "h pads", "i"),
        node("MaxPool", "i", "y", kernel_shape=[2, 2]),
        node("Conv", "y u", "z"),
    ]
    assert names(nodes, ("y", "z")) == {"b", "c", "e", "f", "h", "i"}  # not inputs and outputs of the graph
    assert names([n for n in nodes if n.op_type != "Conv"]) == set()


def test_codes_whose_numbers_are_read_also_through_movements_and_concatenations():
    nodes = [
        node("QuantizeLinear", "x s", "q"),
        node("DequantizeLinear", "q s", "f"),
        node("Conv", "f w", "a"),
        node("QuantizeLinear", "a s", "q2"),
        node("DequantizeLinear", "q2 s", "f2"),
        node("Reshape", "f2 shape", "r"),
        node("Concat", "r r", "c", axis=1),
        node("QuantizeLinear", "c s", "q3"),
        node("DequantizeLinear", "q3 s", "f3"),
        node("Relu", "f3", "y"),
    ]
    assert names(nodes) == {"q", "q2", "f", "r"}


# --- whole networks


def network(rng):
    """Convolutions of all kinds, a residual, squeeze and excite, pooling, resizing, concatenation."""
    constants, nodes = {}, []

    def weight(name, *shape):
        constants[name] = (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        return name

    def add(op, inputs, output, **attributes):
        nodes.append(node(op, inputs, output, **attributes))
        return output

    constants["scales"] = np.float32([1, 1, 2, 2])
    add("Conv", f"x {weight('w0', 16, 3, 3, 3)} {weight('b0', 16)}", "c0", strides=[2, 2], pads=[1] * 4)
    add("HardSwish", "c0", "a")
    add("Conv", f"a {weight('w1', 16, 1, 5, 5)}", "c1", group=16, pads=[2] * 4)
    add("Relu", "c1", "r1")
    add("GlobalAveragePool", "r1", "mean")
    add("Conv", f"mean {weight('w2', 16, 16, 1, 1)}", "c2")
    add("HardSigmoid", "c2", "gate")
    add("Mul", "r1 gate", "gated")
    add("Conv", f"gated {weight('w3', 16, 16, 1, 1)}", "c3")
    add("Add", "c3 a", "sum")
    add("MaxPool", "sum", "small", kernel_shape=[2, 2], strides=[2, 2])
    nodes.append(helper.make_node("Resize", ["small", "", "scales"], ["large"], mode="nearest"))
    add("Concat", "large sum", "both", axis=1)
    add("Conv", f"both {weight('w4', 10, 32, 3, 3)}", "y", pads=[1] * 4)
    ports = [helper.make_tensor_value_info("x", FLOAT, ["n", 3, 16, 12])]
    return model(nodes, ports, ["y"], [numpy_helper.from_array(v, k) for k, v in constants.items()])


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_network_within_1e_5_of_onnxruntimes(batch, device, of_any_size):
    rng = np.random.default_rng(batch)
    data = network(rng)
    x = rng.normal(size=(batch, 3, 16, 12)).astype(np.float32)
    (want,) = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    m = polygrad.onnx.load(data, device=device)
    np.testing.assert_allclose(m(x=x)["y"].numpy(), want, rtol=1e-5, atol=1e-5)
    step = m.capture(n=batch)
    for _ in range(3):
        np.testing.assert_allclose(step(x=x)["y"].numpy(), want, rtol=1e-5, atol=1e-5)


def test_a_network_that_is_written_again_has_its_convolutions(tmp_path, of_any_size):
    x = np.random.default_rng(5).normal(size=(1, 3, 16, 12)).astype(np.float32)
    m = polygrad.onnx.load(network(np.random.default_rng(4)))
    path = tmp_path / "again.onnx"
    polygrad.onnx.save(m, {"x": x}, path)
    written = [n.op for n in read_model(path.read_bytes()).graph.nodes]
    assert written.count("Conv") == 5 and written.count("Transpose") <= 2
    np.testing.assert_allclose(polygrad.onnx.load(path)(x=x)["y"].numpy(), m(x=x)["y"].numpy(), atol=1e-5)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize(("quantized", "window"), [(False, 3), (True, 2)])
def test_pools_add_no_copies(quantized, window, device):
    """A weight, an image for the convolution, and one for the pool, which overlapping windows read."""
    constants = {"w": np.ones((32, 16, 3, 3), np.float32), "s": np.float32(0.5)}
    nodes = [node("Conv", "x w", "a", pads=[1] * 4), node("Relu", "a", "b")]
    if quantized:
        nodes += [node("QuantizeLinear", "b s", "q"), node("DequantizeLinear", "q s", "f")]
    read = "f" if quantized else "b"
    nodes.append(node("MaxPool", read, "y", kernel_shape=[window] * 2, strides=[2, 2]))
    ports = [helper.make_tensor_value_info("x", FLOAT, [1, 16, 32, 32])]
    data = model(nodes, ports, ["y"], [numpy_helper.from_array(v, k) for k, v in constants.items()])
    x = Tensor.ones(1, 16, 32, 32, device=device).realize()
    step = polygrad.onnx.load(data, device=device).capture()
    for _ in range(3):
        step(x=x)
    launches = profile(lambda: step(x=x)["y"], 0).launches
    stored = [launch.buffers[0] for launch in launches if launch.buffers[0].size == 32 * 32 * 32]
    assert [b.dtype for b in stored] == [dtypes.uint8 if quantized else dtypes.float32]


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_a_small_model_has_no_layouts(device):
    """The digits' model: two convolutions with their pools, a product and a softmax."""
    path = Path(__file__).parents[2] / "examples" / "data" / "digits.onnx"
    times = polygrad.onnx.load(path, device=device).profile(image=np.zeros((1, 1, 8, 8), np.float32))
    assert times.fused_launches == 4

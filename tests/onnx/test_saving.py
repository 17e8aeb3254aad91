"""`polygrad.onnx.save`: the package onnx takes the files, and onnxruntime computes the same from them."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_random
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx_models import FLOAT, model

import polygrad.onnx
from polygrad import Tensor, Variable, nn
from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, CaptureError, OnnxError

GROUP = 5


def run(path, inputs):
    """What onnxruntime computes from a file, which the package onnx has checked, by the names of outputs."""
    onnx.checker.check_model(path, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def compare(found, wanted, rtol, what=""):
    assert list(found) == list(wanted)
    for name, want in wanted.items():
        got = found[name]
        assert got.dtype == want.dtype and got.shape == want.shape, f"{what} {name}"
        relative = rtol if want.dtype.kind == "f" else 0
        atol = relative * max(float(np.abs(want).max(initial=0)), 1) if relative else 0
        np.testing.assert_allclose(got, want, rtol=relative, atol=atol, err_msg=f"{what} {name}")


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def check_function(tmp_path, function, *arrays, rtol=1e-5):
    path = str(tmp_path / "m.onnx")
    polygrad.onnx.save(function, [Tensor(a) for a in arrays], path)
    result = function(*[Tensor(a) for a in arrays])
    results = result if isinstance(result, (tuple, list)) else [result]
    wanted = {f"output{i}": y.numpy() for i, y in enumerate(results)}
    names = [i.name for i in onnx.load(path).graph.input]
    compare(run(path, dict(zip(names, arrays))), wanted, rtol)
    return onnx.load(path)


# --- random graphs


def check_graph(seed, tmp_path):
    """A random model, loaded here and saved again, computes what it did."""
    made = onnx_random.make(seed)
    m = polygrad.onnx.load(made.model.SerializeToString())
    path = str(tmp_path / "m.onnx")
    polygrad.onnx.save(m, {n: Tensor(x) for n, x in made.inputs.items()}, path)
    wanted = {n: y.numpy() for n, y in m.forward({n: Tensor(x) for n, x in made.inputs.items()}).items()}
    compare(run(path, made.inputs), wanted, 2e-4, f"seed {seed}")


@pytest.mark.parametrize("group", range(12))
def test_random_graphs_within_2e_4(group, tmp_path):
    for seed in range(GROUP * group, GROUP * (group + 1)):
        check_graph(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("group", range(10))
def test_500_random_graphs_within_2e_4(group, tmp_path):
    for seed in range(10_000 + 50 * group, 10_000 + 50 * (group + 1)):
        check_graph(seed, tmp_path)


# --- layers

IMAGE = (2, 4, 8, 8)
LAYERS = {
    "Linear": (lambda: nn.Linear(6, 3), (2, 6)),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=2, dilation=2), (2, 4, 9)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1), IMAGE),
    "depthwise": (lambda: nn.Conv2d(4, 8, 3, groups=4, bias=False), IMAGE),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1), IMAGE),
    "BatchNorm": (lambda: nn.BatchNorm(4), IMAGE),
    "InstanceNorm": (lambda: nn.InstanceNorm(4), IMAGE),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGE),
    "LayerNorm": (lambda: nn.LayerNorm(6), (2, 5, 6)),
    "LayerNorm2d": (lambda: nn.LayerNorm2d(4), IMAGE),
    "RMSNorm": (lambda: nn.RMSNorm(6), (2, 5, 6)),
    "LSTMCell": (lambda: nn.LSTMCell(4, 5), (2, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_within_1e_5(name, tmp_path):
    make, shape = LAYERS[name]
    layer = make()
    saved = check_function(tmp_path, layer, array(*shape))
    weights = {n for n, t in nn.state.get_state_dict(layer).items() if t.dtype.is_float}
    assert {i.name for i in saved.graph.initializer} & weights or name == "InstanceNorm"


def test_an_embedding(tmp_path):
    check_function(tmp_path, nn.Embedding(7, 4), np.array([[1, 2], [6, 0]]))


def test_a_product_is_one_node_and_what_is_broadcast_is_not_made(tmp_path):
    w = Tensor(array(6, 3)).realize()
    saved = check_function(tmp_path, lambda x: x @ w, array(4, 6))
    ops = [n.op_type for n in saved.graph.node]
    assert ops.count("MatMul") == 1 and "Expand" not in ops and "Mul" not in ops


# --- operations


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.exp() + x.abs().log() + x.sigmoid() + x.tanh() + x.gelu() + x.erf(),
        lambda x: x.softmax(-1) + x.log_softmax(0),
        lambda x: (x.sin(), x.cos(), x.floor(), x.round(), x.trunc(), x.sign()),
        lambda x: x.cumsum(0) + x.cumsum(1) + x.abs().clip(0.5, 1.2).cumprod(1),
        lambda x: x.cummax(1)[0],
        lambda x: (x.argmax(1), x.argmin(0), x.max(1), x.min(0), x.std(1), x.var(0)),
        lambda x: x.sort(1),
        lambda x: x.topk(3, 1),
        lambda x: (x.flip(0)[::2], x.pad(((1, 0), (0, 2))), x.T.reshape(-1)[3:9], x.roll(2, 1), x.tril()),
        lambda x: (x > 0) & (x < 1) | (x.eq(x[0])),
        lambda x: ((x > 0).where(x > 1, x < -1), (x > 0) != (x > 1), (x > 0).sum(1), (x > 0).any(0)),
        lambda x: x.gather(1, x.argsort(1)),
        lambda x: x.scatter(1, (x[:, :2] > 0).int(), x[:, :2]),
        lambda x: (x[:, None, :] * x[None, :, :]).sum(-1) + x @ x.T,
        lambda x: (x.expand(3, 4, 6) * 2).sum(0) + x.repeat((1, 2))[:, 6:],
        lambda x: x.cast(dtypes.float64).pow(3).cast(dtypes.float32) + x.maximum(0.1) ** 1.5,
        lambda x: {"a": x + 1, "b": {"c": x * 2}}["b"]["c"],
        lambda x: x.one_hot(3) if x.dtype.is_int else (x > 0).int().one_hot(2),
        lambda x: x.conv2d(Tensor(array(2, 1, 3)), padding=1) if x.ndim == 3 else x.unfold(1, 3, 2),
        lambda x: (Tensor.ones(4, 6) * 2, x, Tensor.arange(5), Tensor(3.0)),
    ],
)
def test_functions_within_1e_5(function, tmp_path):
    check_function(tmp_path, function, array(4, 6))


CONVOLUTIONS = {
    "padded": (["Conv"], lambda: nn.Conv2d(4, 8, 3, padding=1)),
    "strided": (["Conv"], lambda: nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False)),
    "dilated groups": (["Conv"], lambda: nn.Conv2d(4, 8, 3, groups=2, dilation=2)),
    "depthwise": (["Conv"], lambda: nn.Conv2d(4, 4, 5, groups=4, padding=2)),
    "points": (["Conv"], lambda: nn.Conv2d(4, 6, 1, stride=2)),
    "of one channel": (
        ["Conv"],
        lambda: lambda x: x[:, :1].conv2d(Tensor(array(5, 1, 2, 3)), padding=(0, 1)),
    ),
    "transposed": (["ConvTranspose"], lambda: nn.ConvTranspose2d(4, 8, 3, stride=2, padding=1)),
    "transposed groups": (
        ["ConvTranspose"],
        lambda: nn.ConvTranspose2d(4, 8, 4, stride=(2, 3), padding=1, output_padding=1, groups=2),
    ),
    "transposed, of stride 1": (["Conv"], lambda: nn.ConvTranspose2d(4, 8, 3)),
    "pooled": (["MaxPool", "AveragePool"], lambda: lambda x: x.max_pool2d().avg_pool2d(3, 2, padding=1)),
    "overlapping": (
        ["MaxPool", "AveragePool"],
        lambda: lambda x: x.max_pool2d(3, 2, padding=1).avg_pool2d(2, 1),
    ),
    "rounded up": (["MaxPool"], lambda: lambda x: x.max_pool2d(3, 2, ceil_mode=True)),
    "without the padding": (
        ["AveragePool"],
        lambda: lambda x: x.avg_pool2d(3, 2, padding=1, count_include_pad=False),
    ),
    "network": (
        ["Conv", "MaxPool", "Conv"],
        lambda: [
            nn.Conv2d(4, 8, 3),
            nn.BatchNorm(8),
            Tensor.relu,
            Tensor.max_pool2d,
            nn.Conv2d(8, 3, 1),
        ],
    ),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_and_pooling_are_nodes_within_1e_5(name, tmp_path):
    Tensor.manual_seed(0)
    ops, make = CONVOLUTIONS[name]
    layer = make()
    for weight in nn.state.get_state_dict(layer).values():
        weight.realize()
    saved = check_function(
        tmp_path, lambda x: x.sequential(layer) if isinstance(layer, list) else layer(x), array(2, 4, 9, 10)
    )
    found = [n.op_type for n in saved.graph.node]
    assert [op for op in found if "Conv" in op or "Pool" in op] == ops
    assert not {"Gather", "MatMul"} & set(found)


def windows(x):
    """Windows of 3 along the rows of x, as (n, group, channel of the group, y, x, channel, 3, 1)."""
    n, channels, rows, columns = x.shape
    whole = x.unfold(2, 3, 1).permute(0, 2, 3, 1, 4)
    return whole.reshape(n, 1, 1, rows - 2, columns, channels, 3, 1)


def weights(columns):
    return Tensor(array(1, 4, 3, columns)).reshape(1, 1, 1, 1, 1, 4, 3, columns)


NO_WINDOWS = {
    "filled with 1": lambda x: x.pad((1, 1, 1, 1), value=1.0).conv2d(Tensor(array(2, 4, 3, 3))),
    "in float64": lambda x: x.double().conv2d(Tensor(array(2, 4, 3, 3)).double()).float(),
    "maxima of padding": lambda x: x.pad((1, 1, 1, 1)).max_pool2d(3, 1),
    "backwards": lambda x: x.flip(-1).conv2d(Tensor(array(2, 4, 3, 3)), padding=1),
    "weights of each image": lambda x: (x.unfold(2, 3, 1) * x[:, :, :7, :3].unsqueeze(3)).sum(-1),
    "rows": lambda x: x.max(-1),
    "the same maximum for each output": lambda x: x[:, :, 0].reshape(2, 4, 1, 10).expand(2, 4, 5, 10).max(-1),
    "each element several times": lambda x: x[:, :, 0].reshape(2, 4, 10, 1).expand(2, 4, 10, 3).max(-1),
    "the same sum for each output": lambda x: (
        x.reshape(2, 4, 1, 9, 1, 10).expand(2, 4, 3, 9, 2, 10).permute(0, 1, 2, 4, 3, 5).sum((-1, -2))
    ),
    "the first column of weights": lambda x: (windows(x) * weights(2)[..., :1]).sum((-3, -2, -1)),
    "windows of the first image": lambda x: (windows(x)[:1] * weights(1)).sum((-3, -2, -1)),
    "gradient": lambda x: (g := x.detach().requires_grad_()).avg_pool2d(3, 2).square().sum().gradient(g)[0],
}


@pytest.mark.parametrize("name", NO_WINDOWS)
def test_what_is_almost_a_convolution_within_1e_5(name, tmp_path):
    check_function(tmp_path, NO_WINDOWS[name], array(2, 4, 9, 10))


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64", "uint32", "uint64"])
def test_whole_numbers(name, tmp_path):
    x = np.arange(12).astype(name)
    if not name.startswith("u"):
        x = x - np.array(6, name)

    def function(x):
        return x + 3, x * 5, x // 3, x % 3, x << 1, x >> 1, x & 3, x | 4, x ^ 1, x.maximum(2), x > 1, x.eq(2)

    check_function(tmp_path, function, x)


def test_operands_whose_product_wraps(tmp_path):
    check_function(tmp_path, lambda x: x * x, np.array([100, -100, 7], np.int8))


def test_attention_within_1e_5(tmp_path):
    def function(q, k, v):
        return q.scaled_dot_product_attention(k, v), q.scaled_dot_product_attention(k, v, is_causal=True)

    saved = check_function(tmp_path, function, *[array(2, 3, 5, 8, seed=i) for i in range(3)])
    assert "Expand" not in [n.op_type for n in saved.graph.node if n.op_type == "MatMul"]


# --- dynamic axes


def transformer():
    Tensor.manual_seed(3)
    embed, qkv, out, norm = nn.Embedding(11, 8), nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(ids):
        x = embed(ids)
        b, n, _ = x.shape
        q, k, v = [t.reshape(b, n, 2, 4).transpose(1, 2) for t in qkv(norm(x)).chunk(3, -1)]
        scores = (q @ k.transpose(-1, -2) * 0.5).softmax(-1)
        x = x + out((scores @ v).transpose(1, 2).reshape(b, n, 8))
        return {"hidden": x, "pooled": x.mean(1), "flat": x.reshape(b * n, 8)}

    class Model:
        parts = embed, qkv, out, norm

        def __call__(self, ids):
            return forward(ids)

        def __init__(self):
            self.embed, self.qkv, self.out, self.norm = self.parts

    return Model()


def test_dynamic_axes_within_1e_5(tmp_path):
    m, path = transformer(), str(tmp_path / "m.onnx")
    batch, length = Variable("batch", 1, 8).bind(2), Variable("length", 1, 16).bind(3)
    store = Tensor.zeros(8 * 16, dtype="int64").contiguous()
    polygrad.onnx.save(m, {"ids": store[: batch * length].reshape(batch, length)}, path)
    shape = onnx.load(path).graph.input[0].type.tensor_type.shape
    assert [d.dim_param for d in shape.dim] == ["batch", "length"]
    for n, k in [(1, 1), (2, 5), (7, 16), (1, 3)]:
        ids = np.random.default_rng(n).integers(0, 11, (n, k))
        wanted = {name: y.numpy() for name, y in m(Tensor(ids)).items()}
        compare(run(path, {"ids": ids}), wanted, 1e-5)


def test_windows_over_a_dynamic_batch_within_1e_5(tmp_path):
    layer, path = nn.Conv2d(3, 4, 3, padding=1), str(tmp_path / "m.onnx")
    n = Variable("n", 1, 4).bind(2)
    store = Tensor.zeros(4, 3, 6, 6).contiguous()
    polygrad.onnx.save(lambda x: layer(x).relu().max_pool2d(2), [store[:n]], path, model=layer)
    for count in (1, 3, 4):
        x = array(count, 3, 6, 6)
        want = layer(Tensor(x)).relu().max_pool2d(2).numpy()
        compare(run(path, {"x": x}), {"output0": want}, 1e-5)


def test_a_size_that_decides_what_is_computed(tmp_path):
    n = Variable("n", 1, 4).bind(2)
    x = Tensor.zeros(4).contiguous()[:n]
    with pytest.raises(OnnxError, match="depends on the value of"):
        polygrad.onnx.save(lambda x: x[:3], [x], tmp_path / "m.onnx")


# --- models and files


def test_a_model_that_was_loaded_is_trained_and_saved_again(tmp_path):
    w = numpy_helper.from_array(array(3, 2), "w")
    x = helper.make_tensor_value_info("x", FLOAT, ["batch", 3])
    data = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [x], ["y"], [w])
    m = polygrad.onnx.load(data, requires_grad=True)
    optimizer = nn.optim.SGD(list(m.parameters.values()), lr=0.1)
    with Tensor.train():
        m(x=array(4, 3))["y"].square().mean().backward()
        optimizer.step()
    path = str(tmp_path / "m.onnx")
    batch = Variable("batch", 1, 9).bind(4)
    polygrad.onnx.save(m, {"x": Tensor.zeros(9, 3).contiguous()[:batch]}, path)
    saved = onnx.load(path)
    assert [i.name for i in saved.graph.initializer] == ["w"]
    np.testing.assert_array_equal(
        numpy_helper.to_array(saved.graph.initializer[0]), m.parameters["w"].numpy()
    )
    assert not np.array_equal(m.parameters["w"].numpy(), array(3, 2))
    for n in (1, 5):
        compare(run(path, {"x": array(n, 3)}), {"y": m(x=array(n, 3))["y"].numpy()}, 1e-5)


def test_names_of_inputs_outputs_and_weights(tmp_path):
    layer, path = nn.Linear(3, 2), str(tmp_path / "m.onnx")
    polygrad.onnx.save(lambda a, b: {"weight": layer(a) + b}, [array(1, 3), array(1, 2)], path, model=layer)
    graph = onnx.load(path).graph
    assert [i.name for i in graph.input] == ["a", "b"] and [o.name for o in graph.output] == ["weight"]
    assert {"bias", "weight_2"} <= {i.name for i in graph.initializer}  # its name is an output's


def test_numbers_in_the_code_are_no_parameters(tmp_path):
    layer, mask = nn.Linear(4, 4), Tensor.ones(4, 4).tril()
    polygrad.onnx.save(
        lambda x: (layer(x) * 3 @ mask).gelu(), [array(2, 4)], tmp_path / "m.onnx", model=layer
    )
    m = polygrad.onnx.load(tmp_path / "m.onnx", requires_grad=True)
    assert set(m.parameters) == {"weight", "bias"}


def test_initializers_beside_the_file(tmp_path):
    layer, path = nn.Linear(40, 30), tmp_path / "m.onnx"
    polygrad.onnx.save(layer, [array(2, 40)], path, external_data=True)
    assert (tmp_path / "m.onnx.data").stat().st_size == 4 * 40 * 30
    wanted = layer(Tensor(array(2, 40))).numpy()
    compare(run(str(path), {"x": array(2, 40)}), {"output0": wanted}, 1e-5)
    np.testing.assert_allclose(polygrad.onnx.load(path)(x=array(2, 40))["output0"].numpy(), wanted, rtol=1e-5)


def test_what_cannot_be_saved(tmp_path):
    path, x = tmp_path / "m.onnx", array(2, 3)
    with pytest.raises(OnnxError, match="random numbers are not exported"):
        polygrad.onnx.save(lambda x: x + Tensor.rand(2, 3), [x], path)
    with pytest.raises(OnnxError, match="computes values while it is called"):
        polygrad.onnx.save(lambda x: (x * 2).realize() + 1, [x], path)
    with pytest.raises(CaptureError, match="reading of values"):
        polygrad.onnx.save(lambda x: x * x.sum().item(), [x], path)
    with pytest.raises(ArgumentError, match="returns Tensors, got int"):
        polygrad.onnx.save(lambda x: 3, [x], path)
    with pytest.raises(ArgumentError, match="a layer or an Instance, got int"):
        polygrad.onnx.save(3, [x], path)
    with pytest.raises(ArgumentError, match="by name or in a list, got str"):
        polygrad.onnx.save(lambda x: x, "x", path)
    memory = Tensor.zeros(3).contiguous().realize()

    def write(x):
        memory.assign(x[0])
        return memory + 1

    with pytest.raises(OnnxError, match="writes to memory"):
        polygrad.onnx.save(write, [x], path)
    assert memory.tolist() == [0, 0, 0]
    norm = nn.BatchNorm(3)
    with Tensor.train(), pytest.raises(OnnxError, match="writes to memory"):
        polygrad.onnx.save(norm, [array(2, 3, 4, 4)], path)
    assert norm.running_mean.tolist() == [0, 0, 0] and not path.exists()


def test_nothing_is_left_of_a_function_that_cannot_be_saved(tmp_path):
    y = Tensor([1.0, 2.0]) * 3
    with pytest.raises(OnnxError):
        polygrad.onnx.save(lambda x: (x * 2).realize() + y, [array(2)], tmp_path / "m.onnx")
    assert y.tolist() == [3.0, 6.0]
    polygrad.onnx.save(lambda x: x + y, [array(2)], tmp_path / "m.onnx")
    assert run(str(tmp_path / "m.onnx"), {"x": np.float32([1, 1])})["output0"].tolist() == [4.0, 7.0]


def test_bool_inputs_and_no_elements(tmp_path):
    check_function(tmp_path, lambda m, x: m.where(x, -x), np.array([True, False]), array(2))
    check_function(tmp_path, lambda x: x.reshape(0, 3, 2).sum(1), array(0, 6))

"""Values on several devices are what they would be on one: results, gradients, writes, random programs."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polygrad import Device, Tensor, TinyJit, compile_step, nn
from polygrad.engine.normalize import is_uncomputed
from polygrad.engine.programs import clear_caches
from polygrad.engine.sharding import Shards, axis_of, resolve
from polygrad.errors import ArgumentError, CaptureError, DeviceError, ProgramError
from polygrad.nn.state import get_parameters, get_state_dict
from polygrad.runtime.program import Program
from polygrad.uop.ops import Ops

X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)


@pytest.fixture(autouse=True)
def _default(default_device: None) -> None:
    """`device` is the default device of a test that takes it."""


def both(device):
    return device, f"{device}:1"


# --- devices by index


def test_a_device_by_index_has_memory_of_its_own(device):
    other = f"{device}:1"
    assert Device.canonical(f"{device.lower()}:0") == device and Device.canonical(other.lower()) == other
    assert Device[other] is not Device[device] and Device[other].name == other
    x = Tensor([1.0, 2.0], device=other)
    y = (x * 2).realize()
    assert (y.device, y.tolist(), y.uop.base.arg.runtime) == (other, [2, 4], Device[other])
    assert (y.to(device) + Tensor([1.0, 1.0])).tolist() == [3, 5]
    with pytest.raises(DeviceError, match=f"expected one device, got {other} and {device}"):
        _ = x + Tensor([1.0, 1.0], device=device)


@pytest.mark.parametrize("name", ["CPU:", "CPU:-1", "CPU:x", ":1", "CPU:1:1", "TPU:1"])
def test_an_index_that_is_none_is_refused(name):
    with pytest.raises(DeviceError, match="device: expected one of"):
        Device.canonical(name)


def test_devices_that_do_not_go_together_are_refused():
    x = Tensor(X)
    for devices in (("CPU", "CPU:0"), ("CPU", "INTERP")):
        with pytest.raises(DeviceError, match="expected different devices of one kind"):
            x.shard(devices, 0)
    assert x.shard(("CPU",), 0).device == "CPU"


# --- what a graph becomes


def test_each_device_computes_its_part():
    x = Tensor(X).shard(("INTERP", "INTERP:1"), 0).realize()
    (parts,) = resolve([((x * 2 + 1).permute(1, 0)).uop])
    assert isinstance(parts, Shards)
    assert (parts.axis, parts.shape, [p.shape for p in parts.parts]) == (1, (6, 4), [(6, 2), (6, 2)])
    assert not any(n.op is Ops.COPY for p in parts.parts for n in p.toposort())
    (total,) = resolve([x.sum(0).uop])
    copies = [[n.arg for n in p.toposort() if n.op is Ops.COPY] for p in total.parts]
    assert total.axis is None and copies == [["INTERP"], ["INTERP:1"]]


def test_shards_keep_their_axis(device):
    x = Tensor(X).shard(both(device), 0)
    for y, axis in [
        (x, 0),
        (x.reshape(2, 2, 6), 0),
        (x.reshape(4, 2, 3).permute(2, 0, 1), 1),
        (x.reshape(1, 4, 6), 1),
        (x[:, 1:3], 0),
        (x.pad(((0, 0), (1, 1))), 0),
        (x.flip(1), 0),
        (x.cumsum(1), 0),
        (x.sum(1), 0),
        (x.softmax(1), 0),
        (x @ Tensor.ones(6, 2), 0),
        (x.unsqueeze(1).expand(4, 3, 6), 0),
        (x.sum(0), None),
        (x[2:], None),
        (x.shard(both(device), 1), 1),
        (x.shard(both(device)), None),
    ]:
        assert axis_of(y.uop) == axis


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (
            lambda x: x.reshape(3, 8),
            r"RESHAPE of \(4, 6\) to \(3, 8\): a tensor .*: expected a reshape that keeps elements",
        ),
        (lambda x: x[1:3], "SHRINK .* expected all of the axis that is sharded, or one of its parts of 2"),
        (lambda x: x.pad(((1, 1), (0, 0))), "PAD .* expected no padding along the axis that is sharded"),
        (lambda x: x.flip(0), "FLIP .* expected another axis to flip"),
        (lambda x: x.cumsum(0), "expected"),
        (
            lambda x: x.cat(x),
            "PAD .* a tensor with axis 0 sharded over INTERP, INTERP:1: .* gather it",
        ),
        (lambda x: x[:, :4] + x[:, :4].shard(("INTERP", "INTERP:1"), 1), "expected operands alike"),
    ],
)
def test_what_would_move_elements_is_refused(f, text):
    x = Tensor(X).shard(("INTERP", "INTERP:1"), 0).realize()
    with pytest.raises(DeviceError, match=text):
        (f(x) * 2).realize()
    np.testing.assert_array_equal(x.numpy(), X)


def test_axes_that_are_not_divided_are_refused():
    with pytest.raises(DeviceError, match=r"axis whose size 2 devices divide, got axis 1 of shape \(2, 3\)"):
        Tensor.ones(2, 3).shard(("CPU", "CPU:1"), 1)


# --- results


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x * 2 + 1).exp(),
        lambda x: x.sum(0),
        lambda x: x.sum(1),
        lambda x: x.max(),
        lambda x: (x > 0).sum(),
        lambda x: (x > 0).any(0),
        lambda x: x.softmax(1),
        lambda x: x.var(0),
        lambda x: x.prod(1),
        lambda x: x.T @ (x.shard(x.device) if axis_of(x.uop) == 1 else x),
        lambda x: x.layernorm(),
        lambda x: x.argmax(1),
        lambda x: x.half().sum(0),
        lambda x: x.shard_like(x.sum(0)).sum(1),
    ],
)
def test_results_agree_with_one_device(f, axis, device):
    x = Tensor(X)
    got, want = f(x.shard(both(device), axis)), f(x)
    assert got.device == both(device) and got.dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)


def test_three_devices_add_up_in_order(device):
    devices = (device, f"{device}:1", f"{device}:2")
    values = np.float32([1e8, 1, -1e8, 1, 3e8, 1])
    total = Tensor(values).shard(devices, 0).sum(0).realize()
    want = (np.float32(1e8) + 1) + (np.float32(-1e8) + 1) + (np.float32(3e8) + 1)
    parts = [np.frombuffer(b.read(), np.float32).item() for b in total.uop.base.arg.parts]
    assert parts == [want] * 3  # the same by the bit everywhere


def test_gather_and_resharding(device):
    x = Tensor(X).shard(both(device), 0).realize()
    for y in (x.to(device), x.to(f"{device}:1"), x.shard(both(device), 1), x.to(both(device))):
        np.testing.assert_array_equal(y.numpy(), X)
    one = x.to(device).realize()
    one.assign(one * 0).realize()
    np.testing.assert_array_equal(x.numpy(), X)  # memory of its own


def test_a_copy_on_each_shares_no_memory_with_where_it_came_from(device):
    x = Tensor(X).realize()
    y = x.shard(both(device)).realize()
    y.assign(y + 1).realize()
    np.testing.assert_array_equal(x.numpy(), X)
    np.testing.assert_array_equal(y.numpy(), X + 1)


def test_random_numbers_are_those_of_one_device(device):
    Tensor.manual_seed(3)
    want = Tensor.rand(4, 6).numpy()
    Tensor.manual_seed(3)
    x = Tensor(X).shard(both(device), 0)
    np.testing.assert_array_equal(x.rand_like().numpy(), want)
    assert Tensor.zeros(3, device=both(device)).device == both(device)
    assert axis_of(x.zeros_like().uop) == 0 and x.ones_like().sum().item() == 24


# --- writes


def test_writes_are_seen_and_old_values_stay(device):
    x = Tensor(X).shard(both(device), 0).realize()
    before, view = x.sum(0), x[:, 2:4]
    x.assign(x * 2)
    view.assign(view + 1)
    want = X * 2
    want[:, 2:4] += 1
    np.testing.assert_allclose(x.numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(before.numpy(), X.sum(0), rtol=1e-5)
    np.testing.assert_allclose(view.numpy(), want[:, 2:4], rtol=1e-6)
    with pytest.raises(DeviceError, match="ASSIGN"):
        Tensor(X).shard(both(device)).realize().assign(x).realize()


# --- gradients and training


@pytest.mark.parametrize(("x_axis", "w_axis"), [(0, None), (None, 1), (None, 0), (1, 0), (None, None)])
def test_gradients_agree_with_one_device(x_axis, w_axis, device):
    def gradients(place):
        x, w = Tensor(X, requires_grad=True), Tensor(X.T[:, :2] + 1, requires_grad=True)
        if place:
            x.shard_(both(device), x_axis), w.shard_(both(device), w_axis)
        loss = (x @ w).tanh().square().mean()
        loss.backward()
        return loss.item(), x.grad.numpy(), w.grad.numpy()

    for got, want in zip(gradients(True), gradients(False), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_gradients_flow_through_shard_and_back(device):
    x = Tensor(X, requires_grad=True)
    (x.shard(both(device), 0).square().sum(1).to(device) * 2).sum().backward()
    assert x.grad.device == device
    np.testing.assert_allclose(x.grad.numpy(), 4 * X, rtol=1e-6)


class Net:
    def __init__(self):
        self.layers = [nn.Linear(6, 8, bias=False), nn.BatchNorm(8), Tensor.relu, nn.Linear(8, 3)]

    def __call__(self, x):
        return x.sequential(self.layers)


def loss_of(model, x, y):
    return model(x).dropout(0.25).cross_entropy(y)


def train(device, devices, optimizer, captured, axes=None):
    """The losses of some steps, and the parameters after them."""
    Device.DEFAULT = device  # each device counts its random numbers
    Tensor.manual_seed(1)
    model, rng = Net(), np.random.default_rng(1)
    if devices is not None:
        for name, p in get_state_dict(model).items():
            p.shard_(devices, (axes or {}).get(name))
    opt = optimizer(get_parameters(model))
    losses, step = [], None
    for _ in range(4):
        x = Tensor(rng.standard_normal((8, 6)).astype(np.float32))
        y = Tensor(rng.integers(0, 3, 8).astype(np.int32))
        if devices is not None:
            x, y = x.shard(devices, 0).realize(), y.shard(devices, 0).realize()
        if captured:
            step = step or compile_step(loss_of, model, opt, x, y)
            step.run(x, y)
            losses.append(step.loss_value())
        else:
            with Tensor.train():
                opt.zero_grad()
                loss = loss_of(model, x, y).backward()
                opt.step()
                losses.append(loss.item())
    return losses, {k: v.numpy() for k, v in get_state_dict(model).items()}


OPTIMIZERS = [
    lambda params: nn.optim.SGD(params, lr=0.1, momentum=0.9),
    lambda params: nn.optim.RMSprop(params, lr=0.01),
    lambda params: nn.optim.LAMB(params, lr=0.01),
]


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=["SGD", "RMSprop", "LAMB"])
def test_data_parallel_training_agrees_with_one_device(optimizer, captured):
    want, want_state = train("CPU", None, optimizer, False)
    got, state = train("CPU", both("CPU"), optimizer, captured)
    np.testing.assert_allclose(got, want, rtol=1e-4)
    for name, value in want_state.items():
        np.testing.assert_allclose(state[name], value, rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("device", ["WASM", "INTERP"])
def test_a_captured_step_on_other_devices(device):
    want, _ = train(device, None, OPTIMIZERS[0], True)
    got, _ = train(device, both(device), OPTIMIZERS[0], True)
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_optimizers_over_sharded_parameters(device):
    """Batch whole, weights by columns: state is laid out as its parameter is, and stays so."""
    results = []
    for devices in (None, both(device)):
        w = Tensor(X.T.copy(), requires_grad=True)
        if devices:
            w.shard_(devices, 1)
        opt = nn.optim.AdamW([w], lr=0.01)
        for i in range(3):
            x = Tensor(X + i)
            x = x if devices is None else x.shard(devices)
            with Tensor.train():
                opt.zero_grad()
                (x @ w).square().mean().backward()
                opt.step()
        if devices:
            assert [axis_of(t.uop) for t in (w, opt.m[0], opt.v[0])] == [1, 1, 1]
        results.append(w.numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-6)


# --- captures


def test_captured_functions_take_sharded_arguments_and_write_to_them(device):
    devices = both(device)
    total = Tensor.zeros(6, device=devices).contiguous().realize()

    @TinyJit
    def step(x):
        total.assign(total + x.sum(0))
        x.assign(x + 1)
        return x * 2, x.max()

    sums = np.zeros(6, np.float32)
    for i in range(5):
        x = Tensor(X + i).shard(devices, 0).realize()
        doubled, most = step(x)
        sums += (X + i).sum(0)
        np.testing.assert_allclose(doubled.numpy(), 2 * (X + i + 1), rtol=1e-6)
        np.testing.assert_allclose(x.numpy(), X + i + 1, rtol=1e-6)
        np.testing.assert_allclose(total.numpy(), sums, rtol=1e-5)
        assert most.item() == pytest.approx((X + i + 1).max())
        total.assign(total + 1)
        sums += 1
    assert len({program.device for program in step.programs}) == 2
    with pytest.raises(DeviceError, match=r"expected device .*, as captured"):
        step(Tensor(X))


def test_a_step_on_several_devices_is_not_saved(tmp_path):
    step = TinyJit(lambda x: x.shard(("CPU", "CPU:1"), 0).sum(0))
    for _ in range(2):
        step(Tensor(X).realize())
    with pytest.raises(ArgumentError, match="save: expected a step that is one Program"):
        step.save(tmp_path / "step.pgrd")
    with pytest.raises(CaptureError, match=r"it has .* Programs on"):
        _ = step.program


def test_a_constant_has_no_value_from_a_capture(device):
    """The same expression outside is the same node: what a captured step computes of it is the step's."""
    x = Tensor.zeros(4, 6, device=device).shard(both(device), 0).realize()

    def write():
        x[:, 1:2] = 2.75

    write()
    constants = [n for n in x.uop.toposort() if not any(m.op is Ops.BUFFER for m in n.toposort())]
    step = TinyJit(lambda: (write(), x.sum())[1])
    for _ in range(3):
        assert step().item() == 4 * 2.75
        if not step.captured:
            for node in constants:
                node.value = None  # as in new ones, had these been collected
    assert all(map(is_uncomputed, constants))


def test_sharding_inside_a_captured_function(device):
    step = TinyJit(lambda x: (x.shard(both(device), 0) * 2).sum(0).to(device) + 1)
    for i in range(4):
        np.testing.assert_allclose(step(Tensor(X * i)).numpy(), (X * i * 2).sum(0) + 1, rtol=1e-5, atol=1e-6)


# --- generated programs

_STEPS = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "less": lambda x, y: (x < y).where(x, y * 0.5),
    "tanh": lambda x, y: x.tanh(),
    "transpose": lambda x, y: x.transpose(0, 1).shard_like(x),
    "center": lambda x, y: x - x.mean(-1, keepdim=True),
    "center0": lambda x, y: x - x.mean(0, keepdim=True),
    "softmax": lambda x, y: x.softmax(-1),
    "split": lambda x, y: x.reshape(2, 2, 4).sum(1, keepdim=True).expand(2, 2, 4).reshape(4, 4),
    "matmul": lambda x, y: x @ y.mean(0, keepdim=True).expand(4, 4),
    "slice": lambda x, y: x[:, 1:3].pad(((0, 0), (1, 1))),
    "write": lambda x, y: (x + 0).contiguous().assign(y),
    "realize": lambda x, y: x.realize(),
    "scan": lambda x, y: x.cumsum(1),
    "gather": lambda x, y: x.shard_like(x.sum(0, keepdim=True).expand(4, 4) + x),
}


@st.composite
def programs(draw):
    steps = st.tuples(st.sampled_from(sorted(_STEPS)), st.integers(0, 3), st.integers(0, 3))
    return draw(st.sampled_from([0, None])), draw(st.lists(steps, min_size=1, max_size=7))


@given(programs())
def test_generated_programs_agree_with_one_device(program):
    axis, steps = program
    rng = np.random.default_rng(5)
    data = [rng.standard_normal((4, 4)).astype(np.float32) for _ in range(4)]

    def run(place):
        leaves = [Tensor(x, requires_grad=True, device="CPU") for x in data]
        values = [x.shard(("CPU", "CPU:1"), axis) if place and i < 3 else x for i, x in enumerate(leaves)]
        if place:
            values[3] = values[3].shard(("CPU", "CPU:1"))
        for name, i, j in steps:
            values[i] = _STEPS[name](values[i], values[j])
        loss = sum((v.square().mean() for v in values), start=Tensor(0.0))
        grads = loss.gradient(*leaves)
        return [v.detach().numpy() for v in values], [g.numpy() for g in grads]

    for got, want in zip(run(True), run(False), strict=True):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


def test_equal_parts_of_two_values_are_two_memories(device):
    """On each device a clone and another copy on all are the same graph."""
    x = Tensor(X).shard(both(device)).realize()
    a, b = x.clone(), x.shard(both(device))
    a.realize(b)
    a.assign(a + 1).realize()
    np.testing.assert_array_equal(b.numpy(), X)
    np.testing.assert_array_equal(x.numpy(), X)


def test_copies_and_pickles_are_laid_out_as_what_they_are_of(device):
    x = Tensor(X, requires_grad=True).shard_(both(device), 1).realize()
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.device == both(device) and axis_of(y.uop) == 1 and y.requires_grad
        np.testing.assert_array_equal(y.numpy(), X)
        with Tensor.no_grad():
            y.assign(y + 1).realize()
    np.testing.assert_array_equal(x.numpy(), X)


def test_state_goes_into_sharded_parameters(device):
    layer, other = nn.Linear(6, 4), nn.Linear(6, 4)
    layer.weight.shard_(both(device), 0), layer.bias.shard_(both(device))
    nn.state.load_state_dict(layer, get_state_dict(other), verbose=False)
    assert [axis_of(p.uop) for p in (layer.weight, layer.bias)] == [0, None]
    got = layer(Tensor(X).shard(both(device)))
    np.testing.assert_allclose(got.numpy(), other(Tensor(X)).numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("failing", [0, 1])
def test_a_program_that_cannot_be_loaded_is_an_error_before_any_device_writes(
    failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Tensor keeps its write, which the next read makes, and functions without it are captured."""
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="CPU").shard(("CPU", "CPU:1"), 0).realize()
    row, loads = x[1], 0
    clear_caches()
    runtime = type(Device["CPU"])
    load = runtime.load

    def fails(self: Any, program: Program) -> Any:
        nonlocal loads
        loads += 1
        if loads > failing:
            raise ProgramError("no room for code")
        return load(self, program)

    with monkeypatch.context() as patched:
        patched.setattr(runtime, "load", fails)
        with pytest.raises(ProgramError, match="no room for code"):
            x.assign(x * 2 + 1).realize()
    assert loads == failing + 1
    step = TinyJit(lambda a: (a + 1).realize())
    assert [step(Tensor([float(i)]).realize()).item() for i in range(3)] == [1, 2, 3]
    assert x.tolist() == [[3, 5], [7, 9]] and row.tolist() == [7, 9]

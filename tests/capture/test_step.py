"""compile_step: a training step as one Program does what the eager loop does, on every device."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from polygrad import Device, Tensor, TinyJit, compile_step, nn
from polygrad.engine.stats import stats
from polygrad.errors import (
    ArgumentError,
    CaptureError,
    DeviceError,
    DTypeError,
    GradientError,
    ShapeError,
)
from polygrad.nn.optim import SGD, Adam, AdamW, OptimizerGroup
from polygrad.runtime.buffer import Allocation
from polygrad.tensor.core.registry import live_tensors

pytestmark = pytest.mark.usefixtures("default_device")


class Network:
    def __init__(self, dropout=0.0):
        self.first, self.norm, self.last = nn.Linear(6, 8), nn.BatchNorm(8), nn.Linear(8, 3)
        self.dropout = dropout

    def __call__(self, x):
        return self.last(self.norm(self.first(x)).relu().dropout(self.dropout))


def loss_of(model, x, y):
    return model(x).cross_entropy(y)


def batches(n):
    rng = np.random.default_rng(0)
    return [(rng.random((5, 6), np.float32), rng.integers(0, 3, 5).astype(np.int32)) for _ in range(n)]


OPTIMIZERS = {
    "sgd": lambda p: SGD(p, 0.1),
    "momentum": lambda p: SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: Adam(p, 0.01),
    "adamw": lambda p: AdamW(p, 0.01, weight_decay=0.1),
    "group": lambda p: OptimizerGroup(SGD(p[:2], 0.1), Adam(p[2:], 0.01)),
}


def eager(model, opt, data, after=lambda i: None):
    losses = []
    with Tensor.train():
        for i, (x, y) in enumerate(data):
            opt.zero_grad()
            loss = loss_of(model, Tensor(x), Tensor(y))
            loss.backward()
            opt.step()
            losses.append(loss.item())
            after(i)
    return losses


def state(model):
    return {k: v.tolist() for k, v in nn.state.get_state_dict(model).items()}


def make(optimizer, dropout=0.0):
    Tensor.manual_seed(3)
    model = Network(dropout)
    return model, OPTIMIZERS[optimizer](nn.state.get_parameters([model.first, model.norm, model.last])[:8])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_are_bit_identical_to_the_eager_loop(device, optimizer):
    """Losses, weights, running statistics and dropout masks."""
    data = batches(5)
    model, opt = make(optimizer, 0.3)
    want = eager(model, opt, data), state(model)
    model, opt = make(optimizer, 0.3)
    step = compile_step(loss_of, model, opt, *data[0])
    got = []
    for x, y in data:
        step.run(x, y)
        got.append(step.loss_value())
    assert (got, state(model)) == want


def test_compiling_runs_nothing(device):
    model, opt = make("adam")
    x, y = map(Tensor, batches(1)[0])
    before = state(model), opt.b1_t.item()
    step = compile_step(loss_of, model, opt, x, y)
    assert (state(model), opt.b1_t.item()) == before
    with pytest.raises(CaptureError, match="loss_value: the step has not run yet"):
        step.loss_value()
    assert all(p.grad is None for p in opt.params)
    step.run(x, y)
    assert state(model) != before[0] and opt.b1_t.item() == pytest.approx(0.9)


def test_a_first_run_that_fails_leaves_no_loss(device):
    model, opt = make("adam")
    x, y = map(Tensor, batches(1)[0])
    step = compile_step(loss_of, model, opt, x, y)
    with pytest.raises(ShapeError, match="input 0"):
        step.run(x.flatten(), y)
    with pytest.raises(CaptureError, match="loss_value: the step has not run yet"):
        step.loss_value()


def test_one_run_is_one_program_without_work_in_python(device):
    model, opt = make("adam")
    x, y = map(Tensor, batches(1)[0])
    step = compile_step(loss_of, model, opt, x, y)
    step.run()
    stats.reset()
    for _ in range(3):
        step.run(x, y)
    assert (stats.runs, stats.launches, stats.programs) == (3, 3 * step.n_kernels, 0)
    assert step.n_kernels == len(step.program.launches)
    assert step.n_intermediates == sum(b.role == "scratch" for b in step.program.buffers)


def test_the_arena_is_within_a_tenth_of_the_lower_bound():
    """A network of blocks with attention and feed-forward layers, of some size."""

    class Block:
        def __init__(self, d):
            self.norms = [nn.LayerNorm(d), nn.LayerNorm(d)]
            self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def __call__(self, x):
            b, n, d = x.shape
            q, k, v = (
                p.reshape(b, n, 4, d // 4).transpose(1, 2) for p in self.qkv(self.norms[0](x)).chunk(3, -1)
            )
            a = q.scaled_dot_product_attention(k, v).transpose(1, 2).reshape(b, n, d)
            x = x + self.out(a)
            return x + self.down(self.up(self.norms[1](x)).gelu())

    blocks = [Block(64), Block(64)]
    opt = Adam(nn.state.get_parameters(blocks), 1e-3)
    x = Tensor.rand(2, 32, 64).realize()
    step = compile_step(lambda m, x: m[1](m[0](x)).square().mean(), blocks, opt, x)
    assert 0 < step.arena_lower_bound <= step.arena_bytes <= 1.1 * step.arena_lower_bound
    assert step.arena_bytes == step.program.arena


def test_learning_rates_are_assigned_between_steps(device):
    data = batches(5)
    model, opt = make("momentum")
    want = eager(model, opt, data, lambda i: opt.lr.assign(opt.lr * 0.5)), state(model)
    model, opt = make("momentum")
    step = compile_step(loss_of, model, opt, *data[0])
    got = []
    for i, (x, y) in enumerate(data):
        step.run(x, y)
        got.append(step.loss_value())
        if i % 2:
            opt.lr.assign(opt.lr * 0.5).realize()
        else:
            opt.lr.assign(opt.lr * 0.5)
    assert (got, state(model)) == want


def test_a_schedule_in_the_function_advances(device):
    w = Tensor([1.0]).realize()
    opt = SGD([w], 1.0)

    def fn(model, x):
        opt.lr.assign(opt.lr * 0.5)
        return (w * x).sum()

    step = compile_step(fn, w, opt, Tensor([1.0]))
    for _ in range(4):
        step.run()
    assert opt.lr.item() == 1 / 16 and w.item() == 1 - (1 / 2 + 1 / 4 + 1 / 8 + 1 / 16)


def test_more_results_and_shapes_of_the_loss(device):
    w = Tensor([1.0, 2.0]).realize()
    opt = SGD([w], 0.5)
    step = compile_step(
        lambda m, x: ((w * x).sum(keepdim=True), w * 10, {"x": x + 1}), w, opt, Tensor([1.0, 3.0])
    )
    loss, scaled, more = step.run()
    assert (loss.item(), step.loss_value(), scaled.tolist(), more["x"].tolist()) == (7, 7, [10, 20], [2, 4])
    assert step.run()[0] is loss and loss.item() == 0.5 * 1 + 0.5 * 3
    assert w.tolist() == [0, -1]


def test_evaluation_between_steps_sees_the_new_weights(device):
    data = batches(4)
    model, opt = make("sgd")
    seen = []
    eager(model, opt, data, lambda i: seen.append(model(Tensor(data[0][0])).tolist()))
    model, opt = make("sgd")
    step, evaluated = compile_step(loss_of, model, opt, *data[0]), []
    for x, y in data:
        step.run(x, y)
        with Tensor.train():
            evaluated.append(model(Tensor(data[0][0])).tolist())
    assert evaluated == seen


def test_loading_weights_between_steps(device):
    data = batches(3)
    model, opt = make("sgd")
    start = {k: Tensor(v) for k, v in state(model).items()}
    step = compile_step(loss_of, model, opt, *data[0])

    def losses():
        out = []
        for x, y in data:
            step.run(x, y)
            out.append(step.loss_value())
        return out

    first = losses()
    nn.state.load_state_dict(model, start, verbose=False)
    assert losses() == first


# --- inputs


def test_inputs_are_tensors_or_arrays_and_stay_until_replaced(device):
    w = Tensor([1.0, 1.0]).realize()
    opt = SGD([w], 0.0)
    x = Tensor([1.0, 2.0])
    step = compile_step(lambda m, x, y: (w * x * y).sum(), w, opt, x, Tensor([1.0, 1.0]))

    def loss(*inputs):
        step.run(*inputs)
        return step.loss_value()

    y = Tensor([10.0, 1.0])
    array = np.array([3, 4], np.float32)
    assert loss() == 3
    assert loss(x, y) == 12
    assert loss(array, y) == 34
    array[:] = 0
    assert loss() == 34
    assert loss(memoryview(np.array([5, 6], np.float32)), y) == 56
    assert loss(x, np.array([1, 1], np.float32)) == 3
    assert loss(x * 2, y + 1) == 22 + 8
    assert x.tolist() == [1, 2] and y.tolist() == [10, 1]


def test_inputs_in_place(device):
    w = Tensor([1.0, 1.0]).realize()
    x = Tensor([1.0, 2.0])
    step = compile_step(lambda m, x: (w * x).sum(), w, SGD([w], 0.0), x)
    step.run()
    if device in ("WASM", "CUDA"):
        with pytest.raises(DeviceError, match=f"device {device}: Python cannot access its memory"):
            _ = x._data
        return
    for i in range(3):
        x._data[:] = np.array([i, 10], np.float32)
        step.run()
        assert step.loss_value() == i + 10
    step.run(x)
    assert step.loss_value() == 12


def test_wrong_inputs_are_refused_and_the_next_run_works(device):
    model, opt = make("sgd")
    x, y = batches(1)[0]
    step = compile_step(loss_of, model, opt, x, y)
    step.run(x, y)
    other = Tensor(x, device="INTERP" if device != "INTERP" else "CPU")
    for error, inputs, text in [
        (ShapeError, (x[:4], y), r"input 0: expected shape \(5, 6\), as captured, got \(4, 6\)"),
        (ShapeError, (Tensor(x[:4]), y), r"input 0: expected shape \(5, 6\), as captured, got \(4, 6\)"),
        (DTypeError, (x.astype(np.float64), y), "input 0: expected dtype float32, as captured, got float64"),
        (DTypeError, (x, Tensor(y).float()), "input 1: expected dtype int32, as captured, got float32"),
        (DeviceError, (other, y), f"input 0: expected device {device}"),
        (ArgumentError, (x,), "run: expected 2 inputs, or none to reuse the last ones, got 1"),
        (ArgumentError, ("x", y), "input 0: expected a Tensor or an array, got str"),
    ]:
        with pytest.raises(error, match=text):
            step.run(*inputs)
        step.run(x, y)


def test_the_same_tensor_as_two_inputs(device):
    w = Tensor([1.0]).realize()
    x = Tensor([3.0])
    step = compile_step(lambda m, x, y: (w * x * 10 + y).sum(), w, SGD([w], 0.0), x, x)
    step.run()
    assert step.loss_value() == 33
    step.run(x, Tensor([4.0]))
    assert step.loss_value() == 34


def test_what_no_step_can_be_made_of_is_refused():
    model, opt = make("sgd")
    x, y = map(Tensor, batches(1)[0])
    before = state(model)
    for error, fn, text in [
        (
            ArgumentError,
            lambda m, x, y: m(x),
            r"expected fn to return a loss of one element, .* got \(5, 3\)",
        ),
        (ArgumentError, lambda m, x, y: 3.0, "got float"),
        (CaptureError, lambda m, x, y: loss_of(m, x, y) * float(x.sum().item()), ": a reading of values"),
        (GradientError, lambda m, x, y: x.sum(), "expected gradients, got none"),
    ]:
        with pytest.raises(error, match=text):
            compile_step(fn, model, opt, x, y)
        assert state(model)["first.weight"] == before["first.weight"]
    step = compile_step(loss_of, model, opt, x, y)
    step.run(x, y)
    with pytest.raises(CaptureError, match="a step that is captured already"):
        compile_step(lambda m, x, y: (step.run(x, y), loss_of(m, x, y))[1], model, opt, x, y)
    step.run(x, y)


# --- memory


def run_many(device, n):
    model, opt = make("adam", 0.2)
    data = [tuple(map(Tensor, b)) for b in batches(2)]
    arrays = batches(1)[0]
    step = compile_step(loss_of, model, opt, *data[0])
    for i in range(4):
        step.run(*data[i & 1])
        step.run(*arrays)
    counts = []
    for k in range(2):
        if k:
            for i in range(n):
                step.run(*(data[i & 1] if i % 5 else arrays))
        gc.collect()
        counts.append((Allocation.allocated_bytes, len(live_tensors()), len(gc.get_objects())))
    (a, b, objects), (c, d, more) = counts
    return (a, b) == (c, d) and more - objects < 10


def test_steps_allocate_nothing(device):
    assert run_many(device, 30 if device == "INTERP" else 300)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_a_hundred_thousand_steps_allocate_nothing(device):
    Device.DEFAULT = device
    assert run_many(device, 100_000)


@pytest.mark.parametrize("jit", [False, True])
def test_gradients_of_inputs_add_no_kernels_to_a_captured_step(jit):
    counts = []
    for asked in (None, False):
        Tensor.manual_seed(0)
        model = Network()
        opt = SGD(nn.state.get_parameters(model), 0.1)
        x, y = Tensor.rand(5, 6).realize(), Tensor([0, 1, 2, 0, 1]).realize()
        scale = Tensor([2.0]).realize()  # a leaf that the function finds by itself
        x.requires_grad = scale.requires_grad = asked

        def step(model, x, y, scale=scale, opt=opt, jit=jit):
            loss = loss_of(model, x * scale, y)
            if jit:
                opt.zero_grad()
                loss.backward()
                opt.step()
            return loss

        if jit:
            train = TinyJit(lambda x, y, step=step, model=model: step(model, x, y))
            with Tensor.train():
                for _ in range(4):
                    before = stats.launches
                    train(x, y)
            counts.append(stats.launches - before)
        else:
            counts.append(compile_step(step, model, opt, x, y).n_kernels)
        assert x.grad is None and scale.grad is None
    assert counts[0] == counts[1]

"""Optimizers and layers against torch, step by step; training works."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polygrad import Tensor, nn
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError, GradientError
from polygrad.nn.optim import SGD, Adam, AdamW, OptimizerGroup
from polygrad.tensor.core.aliasing import memory_under
from polygrad.uop.intern import collect, node_count

OPTIMIZERS = {
    "sgd": (lambda p: SGD(p, 0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "sgd_decay": (
        lambda p: SGD(p, 0.1, weight_decay=0.1),
        lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.1),
    ),
    "momentum": (lambda p: SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "nesterov": (
        lambda p: SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    ),
    "adam": (lambda p: Adam(p, 0.01), lambda p: torch.optim.Adam(p, 0.01)),
    "adamw": (
        lambda p: AdamW(p, 0.01, weight_decay=0.1),
        lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_five_steps_agree_with_torch_to_1e_5(name):
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype(np.float32) for s in ((6, 4), (4, 3), (3,)))
    y = np.array([0, 1, 2, 0, 1, 2])
    ours = [Tensor(w), Tensor(b)]
    theirs = [torch.tensor(w, requires_grad=True), torch.tensor(b, requires_grad=True)]
    make, make_torch = OPTIMIZERS[name]
    opt, opt_torch = make(ours), make_torch(theirs)
    with Tensor.train():
        for _ in range(5):
            opt.zero_grad()
            loss = (Tensor(x) @ ours[0] + ours[1]).cross_entropy(Tensor(y))
            loss.backward()
            opt.step()
            opt_torch.zero_grad()
            want = torch.nn.functional.cross_entropy(torch.tensor(x) @ theirs[0] + theirs[1], torch.tensor(y))
            want.backward()
            opt_torch.step()
            assert loss.item() == pytest.approx(want.item(), rel=1e-5)
    for a, t in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), t.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_parameters_stay_in_their_memory():
    p = Tensor([1.0, 2.0]).realize()
    handle = memory_under(p.uop).arg.handle
    opt = SGD([p], 0.1)
    with Tensor.train():
        for _ in range(3):
            opt.zero_grad()
            (p * p).sum().backward()
            opt.step()
    assert memory_under(p.uop).arg.handle == handle
    np.testing.assert_allclose(p.numpy(), np.array([1, 2]) * 0.8**3, rtol=1e-6)


def test_half_parameters_keep_wide_state():
    p = Tensor([1.0, 2.0], dtype="float16")
    opt = Adam([p], 0.1)
    with Tensor.train():
        (p * p).sum().backward()
        opt.step()
    assert p.dtype == "float16" and opt.m[0].dtype == "float32"
    np.testing.assert_allclose(p.numpy(), [0.9, 1.9], rtol=2e-3)


def test_optimizers_refuse_misuse():
    p = Tensor([1.0])
    with pytest.raises(ArgumentError, match="no parameter requires a gradient"):
        SGD([Tensor([1.0], requires_grad=False)])
    opt = SGD([p])
    with pytest.raises(GradientError, match="train"):
        opt.step()
    with Tensor.train(), pytest.raises(GradientError, match="backward"):
        opt.step()


def test_groups_step_together():
    a, b = Tensor([1.0]), Tensor([1.0])
    group = OptimizerGroup(SGD([a], 0.1), SGD([b], 0.5))
    with Tensor.train():
        (a + b).sum().backward()
        group.step()
    assert a.item() == pytest.approx(0.9) and b.item() == pytest.approx(0.5)
    group.zero_grad()
    assert a.grad is None and group[1].params == [b]


def test_batchnorm_measures_in_training_and_remembers():
    x = np.random.default_rng(1).normal(size=(4, 3, 5, 5)).astype(np.float32) * 2 + 1
    ours, theirs = nn.BatchNorm(3), torch.nn.BatchNorm2d(3)
    with Tensor.train():
        for _ in range(2):
            np.testing.assert_allclose(
                ours(Tensor(x)).numpy(), theirs(torch.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5
            )
    theirs.eval()
    np.testing.assert_allclose(
        ours(Tensor(x)).numpy(), theirs(torch.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(ours.running_var.numpy(), theirs.running_var.numpy(), rtol=1e-5)
    assert ours.num_batches_tracked.item() == 2


def test_a_network_of_equal_layers_trains():
    Tensor.manual_seed(1)

    class Net:
        def __init__(self):
            self.layers = [nn.Linear(8, 8) for _ in range(3)]
            self.norms = [nn.LayerNorm(8) for _ in range(3)]  # equal weights, equal biases

        def __call__(self, x):
            for layer, norm in zip(self.layers, self.norms, strict=True):
                x = norm(layer(x)).relu() + x
            return x

    net = Net()
    params = nn.state.get_parameters(net)
    params[0].realize(*params[1:])
    opt = Adam(params, 0.01)
    x, y = Tensor.randn(16, 8), Tensor.randint(16, high=8)
    losses = []
    with Tensor.train():
        for _ in range(10):
            opt.zero_grad()
            loss = net(x).cross_entropy(y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0] * 0.8
    biases = [n.bias.numpy() for n in net.norms]
    assert not np.allclose(biases[0], biases[1])


@pytest.mark.parametrize("make", [lambda p: SGD(p, 0.1, momentum=0.9), lambda p: Adam(p, 0.1)])
def test_every_step_is_the_same_program(make):
    w, b = Tensor.rand(4, 3), Tensor.zeros(3)
    x = Tensor.rand(2, 4).realize()
    opt = make([w, b])
    programs = []
    with Tensor.train():
        for _ in range(3):
            opt.zero_grad()
            loss = (x @ w + b).square().sum()
            loss.backward()
            opt.step()
            loss.item()
            programs.append(stats.programs)
    assert programs[0] == programs[1] == programs[2]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_batchnorm_of_16_bit_floats_beyond_their_squares_within_1_unit(dtype):
    x = np.random.default_rng(0).normal(0, 2000, (4, 3, 5)).astype(np.float32)
    ours, theirs = nn.BatchNorm(3, affine=False), torch.nn.BatchNorm1d(3, affine=False)
    with Tensor.train():
        got = ours(Tensor(x).cast(dtype))
    want = theirs(torch.tensor(x).to(getattr(torch, dtype)).float())
    step = 2.0**-10 if dtype == "float16" else 2.0**-7
    assert got.dtype == dtype
    np.testing.assert_allclose(got.float().numpy(), want.numpy(), rtol=step, atol=1e-5)
    np.testing.assert_allclose(ours.running_var.numpy(), theirs.running_var.numpy(), rtol=1e-5)


def _train(steps, read=False):
    """Steps on one batch, held all the while; the kernels of the last step, and the batch."""
    Tensor.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), 0.1)
    x, y = Tensor.randn(5, 4).realize(), Tensor.randn(5, 3).realize()
    with Tensor.train():
        for _ in range(steps):
            optimizer.zero_grad()
            ((model(x).tanh() - y) ** 2).mean().backward()
            assert x.grad is not None and y.grad is not None
            if read:
                x.grad.realize()
            before = stats.launches
            optimizer.step()
    return stats.launches - before, x, y


def test_gradients_of_a_batch_that_nobody_reads_cost_no_kernels_and_are_dropped():
    launches, x, y = _train(3)
    assert x.grad is None and y.grad is None
    x.requires_grad = y.requires_grad = False
    Tensor.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), 0.1)
    with Tensor.train():
        ((model(x).tanh() - y) ** 2).mean().backward()
        before = stats.launches
        optimizer.step()
    assert launches == stats.launches - before


def test_gradients_of_a_batch_that_are_read_stay_and_add_up():
    _, x, y = _train(2, read=True)
    assert x.grad.shape == (5, 4) and y.grad is None


def test_training_on_one_batch_keeps_no_graphs():
    sizes = []
    for steps in (3, 12):
        held = _train(steps)
        collect()
        sizes.append(node_count())
        del held
        collect()
    assert sizes[1] <= sizes[0] + 5

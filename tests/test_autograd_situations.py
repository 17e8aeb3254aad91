"""Situations of torch's own tests of autograd (the name of each is that of the test in test_autograd.py), and
what differs: polygrad differentiates through memory that was written since, and through a graph twice."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
import torch
import torch.utils.checkpoint
from training_programs import run

from polygrad import Tensor, TinyJit, checkpoint, custom_gradient, nn
from polygrad.errors import GradientError
from polygrad.nn.optim import SGD
from polygrad.runtime.buffer import Allocation
from polygrad.uop.intern import collect


def leaf(*values: float) -> Tensor:
    return Tensor(list(values), requires_grad=True)


def memory() -> int:
    gc.collect()
    collect()
    return Allocation.allocated_bytes


# --- no_grad


def test_no_grad(device):
    w, v = Tensor([1.0, 2.0], device, requires_grad=True), Tensor([3.0, 4.0], device, requires_grad=True)
    with Tensor.no_grad():
        h = w * 2
        view = w.reshape(2, 1)
        inner = h.sigmoid() + h
    assert h.requires_grad is view.requires_grad is inner.requires_grad is False
    (h * v + view.reshape(2) + inner).sum().backward()
    assert w.grad is None and v.grad.tolist() == [2, 4]


def test_no_grad_keeps_what_was_made_before_it():
    w = leaf(2.0)
    y = w * w
    with Tensor.no_grad():
        y.sum().realize()
        y.backward(Tensor([1.0]))
    assert w.grad.tolist() == [4]


def test_no_grad_modes_nest_and_end_with_exceptions():
    w = leaf(2.0)
    with pytest.raises(ZeroDivisionError), Tensor.no_grad():
        raise ZeroDivisionError
    assert (w * 2).requires_grad
    with Tensor.no_grad():
        with Tensor.enable_grad():
            assert (w * 2).requires_grad
        with Tensor.set_grad_enabled(False), Tensor.inference_mode():
            pass
        assert not (w * 2).requires_grad and not Tensor.is_grad_enabled()
    assert Tensor.is_grad_enabled()


def test_no_grad_python_function():
    w = leaf(2.0)

    @Tensor.no_grad()
    def once(x):
        return recursive(x, 3)

    @Tensor.no_grad
    def recursive(x, n):
        return x * 2 if n == 0 else recursive(x, n - 1)

    assert once(w).requires_grad is False and (w * 2).requires_grad and once.__name__ == "once"


def test_set_grad_generator_functions():
    w = leaf(2.0)

    @Tensor.no_grad()
    def steps():
        try:
            sent = yield (w * 2).requires_grad
            assert sent == "sent"
            yield (w * 2).requires_grad
        except KeyError:
            yield "caught"
        return "done"

    inner = steps()
    assert next(inner) is False and (w * 2).requires_grad
    assert inner.send("sent") is False and (w * 2).requires_grad
    assert inner.throw(KeyError()) == "caught"
    with pytest.raises(StopIteration, match="done"):
        next(inner)


def test_set_grad_coroutines():
    w = leaf(2.0)

    @Tensor.no_grad()
    async def inner():
        await asyncio.sleep(0)
        return (w * 2).requires_grad

    async def other():
        assert (w * 2).requires_grad
        await asyncio.sleep(0)
        return (w * 2).requires_grad

    async def both():
        return await asyncio.gather(inner(), other())

    assert asyncio.run(both()) == [False, True]


def test_grad_mode_is_of_a_thread():
    w, found = leaf(2.0), []
    with Tensor.no_grad():
        thread = threading.Thread(target=lambda: found.append((w * 2).requires_grad))
        thread.start()
        thread.join()
    assert found == [True]


def test_targets_of_a_frozen_network_are_data():
    online, target = nn.Linear(3, 2), nn.Linear(3, 2)
    target.weight.assign(online.weight.detach())
    x = Tensor.ones(4, 3)
    with Tensor.no_grad():
        wanted = target(x)
    (online(x) - wanted).square().mean().backward()
    assert target.weight.grad is None and online.weight.grad is not None


# --- leaves


def test_requires_grad_():
    x = Tensor([1.0, 2.0])
    before = x * 3
    assert x.requires_grad_() is x and x.requires_grad
    y = (x * 2).requires_grad_()
    with pytest.raises(GradientError, match="use detach"):
        y.requires_grad_(False)
    (before * 5 + y).sum().backward()
    assert x.grad.tolist() == [2, 2]  # what was computed before is not differentiated


def test_freezing_concerns_what_is_computed_then():
    w = leaf(2.0)
    early = w * w
    w.requires_grad_(False)
    frozen = w * w * w
    w.requires_grad_(True)
    (early + frozen).sum().backward()
    assert w.grad.tolist() == [4]
    w.grad = None
    loss = (w * w).sum()
    w.requires_grad_(False)
    loss.backward()  # as in torch, no error: the leaf takes nothing
    assert w.grad is None


def test_leaf_assignment():
    w, view = leaf(1.0, 2.0, 3.0), None
    with Tensor.no_grad():
        w[0] = 5
        view = w[1:]
    assert w.is_leaf and w.requires_grad
    view.assign(Tensor([7.0, 8.0]))
    (w * w).sum().backward()
    assert w.tolist() == [5, 7, 8] and w.grad.tolist() == [10, 14, 16]


def test_equal_constants_are_leaves_of_their_own(device):
    a, b = (
        Tensor.ones(2, device=device, requires_grad=True),
        Tensor.ones(2, device=device, requires_grad=True),
    )
    (a * 2 + b * 3).sum().backward()
    assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [3, 3]


@pytest.mark.parametrize("read", ["item", "numpy", "tolist", "realize", "data", "__repr__"])
def test_reading_changes_nothing(read):
    w = leaf(3.0)
    h = w * w
    getattr(h, read)()
    loss = (h * w).sum()
    getattr(loss, read)()
    loss.backward()
    getattr(w.grad, read)()
    assert w.grad.tolist() == [27]


def test_layers_parameters_get_gradients_after_a_read():
    layer, x = nn.Linear(3, 2), Tensor.ones(4, 3)
    y = layer(x).mean()
    y.item()
    y.backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), np.full((2, 3), 0.5))


def test_without_a_leaf_backward_is_an_error():
    for loss in (Tensor([2.0]).detach().sum(), Tensor(2.0), Tensor.ones(3).sum()):
        with pytest.raises(GradientError, match="no Tensor with requires_grad=True leads to"):
            loss.backward()
    x = Tensor([2.0])
    loss = (x * x).sum()
    loss.item()
    with pytest.raises(GradientError, match="was read before backward"):
        loss.backward()
    with pytest.raises(GradientError, match="has no graph"):
        loss.gradient(x)


def test_deepcopy_and_pickle_are_leaves():
    w = leaf(1.0, 2.0)
    (w * w).sum().backward()
    for other in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert other.is_leaf and other.requires_grad and other.grad.tolist() == [2, 4]
        (other * 3).sum().backward()
        assert other.grad.tolist() == [5, 7] and w.grad.tolist() == [2, 4]


def test_a_tensor_of_a_tensor_is_derived():
    w = leaf(2.0)
    (Tensor(w * w) * 3).sum().backward()
    assert w.grad.tolist() == [12]
    assert Tensor(w * w, requires_grad=False).requires_grad is False


# --- memory that was written since


def test_two_losses_with_a_step_between(device):
    w = Tensor([1.0, 2.0], device, requires_grad=True)
    optimizer = SGD([w], lr=0.5)
    with Tensor.train():
        first, second = (w * w).sum(), (w * w * w).sum()
        first.backward()
        optimizer.step()
        optimizer.zero_grad()
        second.backward()
        assert w.tolist() == [0, 0] and w.grad.tolist() == [3, 12]


@pytest.mark.parametrize("realize", [False, True])
@pytest.mark.parametrize("requires_grad", [True, None])
def test_a_gradient_after_a_write_is_that_of_the_values_used(realize, requires_grad):
    w = Tensor([1.0, 2.0], requires_grad=requires_grad)
    loss = (w * w).sum()
    w.assign(w + 1)
    if realize:
        w.realize()
    if realize and requires_grad is None:
        with pytest.raises(GradientError, match=r"test_autograd_situations.py:\d+: differentiate before"):
            loss.gradient(w)
    else:
        assert loss.gradient(w)[0].tolist() == [2, 4]
    assert w.tolist() == [2, 3]


def test_both_versions_of_a_leaf_have_gradients():
    w = leaf(1.0, 2.0)
    early = (w * w).sum()
    with Tensor.no_grad():
        w += 10
    (early + (w * 5).sum()).backward()
    assert w.grad.tolist() == [7, 9]


def test_backward_twice():
    w = leaf(1.0, 2.0)
    loss = (w * w).sum()
    loss.backward()
    loss.backward()  # torch refuses it; nothing was written, so nothing is missing
    assert w.grad.tolist() == [4, 8]
    with Tensor.no_grad():
        w.assign(w * 2).realize()
    with pytest.raises(GradientError, match="retain_graph=True"):
        loss.backward()


def test_backward_twice_retained_graph():
    w = leaf(1.0, 2.0)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    with Tensor.no_grad():
        w.assign(w * 2).realize()
    loss.backward()
    assert w.grad.tolist() == [4, 8]


def test_a_sum_of_losses_keeps_no_weights():
    """`total += loss` in a loop holds neither copies of the parameters nor old batches."""
    w = Tensor.ones(1000, requires_grad=True).realize()
    w.requires_grad_()
    optimizer, total, used = SGD([w], lr=0.1), Tensor(0.0), []
    with Tensor.train():
        for i in range(12):
            x = Tensor(np.full(1000, i, np.float32))
            loss = (w * x).square().mean()
            if i % 2:
                total = total + loss
            optimizer.zero_grad()
            loss.backward()
            if not i % 2:
                total = total + loss
            optimizer.step()
            del x, loss
            used.append(memory())
    assert used[-1] - used[5] < 4000


def test_a_loss_that_is_not_differentiated_keeps_the_values_once():
    w = Tensor(np.ones(1000, np.float32), requires_grad=True)
    kept = (w * w * w).sum()
    optimizer, used = SGD([w], lr=0.01), []
    with Tensor.train():
        for _ in range(6):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
            used.append(memory())
    assert used[-1] - used[1] < 4000
    w.grad = None
    kept.backward()
    assert w.grad.tolist() == [3] * 1000


def test_two_losses_with_a_step_between_in_a_captured_step():
    w, model = leaf(1.0, 2.0), torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = SGD([w], lr=0.1)

    @TinyJit
    def step(x):
        first, second = (w * x).square().sum(), (w * w * x).sum()
        optimizer.zero_grad()
        first.backward()
        optimizer.step()
        optimizer.zero_grad()
        second.backward()
        optimizer.step()
        return second.realize()

    with Tensor.train():
        for i in range(4):
            x = torch.tensor([1.0, 0.5]) * (i + 1) * 0.2
            used = model.detach().clone().requires_grad_()
            (a,) = torch.autograd.grad((used * x).square().sum(), used)
            (b,) = torch.autograd.grad((used * used * x).sum(), used)
            model = used.detach() - 0.1 * a - 0.1 * b
            got = step(Tensor(x.numpy()).realize())
            assert got.item() == pytest.approx((used * used * x).sum().item(), rel=1e-5)
            np.testing.assert_allclose(w.numpy(), model.numpy(), rtol=1e-5)


# --- hooks


def test_hooks():
    w, seen = leaf(1.0, 2.0), []
    y = w * 3
    y.register_hook(lambda g: seen.append(g.tolist()))
    double = y.register_hook(lambda g: g * 2)
    (y * y).sum().backward()
    assert seen == [[6, 12]] and w.grad.tolist() == [36, 72]
    double.remove()
    w.grad = None
    (y * y).sum().backward()
    assert w.grad.tolist() == [18, 36]


def test_hooks_of_leaves_see_all_of_a_gradient():
    w, seen = leaf(1.0, 2.0), []
    loss = (w * w).sum() + w.sum()
    handle = w.register_hook(lambda g: seen.append(g.tolist()) or g.clamp(0, 4))
    loss.backward()
    assert seen == [[3, 5]] and w.grad.tolist() == [3, 4]
    handle.remove()
    handle.remove()
    w.grad = None
    loss.backward()
    assert w.grad.tolist() == [3, 5]


def test_hooks_outlive_their_tensor():
    w = leaf(2.0)

    def scaled(x):
        y = x * 1
        y.register_hook(lambda g: g * 100)
        return y * 3

    out = scaled(w)
    gc.collect()
    out.sum().backward()
    assert w.grad.tolist() == [300]


@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("is_used", [True, False])
def test_a_hook_that_refers_to_its_tensor_goes_with_it(is_leaf, is_used):
    def references():
        w = leaf(1.0, 2.0)
        y = w if is_leaf else w * 3
        y.register_hook(lambda g: g * y.detach())
        out = y * 2
        if is_used:
            out.sum().backward()
            assert w.grad.tolist() == ([2, 4] if is_leaf else [18, 36])
        return [weakref.ref(t) for t in (w, y, out)]

    tensors = references()
    collect()  # nodes of results
    gc.collect()
    assert [r() for r in tensors] == [None] * 3


def test_a_leaf_and_a_tensor_made_of_it_have_hooks_of_their_own():
    w, seen = leaf(1.0, 2.0), []
    w.register_hook(lambda g: seen.append("leaf") or g)
    same = Tensor(w)
    same.register_hook(lambda g: seen.append("same") or g * 2)
    (w * 3).sum().backward()
    assert seen == ["leaf"] and w.grad.tolist() == [3, 3]
    w.grad = None
    (same * 3).sum().backward()
    assert seen == ["leaf", "same", "leaf"] and w.grad.tolist() == [6, 6]


def test_hooks_are_checked():
    with pytest.raises(GradientError, match="requires a gradient"):
        Tensor([1.0]).register_hook(print)
    w = leaf(1.0, 2.0)
    w.register_hook(lambda g: g.sum())
    with pytest.raises(GradientError, match=r"expected a Tensor of shape \(2,\)"):
        (w * w).sum().backward()
    assert w.grad is None


def test_retain_grad():
    w = leaf(1.0, 2.0)
    y = (w * 2).retain_grad()
    assert w.retain_grad() is w
    loss = (y * y).sum()
    loss.backward()
    loss.backward()
    assert y.grad.tolist() == [8, 16] and w.grad.tolist() == [16, 32]


# --- graphs of gradients


def test_accumulate_grad():
    w = leaf(2.0)
    (w**3).sum().backward(create_graph=True)
    assert w.grad.requires_grad
    penalty = (w.grad * w.grad).sum()
    w.grad = None
    penalty.backward()
    np.testing.assert_allclose(w.grad.numpy(), [2 * 12 * 12])


def test_gradients_are_cut_unless_their_graph_is_asked_for():
    w = leaf(2.0)
    (w**3).sum().backward()
    g = w.grad
    assert g.requires_grad is False
    w.grad = None
    (g * w).sum().backward()
    assert w.grad.tolist() == [12]


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize(
    "loss", [lambda w: (w * 3).sum(), lambda w: w.abs().sum(), lambda w: w.clamp(0, 1).sum()]
)
def test_a_gradient_that_is_constant_in_pieces_is_data_read_or_not(loss, is_read):
    w = leaf(2.0, -1.0)
    (g,) = loss(w).gradient(w)
    loss(w).backward(create_graph=True)
    for found in (g, w.grad):
        penalty = (found * found).sum()
        if is_read:
            penalty.item()
        assert found.requires_grad is penalty.requires_grad is False
        with pytest.raises(GradientError, match="no Tensor with requires_grad=True leads to"):
            penalty.backward()


def test_gradient_penalty_of_a_gradient_that_was_read():
    w = leaf(2.0)
    (g,) = (w**3).sum().gradient(w)
    g.tolist()
    (g * g).sum().backward()
    assert w.grad.tolist() == [288]


def test_custom_function_with_several_results():
    def forward(x, y):
        return x * y, x + y

    def backward(gradient, value, x, y):
        assert isinstance(gradient, tuple) and isinstance(value, tuple)
        return gradient[0] * y + gradient[1], gradient[0] * x + gradient[1]

    for f in (forward, custom_gradient(forward, backward)):
        a, b = leaf(2.0, 3.0), leaf(5.0, 7.0)
        product, total = f(a, b)
        (product * 2 + total * product).sum().backward()
        assert a.grad.tolist() == [55, 105] and b.grad.tolist() == [28, 57]


def test_a_checkpoint_keeps_the_values_of_its_inputs_and_not_the_tensors():
    w = Tensor([1.0, 2.0], requires_grad=True)
    x = w * 2
    reference = weakref.ref(x)
    loss = checkpoint(lambda x: x.square(), x).sum()
    del x
    assert reference() is None
    loss.backward()
    assert w.grad.tolist() == [8.0, 16.0]


def test_checkpointing_of_weights_that_are_written():
    w, x = leaf(2.0, 3.0), leaf(1.0, 1.0)
    loss = checkpoint(lambda x: (x * w).square(), x).sum()
    with Tensor.no_grad():
        w.assign(w * 10).realize()
    loss.backward()
    assert x.grad.tolist() == [8, 18] and w.grad.tolist() == [4, 6]


@pytest.mark.parametrize("writes_inside", [False, True])
def test_checkpointing_of_a_value_that_the_input_was_written_to(writes_inside):
    """Computed again, the write was made again too, with another value: an InternalError."""
    a = np.float32([[1, 2], [3, 4]])
    found = []
    for library, recomputed in (
        (Tensor, checkpoint),
        (torch.tensor, functools.partial(torch.utils.checkpoint.checkpoint, use_reentrant=False)),
    ):
        x, w, v = (
            library(a, requires_grad=True),
            library(a * 0.3, requires_grad=True),
            library(np.full_like(a, 2)),
        )
        v[:, 0] = (x * w)[:, 1]

        def function(y, v=v, w=w):
            z = (y * v * w).sin() * 1
            if writes_inside:
                z[0] = y[1] * w[0]
            return z * v

        out = recomputed(function, x)
        (out * out).sum().backward()
        found.append([t.detach().numpy() for t in (x.grad, w.grad, out, v)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_grad_unreachable():
    x, y = leaf(1.0), leaf(2.0)
    (g, zero) = (x * 2).sum().gradient(x, y)
    assert g.tolist() == [2] and zero.tolist() == [0]


def test_grad_nonleaf():
    x = leaf(1.0, 2.0)
    y = x * x
    y.realize()
    z = (y * y).sum()
    assert z.gradient(y)[0].tolist() == [2, 8]


def test_requires_grad_inplace():
    a, w = Tensor([5.0, 6.0]), leaf(1.0, 2.0)
    a += w
    assert a.requires_grad
    (a * a).sum().backward()
    assert w.grad.tolist() == [12, 16]


def test_setitem():
    w, v = leaf(1.0, 2.0, 3.0), leaf(10.0)
    y = w * 2
    y[1] = v.sum()
    (y * y).sum().backward()
    assert w.grad.tolist() == [8, 0, 24] and v.grad.tolist() == [20]


def test_free_deep_graph():
    w = leaf(1.0)
    y = w
    for _ in range(3000):
        y = y + 1
    y.sum().backward()
    assert w.grad.tolist() == [1]


def test_multi_backward():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    shared = a * b
    (shared * 2).sum().backward()
    (shared * 3).sum().backward()
    assert a.grad.tolist() == [15, 20] and b.grad.tolist() == [5, 10]


@pytest.mark.parametrize(
    "seed, device",
    [
        (10_001_506, "CPU"),
        (10_000_696, "INTERP"),
        (10_004_111, "CPU"),
        (20_021_006, "CPU"),
        (40_018_384, "CPU"),
    ],
)
def test_programs_that_once_went_wrong(seed: int, device: str) -> None:
    """A checkpoint that reads memory after a write to a part of it, a parameter made of a node on a device, a
    second backward of what a write before the first had made, the square of a gradient that is constant in
    pieces, which was an error only once it had been read, a checkpoint of what its input was written to."""
    run(seed, device, length=16)


def test_a_tensor_of_a_node_is_on_the_nodes_device() -> None:
    x = Tensor([1.0, 2.0], device="INTERP")
    assert Tensor((x * 2).uop).device == "INTERP" == Tensor(x.uop).device


def test_a_backward_costs_little_beside_many_live_tensors() -> None:
    others = [Tensor([float(i)]) for i in range(500)]
    w = Tensor([1.0, 2.0], requires_grad=True)
    (w * others[3]).sum().backward()
    assert w.grad.tolist() == [3.0, 3.0] and others[3].grad.tolist() == [3.0]
    assert all(t.grad is None for t in others if t is not others[3])

"""What a capture does with Tensors that are older than the call: it is about those that the call meets."""

from __future__ import annotations

import threading

import pytest

from polygrad import Tensor, TinyJit
from polygrad.tensor.core.aliasing import memory_under
from polygrad.tensor.core.registry import live_tensors
from polygrad.uop.node import UOp


def data(*values):
    return Tensor([float(v) for v in values]).realize()


def lazy(*values):
    """A lazy value of its own."""
    return data(*values) + 0.5


def is_lazy(t):
    return memory_under(t.uop) is None


class Counts:
    """`made`: nodes made or found; `walked`: nodes of graphs that were walked."""

    def __init__(self, monkeypatch):
        self.made = self.walked = 0
        make, buffer_of, walk = UOp.__new__, UOp.buffer_of, UOp._collect_sources

        def count_made(cls, *args, **kwargs):
            self.made += 1
            return make(cls, *args, **kwargs)

        def count_buffers(*args):
            self.made += 1
            return buffer_of(*args)

        def count_walked(node, gate):
            order = walk(node, gate)
            self.walked += len(order)
            return order

        monkeypatch.setattr(UOp, "__new__", count_made)
        monkeypatch.setattr(UOp, "buffer_of", staticmethod(count_buffers))
        monkeypatch.setattr(UOp, "_collect_sources", count_walked)


def cost_of_a_capture(others):
    """The nodes that a capture makes and walks, with the Tensors that `others()` makes around."""
    w, x = data(1, 2, 3), data(4, 5, 6)
    kept = others()
    step = TinyJit(lambda x: (x * w).relu() + 1)
    step(x)
    nodes = [t.uop for t in kept]
    with pytest.MonkeyPatch.context() as monkeypatch:
        counts = Counts(monkeypatch)
        result = step(x)
        out = counts.made, counts.walked
    assert step.captured
    assert result.tolist() == [5, 11, 19]
    assert all(t.uop is node for t, node in zip(kept, nodes, strict=True))
    return out


def stored(n):
    kept = [lazy(i) for i in range(n)]
    kept[0].realize(*kept[1:])
    return kept


@pytest.mark.parametrize(
    "others",
    [
        lambda: [lazy(i) for i in range(10_000)],
        lambda: [
            v for i in range(2_500) for y in [lazy(i, i)] for v in (y, y[1:], y.reshape(2, 1), y.flip(0))
        ],
        lambda: stored(1_000),
    ],
    ids=["lazy values", "views of lazy values", "stored values"],
)
def test_ten_thousand_other_tensors_make_no_node_and_no_walk(others):
    cost_of_a_capture(list)  # compiles
    assert cost_of_a_capture(others) == cost_of_a_capture(list)


def test_a_lazy_value_met_through_a_view_gets_memory_and_others_stay_lazy():
    y, other = lazy(1, 2, 3), lazy(7)
    view, node = y[1:], other.uop
    step = TinyJit(lambda x: x + view)
    for i in range(3):
        assert step(data(i, i)).tolist() == [2.5 + i, 3.5 + i]
    assert not is_lazy(y) and not is_lazy(view) and other.uop is node
    y.assign(data(0, 10, 20))
    assert step(data(1, 1)).tolist() == [11, 21]
    view.assign(data(5, 6))
    assert step(data(1, 1)).tolist() == [6, 7]
    assert y.tolist() == [0, 5, 6]


def test_a_lazy_value_is_not_computed_by_the_call():
    x = data(1, 2)
    y = x * 2
    step = TinyJit(lambda z: (z + y, x * 2))  # the second is equal to y, but is computed in each call
    for _ in range(2):
        step(data(0, 0))
    x.assign(data(10, 20))
    got, doubled = step(data(0, 0))
    assert got.tolist() == [2, 4] and doubled.tolist() == [20, 40] and y.tolist() == [2, 4]


def test_the_call_writes_to_lazy_values_and_to_their_views():
    y, z = lazy(1, 2, 3), lazy(1, 2, 3)
    view, before = z[1:], y * 100

    def call(x):
        y.assign(y + x)
        view.assign(view * 2)

    step = TinyJit(lambda x: (call(x), y + 0)[1])
    step(data(1, 1, 1))
    y2, z2 = y.tolist(), z.tolist()
    for i in range(1, 4):
        got = step(data(1, 1, 1))
        assert got.tolist() == y.tolist() == [v + i for v in y2]
        assert z.tolist() == [z2[0], z2[1] * 2**i, z2[2] * 2**i] and view.tolist() == z.tolist()[1:]
    assert before.tolist() == [150, 250, 350]


def test_what_reads_memory_that_the_call_writes_keeps_its_value():
    w = data(1, 2)

    def call(x):
        w.assign(w + x)
        return w * 1

    step = TinyJit(call)
    step(data(1, 1))
    unmet = w * 10  # of [2, 3]
    step(data(1, 1))
    later = w * 10
    step(data(1, 1))
    assert unmet.tolist() == [20, 30] and later.tolist() == [30, 40] and w.tolist() == [4, 5]


def test_values_that_the_call_leaves_lazy_are_those_of_the_captured_call():
    y, left = data(0, 0), {}

    def call(x):
        r = x * 2
        y.replace(r + 1)
        left["z"] = r + 5
        return r

    step = TinyJit(call)
    for i in range(1, 5):
        assert step(data(i, i)).tolist() == [2 * i, 2 * i]
        if i != 2:
            k = min(i, 2)
            assert y.tolist() == [2 * k + 1] * 2 and left["z"].tolist() == [2 * k + 5] * 2


def test_an_exception_in_the_middle_restores_everything():
    read, written, unmet, leaf = lazy(1, 2), lazy(3, 4), lazy(5, 6), lazy(7, 8)
    leaf.requires_grad = True
    kept, view, fails = data(9), unmet[:1], [False, True]

    def call(x):
        out = (read + x).realize()
        written.assign(written * 2)
        written.realize()
        if fails.pop(0):
            raise ZeroDivisionError
        return out

    step = TinyJit(call)
    step(data(1, 1))
    read, written = lazy(1, 2), lazy(3, 4)
    nodes = [(t, t.uop) for t in (unmet, view, leaf, kept)]
    count = len(live_tensors())
    with pytest.raises(ZeroDivisionError):
        step(data(1, 1))
    assert len(live_tensors()) == count
    assert all(t.uop is node for t, node in nodes)
    assert read.tolist() == [1.5, 2.5] and written.tolist() == [7, 9]
    assert unmet.tolist() == [5.5, 6.5] and view.tolist() == [5.5]
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [2, 2]
    fails += [False, False]
    for i in range(2):
        assert step(data(1, 1)).tolist() == [2.5, 3.5]
        assert written.tolist() == [14 * 2**i, 18 * 2**i]


def test_lazy_leaves_and_values_computed_from_them():
    def outcome(wrap):
        leaf, other = lazy(1, 2), lazy(3, 4)
        leaf.requires_grad = other.requires_grad = True
        derived = leaf * 3  # the call meets it, and so the leaf

        def call(x):
            (derived * x).sum().backward(retain_graph=True)
            return derived + x

        step = wrap(call)
        for i in range(3):
            out = step(data(i, 1))
        return out.tolist(), leaf.grad.tolist(), other.grad, derived.tolist(), other.tolist()

    assert outcome(TinyJit) == outcome(lambda f: f)


def test_a_lazy_leaf_that_the_call_reads_gets_its_gradient():
    def outcome(wrap):
        leaf, other = lazy(1, 2), lazy(3, 4)
        leaf.requires_grad = other.requires_grad = True

        def call(x):
            loss = (leaf * x).sum()
            loss.backward()
            return loss

        step = wrap(call)
        losses = [step(data(i, 1)).item() for i in range(4)]
        return losses, leaf.grad.tolist(), other.grad, other.requires_grad, leaf.tolist()

    assert outcome(TinyJit) == outcome(lambda f: f)


def test_a_tensor_that_goes_in_the_call_goes():
    y = [lazy(1), lazy(2)]

    def call(x):
        y.clear()
        return x + 1

    step = TinyJit(call)
    step(data(1))
    y += [lazy(1), lazy(2)]
    assert step(data(1)).tolist() == [2]


def test_another_thread_that_looks_at_a_tensor_does_not_bring_it_into_the_call():
    y = lazy(1, 2)
    node, shapes = y.uop, []

    def call(x):
        thread = threading.Thread(target=lambda: shapes.append((y.shape, y.uop)))
        thread.start()
        thread.join()
        return x + 1

    step = TinyJit(call)
    for _ in range(2):
        step(data(1))
    assert shapes == [((2,), node)] * 2 and y.uop is node

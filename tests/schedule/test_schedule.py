"""How many kernels a program is, what order they come in, and when in-place writes need a copy."""

from __future__ import annotations

import pytest

from polygrad import Tensor
from polygrad.engine.normalize import normalize
from polygrad.schedule.kernels import storage_of
from polygrad.schedule.schedule import prepare
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from tests.schedules import schedule


def data(*shape):
    return Tensor.zeros(*shape).contiguous().realize()


def calls(*outputs, optimized=False):
    return schedule(normalize(UOp.sink(*(t.uop.base for t in outputs))).sink, optimized).calls


def attention(**how):
    q, k, v = (data(2, 4, 16, 8) for _ in range(3))
    return q.scaled_dot_product_attention(k, v, **how)


COUNTS = {
    "softmax": (lambda: data(20, 30).softmax(), 3),
    "log_softmax": (lambda: data(20, 30).log_softmax(), 3),
    "layernorm": (lambda: data(20, 30).layernorm(), 3),
    "attention": (attention, 4),
    "causal attention": (lambda: attention(is_causal=True), 4),
    "linear": (lambda: (data(20, 30) @ data(30, 40) + data(40)).relu(), 1),
    "convolution": (lambda: data(4, 3, 12, 12).conv2d(data(8, 3, 3, 3), data(8), padding=1).relu(), 1),
    "gather": (lambda: data(300, 20)[Tensor([3, 4, 5]).realize()], 1),
    "square": (lambda: ((data(20, 30) - 1).square() + 2).sum(), 1),
    "variance": (lambda: data(20, 30).var(1), 2),
}


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("name", COUNTS)
def test_kernel_counts(name, optimized):
    make, most = COUNTS[name]
    assert 1 <= len(calls(make(), optimized=optimized)) <= most


def test_views_of_outputs_need_no_kernel():
    x = data(4, 6)
    y = (x + 1).contiguous()
    assert len(calls(y, y.reshape(24), y.reshape(6, 4))) == 1


def test_nothing_runs_for_no_elements():
    assert calls(data(4, 6).shrink(((0, 0), (0, 6))) + 1) == ()


def test_a_reduction_of_nothing_is_its_identity():
    sink = prepare(normalize(UOp.sink(data(4, 6).shrink(((0, 0), (0, 6))).sum(0).uop.base)).sink)
    assert not any(n.op is Ops.REDUCE_AXIS for n in sink.toposort())


def test_kernels_come_after_what_they_read():
    x = data(30, 40)
    done = calls((x.softmax() @ x.T).softmax().sum(0) + x.sum())
    written = set()
    for call in done:
        assert all(a.op is Ops.BUFFER or a in written for a in call.args[1:])
        written.add(call.args[0])


def test_readers_come_before_the_write():
    x = data(30)
    old = (x + 1).contiguous()
    x.assign(x * 2)
    order = [c.args[0].op for c in calls(x, old)]
    assert order == [Ops.CONTIGUOUS, Ops.BUFFER]


def test_a_write_at_the_elements_it_reads_is_one_kernel():
    x = data(30)
    x.assign(x * 2 + 1)
    assert len(calls(x)) == 1


@pytest.mark.parametrize(
    "make", [lambda x: x.flip(0), lambda x: x + x.sum(), lambda x: x.reshape(5, 6).permute(1, 0).reshape(30)]
)
def test_a_write_that_reads_other_elements_goes_through_a_buffer(make):
    x = data(30)
    x.assign(make(x))
    done = calls(x)
    assert len(done) == 2 and storage_of(done[-1].args[0]).op is Ops.BUFFER


def test_a_swap_copies_one_side():
    a, b = data(30), data(30)
    old = a + 0.0
    a.assign(b)
    b.assign(old)
    assert len(calls(a, b)) in (3, 4)


def test_equal_layers_are_one_kernel_ast():
    x, kernels = data(16, 16), set()
    for _ in range(6):
        x = (x @ data(16, 16)).relu().contiguous()
    for call in calls(x):
        kernels.add(call.ast)
    assert len(kernels) == 1

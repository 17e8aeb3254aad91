"""Captured functions: a replay does what a call does, on every device; what cannot be captured is refused."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from capture.calls import counted, t

from polygrad import Device, Tensor, TinyJit, Variable, dtypes
from polygrad.engine.stats import stats
from polygrad.errors import (
    ArgumentError,
    CaptureError,
    DeviceError,
    DTypeError,
    GradientError,
    ShapeError,
)
from polygrad.runtime.program import Program

# --- replays


def test_the_function_is_called_twice_and_replays_are_one_program(device):
    body = counted(lambda x, y: (x * y + 1).sum())
    jit = TinyJit(body)
    for i in range(5):
        assert jit(t(i, 2), t(3, 4)).item() == 3 * i + 10
        assert jit.captured == (i >= 1)
    assert body.count == 2 and isinstance(jit.program, Program)
    stats.reset()
    jit(t(0, 0), t(0, 0))
    assert (stats.runs, stats.launches) == (1, len(jit.program.launches))


def test_results_are_the_same_tensors_and_are_overwritten(device):
    jit = TinyJit(lambda x: {"double": x * 2, "more": [x + 1, (x - 1, 7)]})
    jit(t(1))
    a = jit(t(2))
    kept = a["double"].clone().realize()
    b = jit(t(3))
    assert b is a and b["more"][1][1] == 7
    assert (b["double"].item(), b["more"][0].item(), b["more"][1][0].item(), kept.item()) == (6, 4, 2, 4)


def test_arguments_go_by_position_and_keyword_and_lie_in_containers(device):
    jit = TinyJit(lambda x, scale, *, more, bias=None: x * scale[0] + more["a"] - bias)
    for i in range(4):
        got = jit(t(i), [t(2), 5], bias=t(100), more={"a": t(i * i)})
        assert got.item() == 2 * i + i * i - 100


def test_lazy_arguments_and_views_are_computed_first(device):
    x = t(1, 2, 3, 4)
    jit = TinyJit(lambda a: a.sum(0))
    for i in range(4):
        assert jit((x * i).reshape(2, 2).permute(1, 0)).tolist() == [3 * i, 7 * i]


def test_several_programs_of_a_call_become_one(device):
    def body(x):
        a = (x * 2).realize()
        b = (a + 1).realize()
        return b * x

    jit = TinyJit(body)
    for i in range(4):
        assert jit(t(i)).item() == (2 * i + 1) * i
    roles = sorted(b.role for b in jit.program.buffers)
    assert roles == ["input", "output", "scratch", "scratch"]


def test_what_nobody_reads_is_dropped(device):
    def body(x):
        (x * 3).contiguous().exp().realize()
        return x + 1

    jit = TinyJit(body)
    assert [jit(t(i)).item() for i in range(3)] == [1, 2, 3] and len(jit.program.launches) == 1


def test_unused_arguments_may_change(device):
    jit = TinyJit(lambda x, y: x + 1)
    assert [jit(t(i), t(5, i)).item() for i in range(4)] == [1, 2, 3, 4]


def test_a_result_passed_back_in_is_the_next_argument(device):
    jit = TinyJit(lambda h, x: (h * 2 + x).flip(0))
    h, want = t(1, 2), np.array([1.0, 2.0])
    for i in range(6):
        h, want = jit(h, t(i, 1)), (want * 2 + [i, 1])[::-1]
    assert h.tolist() == want.tolist()


def test_the_same_tensor_as_two_arguments_stays_one(device):
    jit = TinyJit(lambda x, y: x - 2 * y)
    for i in range(4):
        x = t(i)
        assert jit(x, x).item() == -i
    with pytest.raises(CaptureError, match="another Tensor than Tensor argument 0"):
        jit(t(1), t(2))
    assert jit(x, x).item() == -3
    separate = TinyJit(lambda x, y: x - 2 * y)
    for i in range(4):
        assert separate(t(i), t(1)).item() == i - 2
    assert separate(x, x).item() == -3


def test_gradients_are_part_of_it(device):
    w = t(1, 2, requires_grad=True)

    def body(x):
        w.grad = None
        ((x * w) ** 2).sum().backward()
        return w.grad

    jit = TinyJit(body)
    for i in range(4):
        assert jit(t(i, 1)).tolist() == [2.0 * i * i, 4.0]


def test_results_carry_no_gradient():
    w = t(1, 2, requires_grad=True)
    jit = TinyJit(lambda x: (x * w).sum())
    jit(t(1, 1))
    out = jit(t(1, 1))
    assert out.requires_grad is False
    with pytest.raises(GradientError, match="no Tensor with requires_grad=True leads to"):
        out.backward()
    assert w.grad is None


def test_methods_capture_for_each_object(device):
    class Model:
        def __init__(self, w):
            self.w, self.calls = t(w), []

        @TinyJit
        def f(self, x):
            """Doc."""
            self.calls.append(x)
            return x * self.w

    a, b = Model(2), Model(3)
    for i in range(4):
        assert (a.f(t(i)).item(), b.f(t(i)).item()) == (2 * i, 3 * i)
    assert (len(a.calls), len(b.calls)) == (2, 2) and a.f.captured and Model.f.__doc__ == "Doc."
    a.f.reset()
    assert not a.f.captured and b.f.captured
    table = Model.f._of
    assert len(table) == 2
    del a, b
    gc.collect()
    assert not table


def test_inside_another_captured_function_it_is_part_of_that(device):
    inner = TinyJit(lambda x: x + 1)
    outer = TinyJit(lambda x: inner(x * 2) * 3)
    for i in range(5):
        assert outer(t(i)).item() == (2 * i + 1) * 3
    for i in range(3):
        assert inner(t(i)).item() == i + 1
    again = TinyJit(lambda x: inner(x) - 1)
    assert [again(t(i)).item() for i in range(4)] == [0, 1, 2, 3]


def test_reset_captures_anew(device):
    scale = np.array([2.0])
    jit = TinyJit(lambda x: x * float(scale[0]))
    assert [jit(t(i)).item() for i in range(3)] == [0, 2, 4]
    scale[0] = 5  # no guard looks into arrays
    assert jit(t(3)).item() == 6
    jit.reset()
    assert [jit(t(i, i)).tolist()[1] for i in range(3)] == [0, 5, 10]


# --- Variables


def test_the_first_call_carries_its_writes_out():
    """As a replay does: writes of calls with other values of a Variable do not meet in one computation."""
    memory, row = Tensor.zeros(4, 2).contiguous().realize(), Variable("row", 0, 3)

    def write(at):
        memory[at : at + 1].assign(Tensor.ones(1, 2))

    TinyJit(write)(row.bind(1))
    TinyJit(write)(row.bind(3))
    assert memory.sum(1).tolist() == [0.0, 2.0, 0.0, 2.0]


@pytest.mark.parametrize("size", [1, 16])
def test_a_variable_whose_bounds_leave_one_value_is_a_number(size):
    start = Variable("start", 0, 0)
    x = Tensor.rand(3, size, size).realize()

    @TinyJit
    def rows(at):
        end = at + size
        seen = Tensor.arange(size)[:end] <= (Tensor.arange(size) + at).reshape(size, 1)
        return seen.where(x[:, :, :end], -1e30).contiguous().softmax(-1)

    for _ in range(3):
        assert rows(start.bind(0)).sum(-1).numpy() == pytest.approx(1.0)


@pytest.mark.parametrize("name", [None, Device.DEFAULT])
def test_what_is_made_of_a_variable_alone_is_computed_in_every_call(name):
    """Also beside what reads memory, and where the first two calls had the same value."""
    x, v = Tensor.ones(8).contiguous().realize(), Variable("n", 1, 8)
    step = TinyJit(lambda n: (x.sum() * 2, Tensor(n, name, "int64") + Tensor(2, name, "int64")))
    assert [step(v.bind(n))[1].item() for n in (8, 8, 5, 6)] == [10, 10, 7, 8]


def test_a_variable_may_change_without_a_new_kernel(device):
    v = Variable("n", 1, 8)
    table = Tensor.arange(8).float().realize()
    jit = TinyJit(lambda n, x: table.shrink(((0, n),)).sum() + x)
    for n in (3, 5):
        jit(v.bind(n), t(1))
    stats.reset()
    for n in (1, 8, 4):
        assert jit(v.bind(n), t(1)).item() == n * (n - 1) / 2 + 1
    assert stats.kernels_compiled == stats.programs == 0
    assert [x.name for x in jit.program.variables] == ["n"]


def test_a_variable_may_stand_in_a_shape(device):
    v = Variable("n", 1, 8)
    x = Tensor.arange(16).float().reshape(8, 2).realize()
    jit = TinyJit(lambda a: (a * 2).sum(0))
    for n in (3, 5, 8, 1):
        got = jit(x.shrink(((0, v.bind(n)), (0, 2))))
        assert got.tolist() == [2.0 * sum(range(0, 2 * n, 2)), 2.0 * sum(range(1, 2 * n, 2))]


def test_an_unbound_variable_and_one_of_two_values_are_refused():
    v = Variable("n", 1, 8)
    table = t(*range(8))
    jit = TinyJit(lambda n: table.shrink(((0, n),)).sum())
    jit(v.bind(2))
    with pytest.raises(ArgumentError, match="it is not bound"):
        jit(v)
    two = TinyJit(lambda: [table.shrink(((0, v.bind(n)),)).sum().realize() for n in (1, 2)])
    two()
    with pytest.raises(CaptureError, match="Variable n is 1 and 2 in one call"):
        two()


# --- what is refused


def test_arguments_of_another_kind_are_refused_and_the_next_call_works(device):
    jit = TinyJit(lambda x, k: x * k)
    for i in range(2):
        jit(t(i, i), 3)
    other = "INTERP" if device != "INTERP" else "CPU"
    for error, args, text in [
        (ShapeError, (t(1), 3), r"Tensor argument 0: expected shape \(2,\), as captured, got \(1,\)"),
        (ShapeError, (t(1, 2).reshape(1, 2), 3), "expected shape"),
        (DTypeError, (Tensor([1, 2]), 3), "expected dtype float32, as captured, got int32"),
        (DeviceError, (t(1, 2, device=other), 3), f"expected device {device}, as captured, got {other}"),
        (CaptureError, (t(1, 2), 4), "that are not Tensors to stay"),
        (CaptureError, (t(1, 2), 3, 4), "that are not Tensors to stay"),
        (CaptureError, (t(1, 2), t(1, 2)), "that are not Tensors to stay"),
        (CaptureError, (np.ones(2), 3), "an argument is a ndarray"),
    ]:
        with pytest.raises(error, match=text):
            jit(*args)
        assert jit(t(1, 2), 3).tolist() == [3, 6]


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: x.data(),
        lambda x: bool(x.sum() > 0),
        lambda x: float(x.sum()),
    ],
)
def test_reading_values_is_refused(read):
    jit = TinyJit(lambda x: (x * 2, read(x))[0])
    jit(t(1, 2))
    with pytest.raises(CaptureError, match=r"a reading of values .* read it after the call"):
        jit(t(1, 2))
    assert t(1, 2).sum().item() == 3


def test_copies_between_devices_are_part_of_it():
    jit = TinyJit(lambda x: ((x * 2).to("INTERP") + 1).to("CPU") * x)
    for i in range(4):
        assert jit(t(i, device="CPU")).item() == (2 * i + 1) * i
    assert [program.device for program in jit.programs] == ["CPU", "INTERP", "CPU"]
    with pytest.raises(CaptureError, match="it has 3 Programs on CPU and INTERP: use `programs`"):
        _ = jit.program


def test_work_on_several_devices_is_a_program_for_each():
    other = t(1, device="INTERP")
    both = TinyJit(
        lambda x: [(x + 1).realize(), (other * 2).assign(other * 3).realize(), other.assign(other + 1)]
    )
    for i in range(4):
        a, b, c = both(t(i, device="CPU"))
        assert (a.item(), b.item(), c.item(), other.item()) == (i + 1, 3 * (i + 1), i + 2, i + 2)


def test_a_function_that_computes_nothing_is_refused():
    jit = TinyJit(lambda x: 5)
    jit(t(1))
    with pytest.raises(CaptureError, match="it does no work on a device: return or realize"):
        jit(t(1))


def test_an_argument_may_be_returned_and_a_view_of_one_is_copied(device):
    jit = TinyJit(lambda x, y: {"x": x, "sum": (x + y, [y])})
    for i in range(4):
        x, y = t(i), t(10 * i)
        got = jit(x, y)
        assert got["x"] is x and got["sum"][1][0] is y
        assert (x.item(), got["sum"][0].item(), y.item()) == (i, 11 * i, 10 * i)
    alone = TinyJit(lambda x: x)
    assert all(alone(x) is x for x in (t(1), t(2), t(3)))
    view = TinyJit(lambda x: (x.reshape(2, 1), x.detach()))
    for i in range(4):
        a, b = view(t(i, 1))
        assert (a.tolist(), b.tolist()) == ([[i], [1]], [i, 1])


def test_an_argument_that_is_written_to_may_be_returned(device):
    jit = TinyJit(lambda x: x.assign(x * 2))
    x = t(1, 2)
    for i in range(1, 5):
        assert jit(x) is x and x.tolist() == [2**i, 2 * 2**i]
    y = t(3, 4)
    assert jit(y) is y and y.tolist() == [6, 8] and x.tolist() == [16, 32]


def test_an_exception_leaves_everything_as_a_call_would(device):
    """What the function did before it failed is done; nothing is captured; arguments are what they were."""
    w, fail = t(1, 2), [False]

    def body(x):
        w.assign(w + x).realize()
        mask = Tensor.rand(2).realize()
        if fail[0]:
            raise KeyError("no")
        return w * 2, mask

    jit = TinyJit(body)
    x = t(1, 1)
    draws = [jit(x)[1].tolist()]
    fail[0] = True
    for _ in range(3):
        with pytest.raises(KeyError):
            jit(x)
        assert x.tolist() == [1, 1] and not jit.captured
    assert w.tolist() == [5, 6]
    fail[0] = False
    for i in range(3):
        out, mask = jit(x)
        draws.append(mask.tolist())
        assert out.tolist() == [2 * (6 + i), 2 * (7 + i)]
    Tensor.manual_seed(0)
    eager = [Tensor.rand(2).tolist() for _ in range(7)]
    assert draws == [eager[0], *eager[4:]]


def test_a_variable_has_the_dtype_that_was_said(device):
    rows = t(1, 2, 3, 4, 5)
    n = Variable("n", 1, 5, dtype="int64")
    assert (
        Tensor(n.bind(2)).dtype is dtypes.int64
        and (Tensor([1], dtype="int8") + n.bind(2)).dtype is dtypes.int64
    )
    assert (Tensor([1], dtype="int16") * (n.bind(2) + 1)).dtype is dtypes.int64
    small = Variable("m", -3, 3, dtype=dtypes.int8).bind(-2)
    assert (Tensor([1, 2], dtype="uint8") + small).dtype is dtypes.int16 and (
        rows + small
    ).dtype is dtypes.float32
    step = TinyJit(lambda x, k: (x[:k].sum() + k, x.cast("int8") * 0 + k))
    for i in range(1, 5):
        total, added = step(rows, n.bind(i))
        assert (
            total.item() == sum(range(i + 1)) + i
            and added.tolist() == [i] * 5
            and added.dtype is dtypes.int64
        )
    with pytest.raises(DTypeError, match="Variable n: expected an integer dtype, got float32"):
        Variable("n", 1, 2, dtype="float32")
    with pytest.raises(OverflowError, match=r"Variable n: expected an integer in -128\.\.127"):
        Variable("n", 1, 200, dtype="int8")

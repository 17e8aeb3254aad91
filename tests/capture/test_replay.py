"""Replays see whatever happens between calls: writes, assignments, evaluations, random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from capture.calls import t
from hypothesis import given, settings
from hypothesis import strategies as st

from polygrad import Tensor, TinyJit, nn
from polygrad.capture.arguments import tensors_in
from polygrad.capture.replay import CapturedStep
from polygrad.errors import CaptureError, ShapeError

# --- state


def test_state_is_written_in_place_and_seen_outside(device):
    w = t(1, 2)
    handle = w.uop.base.arg.handle
    jit = TinyJit(lambda x: (w.assign(w + x), None)[1])
    for i in range(5):
        jit(t(1, i))
        assert w.tolist() == [2 + i, 2 + i * (i + 1) / 2]
    assert w.uop.base.arg.handle == handle
    assert [b.role for b in jit.program.buffers] == ["input", "state"]


def test_an_assignment_that_the_function_does_not_compute_is_part_of_it(device):
    w = t(1)
    jit = TinyJit(lambda x: (w.assign(w * 2), x + 1)[1])
    for i in range(4):
        assert jit(t(i)).item() == i + 1
    assert w.item() == 16


def test_what_is_assigned_between_calls_is_seen(device):
    """Lazily, in place, by replace, by load_state_dict."""
    w = t(2)
    jit = TinyJit(lambda x: x * w)
    for _ in range(2):
        jit(t(1))
    w.assign(t(3))
    assert jit(t(1)).item() == 3
    w.assign(w + 1).realize()
    assert jit(t(1)).item() == 4
    w.replace(t(7))
    assert jit(t(1)).item() == 7
    nn.state.load_state_dict({"w": w}, {"w": t(9)}, verbose=False)
    assert jit(t(1)).item() == 9
    w.assign(t(10))
    assert jit(t(1)).item() == 10
    w.uop = t(1, 2).uop
    with pytest.raises(CaptureError, match="a Tensor that it uses was"):
        jit(t(1))


def test_an_assignment_pending_before_the_capture_is_made_once(device):
    rate = t(1)
    jit = TinyJit(lambda x: x * rate)
    jit(t(1))
    rate.assign(t(5))
    assert jit(t(1)).item() == 5
    rate.assign(t(6)).realize()
    assert jit(t(1)).item() == 6


def test_lazy_weights_are_computed_once_and_no_part_of_the_replay(device):
    w = Tensor.rand(4, 4)
    jit = TinyJit(lambda x: (x @ w).sum())
    jit(t(1, 2, 3, 4))
    want = jit(t(1, 2, 3, 4)).item()
    assert want == pytest.approx((np.array([1, 2, 3, 4]) @ w.numpy()).sum(), rel=1e-6)
    assert "param" in {b.role for b in jit.program.buffers}
    assert sum(b.dtype == "uint64" for b in jit.program.buffers) == 0


def test_lazy_tensors_from_before_the_capture_keep_the_old_value(device):
    w = t(1)

    def body():
        w.assign(w + 1).realize()
        return w * 10

    jit = TinyJit(body)
    jit()
    lazy, double = w * 100, (w * 2).detach()
    view = w.reshape(1, 1)
    assert jit().item() == 30
    assert (lazy.item(), double.item()) == (200, 4)
    assert jit().item() == 40 and (lazy.item(), view.item()) == (200, 4)


def test_evaluations_between_replays_are_never_stale(device):
    w = t(1, requires_grad=True)
    x = t(3)
    jit = TinyJit(lambda: (w.assign((w + 1).detach()), None)[1])
    seen = []
    for _ in range(6):
        seen.append((w * x).sum().realize())  # keeps its graph, for backward
        jit()
    assert [s.item() for s in seen] == [3, 6, 9, 12, 15, 18]


def test_results_used_eagerly_are_never_stale(device):
    jit = TinyJit(lambda x: x * 2)
    later = []
    for i in range(6):
        later.append((jit(t(i)) + 1).realize())
    assert [x.item() for x in later] == [2 * i + 1 for i in range(6)]


def test_an_argument_written_in_place_is_the_callers(device):
    jit = TinyJit(lambda cache, x: (cache.assign(cache + x), None)[1])
    a, b = t(0), t(100)
    seen = []
    for i in range(6):
        jit(a, t(1))
        jit(b, t(i))
        seen.append((a * 1).realize())
    assert (a.item(), b.item(), [s.item() for s in seen]) == (6, 115, [1, 2, 3, 4, 5, 6])


def test_a_tensor_that_the_function_keeps_shows_the_last_call(device):
    class Model:
        def __call__(self, x):
            self.hidden = (x * 2).realize()
            return self.hidden + 1

    model = Model()
    jit = TinyJit(model)
    for i in range(4):
        assert jit(t(i)).item() == 2 * i + 1 and model.hidden.item() == 2 * i


# --- random numbers


def test_random_numbers_go_on_as_if_it_was_called(device):
    def body(x):
        return (x + Tensor.rand(3)).realize(), Tensor.randn(2), Tensor.randint(4, high=1000)

    def play(function):
        Tensor.manual_seed(7)
        out = []
        for i in range(8):
            out.append([r.tolist() for r in function(t(0, i, 0))])
            if i % 3 == 2:
                out.append(Tensor.rand(5).tolist())
            if i == 5:
                Tensor.manual_seed(11)
        return out

    assert play(TinyJit(body)) == play(body)


def test_two_captured_functions_share_the_random_numbers():
    bodies = [lambda: Tensor.rand(3), lambda: Tensor.rand(5)]
    jits = [TinyJit(b) for b in bodies]

    def play(functions):
        Tensor.manual_seed(1)
        return [functions[i].__call__().tolist() for i in (0, 1, 0, 0, 1, 1, 0, 1, 0)]

    assert play(jits) == play(bodies)


def test_a_seed_inside_is_refused():
    jit = TinyJit(lambda: (Tensor.manual_seed(1), Tensor.rand(2))[1])
    jit()
    with pytest.raises(CaptureError, match=r"Tensor\.manual_seed: .* call it before"):
        jit()


# --- anything at all: eager and captured worlds side by side

ACTIONS = ("step", "step", "step", "evaluate", "draw", "assign", "assign_lazily", "mix", "read")


@settings(max_examples=25)
@given(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=14))
def test_whatever_happens_between_calls_results_are_those_of_eager_calls(actions):
    def play(wrap):
        Tensor.manual_seed(3)
        w, m = t(1, 2, 3, requires_grad=True), t(0, 0, 0)

        def body(x):
            w.grad = None
            loss = ((w * x).sum() - 1) ** 2 + (Tensor.rand(3) * w).sum()
            loss.backward()
            with Tensor.no_grad():
                m.assign(m * 0.5 + w.grad)
                w.assign(w.detach() - m * 0.01)
            w.realize(m)
            return loss

        step, out, kept = wrap(body), [], []
        for i, action in enumerate(actions):
            if action == "step":
                out.append(step(t(i, 1, 2)).item())
            elif action == "evaluate":
                kept.append((w * t(1, 2, 3)).sum().realize())
            elif action == "draw":
                out.append(Tensor.rand(2).tolist())
            elif action == "assign":
                w.assign(w.detach() + 1).realize()
            elif action == "assign_lazily":
                m.assign(m * 2)
            elif action == "mix":
                kept.append(((w * i).realize() + m).realize())
            else:
                out.append([w.tolist(), m.tolist()])
        return out, [k.tolist() for k in kept], w.tolist()

    assert play(TinyJit) == play(lambda f: f)


# --- calls with the same arguments: a replay after which nothing was done has nothing to bind

SAME_ARGUMENTS = (
    "step", "step", "step", "step", "pure", "pure", "drawn", "other argument", "write", "write lazily",
    "write a part", "write weights", "write a result", "keep lazily", "keep a result", "view", "replace",
    "read", "compute",
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(st.sampled_from(SAME_ARGUMENTS), min_size=4, max_size=24))
def test_calls_with_the_same_arguments_are_eager_calls(actions):
    def play(wrap):
        Tensor.manual_seed(5)
        w, m, x, other = t(1, 2, 3), t(0, 0, 0), t(1, -1, 2), t(3, 1, 1)

        def body(x):
            m.assign(m * 0.5 + x * w)
            return (m * 2 + x).realize(m)

        step, pure = wrap(body), wrap(lambda x: (x * w).realize())
        drawn = wrap(lambda x: (x * Tensor.rand(3)).realize())
        result, out, kept, views = pure(x), [], [], []
        for i, action in enumerate(actions):
            if action in ("step", "other argument"):
                result = step(x if action == "step" else other)
                out.append(result.tolist())
            elif action in ("pure", "drawn"):
                out.append((pure if action == "pure" else drawn)(x).tolist())
            elif action == "write":
                x.assign(x + i).realize()
            elif action == "write lazily":
                x.assign(x * 2 - i)
            elif action == "write a part":
                x[1:] = x[:2] + 1
            elif action == "write weights":
                w.assign(w * 0.5 + i).realize()
            elif action == "write a result":
                result += 1
                out.append(result.tolist())
            elif action == "keep lazily":
                kept.append(m * 3 + w)
            elif action == "keep a result":
                kept.append(result + x)
            elif action == "view":
                views.append((m if i % 2 else x)[1:])
            elif action == "replace":
                w.replace(t(i, 1, 2))
            elif action == "compute":
                kept.append((m + w).realize())
            else:
                out.append([x.tolist(), w.tolist(), m.tolist()])
        return out, [k.tolist() for k in kept], [v.tolist() for v in views], x.tolist(), m.tolist()

    assert play(TinyJit) == play(lambda f: f)


def test_a_call_after_which_nothing_was_done_binds_nothing(device, monkeypatch):
    x, other, w, bound = t(1, 2), t(3, 4), t(5, 6), []
    jit = TinyJit(lambda x: (x * w).realize())
    for _ in range(3):
        jit(x)
    run = CapturedStep.run
    monkeypatch.setattr(CapturedStep, "run", lambda self, *a: (bound.append(1), run(self, *a))[1])

    def binds(x):
        bound.clear()
        assert jit(x).tolist() == [a * b for a, b in zip(x.tolist(), w.tolist(), strict=True)]
        return bool(bound)

    assert not binds(x) and binds(other) and binds(x) and not binds(x)
    w.assign(w + 1).realize()
    assert binds(x) and not binds(x)
    kept = x + 1
    assert binds(x) and kept.tolist() == [2, 3]
    with pytest.raises(CaptureError, match="expected the arguments that are not Tensors"):
        jit(7)
    with pytest.raises(ShapeError):
        jit(t(1))
    binds(x)
    assert not binds(x)


def test_the_same_tensors_in_another_structure_are_another_call(device):
    x, y = t(1, 2), t(3, 4)
    for arguments, others in (
        (([x, y],), [(x, y), ((x, y),), ([x], y)]),
        ((x, y), [([x, y],), (x,), (x, y, y), (x, [y])]),
    ):
        jit = TinyJit(lambda *args: (Tensor.stack(*tensors_in(args)) + 1).realize())
        for _ in range(4):
            assert jit(*arguments).tolist() == [[2, 3], [4, 5]]
        for other in others:
            with pytest.raises(CaptureError, match="the arguments that are not Tensors to stay"):
                jit(*other)
            assert jit(*arguments).tolist() == [[2, 3], [4, 5]]


def test_parameters_with_defaults_and_names_in_calls_with_the_same_tensors(device):
    x, y = t(1, 2), t(3, 4)
    jit = TinyJit(lambda a, b=None, k=2: (a * k + (0 if b is None else b)).realize())
    for _ in range(4):
        assert jit(x, y).tolist() == jit(x, b=y).tolist() == [5, 8]
    assert jit(b=x, a=y).tolist() == [7, 10] and jit(x, y).tolist() == [5, 8]
    for wrong in ((x,), (x, y, 3), (y, None)):
        with pytest.raises(CaptureError, match="the arguments that are not Tensors to stay"):
            jit(*wrong)
    assert jit(y, x).tolist() == [7, 10]


def test_what_a_capture_did_not_compute_does_not_pass_for_computed(device):
    """Graphs are hash-consed: an eager call makes the nodes that the capture before it made."""
    w = t(1, 2, 3)

    def body(x):
        square = (w * w).realize()
        w.assign(w + 1)
        return square * x + (w * 3).realize()

    want = lambda x: (w.numpy() ** 2 * x + 3 * (w.numpy() + 1)).tolist()
    for _ in range(3):
        jit = TinyJit(body)
        for i in range(3):
            expected = want(i)
            assert jit(t(i, i, i)).tolist() == expected
            if i == 1:
                assert (w * 3).tolist() == (w.numpy() * 3).tolist()
                assert (w * w).tolist() == (w.numpy() ** 2).tolist()

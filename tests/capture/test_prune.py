"""TinyJit(prune=True): what no argument changes is done once, and again when what it reads has changed."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from capture.calls import t

from polygrad import Tensor, TinyJit, Variable, export
from polygrad.engine.stats import stats


def launches(jit, *args):
    """How many kernels a call launches."""
    stats.reset()
    jit(*args)
    return stats.launches


def forward(w, prune=True):
    return TinyJit(lambda x: x @ (w * 2).exp().contiguous(), prune=prune)


def test_constant_work_runs_once(device):
    w, jit = t(1, 2), forward(t(1, 2))
    x = t(3, 4)
    want = 3 * np.exp(2) + 4 * np.exp(4)
    assert jit(x).item() == pytest.approx(want, rel=1e-5)
    assert launches(jit, x) == 2  # captures: the constant kernel, and the one that is left
    for _ in range(3):
        assert launches(jit, x) == 1 and jit(x).item() == pytest.approx(want, rel=1e-5)
    assert jit(t(1, 0)).item() == pytest.approx(np.exp(2), rel=1e-5)
    whole = forward(w, prune=False)
    assert [launches(whole, x) for _ in range(3)] == [2, 2, 2]


def test_it_is_done_again_when_what_it_reads_was_written_to(device):
    w = t(1, 2)
    jit, x = forward(w), t(1, 1)
    for value in (0.0, 1.0, 0.5):
        for _ in range(3):
            assert jit(x).item() == pytest.approx(np.exp(2 * w.numpy()).sum(), rel=1e-5)
        w.assign(t(value, value)).realize()
    w.replace(t(3, 3))
    assert jit(x).item() == pytest.approx(2 * np.exp(6), rel=1e-5)


def test_it_is_done_again_after_another_captured_step_has_written(device):
    w = t(1, 2)

    @TinyJit
    def train(g):
        w.assign(w - g).realize()
        return w.sum()

    jit, x = forward(w), t(1, 1)
    for _ in range(5):
        train(t(0.25, 0.5))
        assert jit(x).item() == pytest.approx(np.exp(2 * w.numpy()).sum(), rel=1e-5)
        assert jit(x).item() == pytest.approx(np.exp(2 * w.numpy()).sum(), rel=1e-5)


def test_a_constant_result_that_was_overwritten_comes_back(device):
    w = t(1, 2)
    jit = TinyJit(lambda x: (x + 1, (w * 3).contiguous()), prune=True)
    for i in range(4):
        a, b = jit(t(i, i))
        assert (a.tolist(), b.tolist()) == ([i + 1, i + 1], [3, 6])
        if i >= 2:
            b.assign(b * 0).realize()


def test_state_variables_and_random_numbers_are_never_constant(device):
    count, rows = t(0), Tensor.arange(10).float().realize()

    @TinyJit(prune=True)
    def step(x, n):
        count.assign(count + 1)
        return x * 0 + count, rows[:n].sum(), Tensor.rand(1) + 0 * x

    drawn = set()
    for i in range(1, 6):
        c, total, r = step(t(0), Variable("n", 1, 9).bind(i))
        assert (c.item(), count.item(), total.item()) == (i, i, sum(range(i)))
        drawn.add(r.item())
    assert len(drawn) == 5


def test_what_a_scratch_buffer_holds_for_both_is_kept(device):
    """A constant and what depends on an argument, in several Programs, share scratch memory."""
    w = t(1, 2, 3)

    def body(x):
        a = (w * w).realize()
        b = (a + x).realize()
        c = (a * 2).realize()
        return b * c

    for prune in (True, False):
        jit = TinyJit(body, prune=prune)
        for i in range(4):
            x = t(i, i + 1, i + 2)
            square = w.numpy() ** 2
            np.testing.assert_array_equal(jit(x).numpy(), (square + x.numpy()) * square * 2)


def test_a_saved_step_holds_what_was_done_once(tmp_path, device):
    w = t(1, 2)
    jit, x = forward(w), t(3, 4)
    jit(x), jit(x)
    jit.save(tmp_path / "model.pgrd", {"w": w})
    loaded = export.load(tmp_path / "model.pgrd", native=True)
    (spec,) = loaded.parameters  # the weight itself is not needed any more
    np.testing.assert_allclose(loaded.parameter(spec.name).numpy(), np.exp([2, 4]), rtol=1e-5)
    (got,) = loaded.run(x=x).values()
    assert np.asarray(got).item() == pytest.approx(3 * np.exp(2) + 4 * np.exp(4), rel=1e-5)


def module_level(x):
    return x * 2


pruned = TinyJit(module_level, prune=True)


def test_copies_keep_it():
    for other in (copy.copy(pruned), copy.deepcopy(pruned), pickle.loads(pickle.dumps(pruned))):
        assert other._prune and other(t(2)).item() == 4

    class Model:
        @TinyJit(prune=True)
        def f(self, x):
            return x + 1

    assert Model().f(t(1)).item() == 2 and Model().f._prune

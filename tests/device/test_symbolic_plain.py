"""Random programs over symbolic sizes agree exactly with the same steps on plain arrays: eager, and captured
and replayed with other values. They need neither numpy nor hypothesis, so they run inside Pyodide too."""

from __future__ import annotations

import random

import pytest
from plain import Plain, assert_same

from polygrad import Tensor, TinyJit, Variable

BATCHES = 5
COUNT = 120
I, J = Variable("i", 1, 4), Variable("j", 1, 6)
BASE = Plain((4, 6), [(k * 7) % 11 - 4 for k in range(24)])


def _cat(p):
    rows = p.shape[0]
    return p.pad(((0, rows), (0, 0))).map(lambda a, b: a + b, p.map(lambda x: x * 2).pad(((rows, 0), (0, 0))))


def _sum(axis):
    return lambda p: p.sum((axis,), True).expand(p.shape)


# Steps from two axes to two: on Tensors, and on plain arrays.
STEPS = {
    "last row": (lambda t: t[-1:], lambda p: p.shrink(((p.shape[0] - 1, p.shape[0]), (0, p.shape[1])))),
    "first column": (lambda t: t[:, :1], lambda p: p.shrink(((0, p.shape[0]), (0, 1)))),
    "flip": (lambda t: t.flip(1), lambda p: p.flip((1,))),
    "transpose": (lambda t: t.T, lambda p: p.permute((1, 0))),
    "double": (lambda t: t * 2 - 1, lambda p: p.map(lambda x: x * 2 - 1)),
    "square": (lambda t: t * t % 13, lambda p: p.map(lambda x: x * x % 13)),
    "cat": (lambda t: t.cat(t * 2), _cat),
    "pad": (lambda t: t.pad(((1, 0), (0, 2))), lambda p: p.pad(((1, 0), (0, 2)))),
    "sum of rows": (lambda t: t.sum(0, keepdim=True).expand(t.shape), _sum(0)),
    "sum of columns": (lambda t: t - t.sum(1, keepdim=True), lambda p: p.map(lambda a, b: a - b, _sum(1)(p))),
    "greatest": (lambda t: t.max(1, keepdim=True), lambda p: p.max((1,), True)),
    "product": (lambda t: t @ t.T % 101, lambda p: (p @ p.permute((1, 0))).map(lambda x: x % 101)),
    "flat": (lambda t: t.reshape(1, -1), lambda p: p.reshape((1, len(p.elements)))),
    "count": (lambda t: t * t.shape[0], lambda p: p.map(lambda x: x * p.shape[0])),
}


def _steps(pick):
    names, size = [], 24
    while len(names) < 5 and size < 500:
        names.append(pick(sorted(STEPS)))
        size *= 4 if names[-1] in ("cat", "pad", "product") else 1
    return names


def _run(x, names, side):
    for name in names:
        x = STEPS[name][side](x)
    return x


def _check(got, want, what):
    assert len(got.shape) == 2, what
    assert_same(got.shrink(tuple((0, n) for n in want.shape)).tolist(), want.tolist(), what)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs_over_symbolic_sizes(device, batch):
    base = Tensor(BASE.tolist(), device=device, dtype="int32").realize()
    for seed in range(batch, COUNT, BATCHES):
        chosen = random.Random(seed)
        names = _steps(chosen.choice)
        run = (
            (lambda x, names=names: _run(x, names, 0))
            if seed % 2
            else (lambda x, names=names: _run(x, names, 0) + 0)
        )
        call = TinyJit(run) if seed % 3 else run
        for _ in range(4 if seed % 3 else 2):
            i, j = chosen.randint(1, 4), chosen.randint(1, 6)
            want = _run(BASE.shrink(((0, i), (0, j))), names, 1)
            _check(call(base[: I.bind(i), : J.bind(j)]), want, f"{names} at i={i}, j={j}")

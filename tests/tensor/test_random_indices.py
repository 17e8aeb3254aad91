"""Random indices, of integers, slices, None, Ellipsis, masks, lists and arrays, are read, differentiated,
written and updated; torch is the judge."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from polygrad import Tensor, TinyJit
from polygrad.errors import AxisError, CaptureError, PolygradError


def _index(random: Random, rng: Any, shape: tuple[int, ...]) -> list[Any]:
    """Entries for some or all axes of `shape`; arrays are numpy's."""
    entries: list[Any] = []
    axis = 0
    while axis < len(shape):
        n, kind = shape[axis], random.randrange(9)
        if kind == 0:
            entries.append(random.randrange(-n, n))
        elif kind == 1:
            bounds = random.choice([None, 0, 1, -1]), random.choice([None, 2, -1, 5])
            entries.append(slice(*bounds, random.choice([None, 1, 2])))
        elif kind == 2:
            entries.append(None)
            continue
        elif kind == 3 and not any(i is Ellipsis for i in entries):
            entries.append(Ellipsis)
            axis += random.randint(0, len(shape) - axis)
            continue
        elif kind in (4, 5):
            span = random.randint(1, min(2, len(shape) - axis))
            entries.append(rng.random(shape[axis : axis + span]) < 0.5)
            axis += span
            continue
        elif kind in (6, 7):
            array = rng.integers(-n, n, size=(2,))
            entries.append(array if kind == 6 else array.tolist())
        else:
            break
        axis += 1
    return entries


def _run(seed: int, device: str) -> None:
    random, rng = Random(seed), np.random.default_rng(seed)
    shape = tuple(random.randint(1, 4) for _ in range(random.randint(1, 3)))
    entries = _index(random, rng, shape)
    kind = random.choice(["numpy", "Tensor", "list"])

    def converted(make: Any) -> Any:
        made = tuple(make(i) if isinstance(i, np.ndarray) else i for i in entries)
        return made[0] if len(made) == 1 and seed % 3 == 0 else made

    theirs = converted(torch.tensor)
    made = {"numpy": lambda i: i, "Tensor": lambda i: Tensor(i, device=device), "list": lambda i: i.tolist()}
    ours = converted(made[kind])
    what = f"program {seed}: {shape} [{entries}] of {kind}s on {device}"

    array = rng.normal(size=shape).astype(np.float32)
    t, x = torch.tensor(array, requires_grad=True), Tensor(array, device=device, requires_grad=True)
    try:
        want = t[theirs]
    except IndexError:
        with pytest.raises(PolygradError):
            x[ours]
        return
    try:
        got = x[ours]
    except AxisError:  # torch looks at no index where nothing is read
        assert not want.numel(), what
        return
    assert got.shape == tuple(want.shape), what
    np.testing.assert_array_equal(got.numpy(), want.detach().numpy(), what)
    if want.numel():
        (want * want).sum().backward()
        (got * got).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-5, err_msg=what)

    value = rng.normal(size=tuple(want.shape)).astype(np.float32) if random.random() < 0.7 else 2.0
    t, x = torch.tensor(array), Tensor(array, device=device)
    view, theirs_view = x[:], t[:]
    if random.random() < 0.3:
        t[theirs] *= 3
        x[ours] *= 3
    else:
        t[theirs] = torch.tensor(value)
        x[ours] = Tensor(value, device=device) if random.random() < 0.5 else value
    np.testing.assert_allclose(x.numpy(), t.numpy(), rtol=1e-6, err_msg=what)
    np.testing.assert_allclose(view.numpy(), theirs_view.numpy(), rtol=1e-6, err_msg=what)


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_random_indices_are_torchs(device: str, first: int) -> None:
    for seed in range(first, first + (100 if device == "INTERP" else 40)):
        _run(seed, device)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 12_000, 500))
def test_many_random_indices_are_torchs(device: str, first: int) -> None:
    for seed in range(first, first + 500):
        _run(seed, device)


def test_masks_of_another_shape_are_index_errors() -> None:
    x = Tensor.ones(3, 4)
    for index in ([True, False], [[True] * 3] * 4, (slice(None), [True] * 3)):
        with pytest.raises(AxisError, match="mask of shape"):
            x[index]


def test_a_captured_function_counts_no_mask() -> None:
    jit = TinyJit(lambda x: x[x > 0].sum().realize())
    with pytest.raises(CaptureError, match="a reading of values"):
        for _ in range(3):
            jit(Tensor([1.0, -2.0]).realize())

"""Loop fusion (`codegen/lower/fuse_loops.py`): kernels whose loops were divided, run on every device."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polygrad import Tensor, TinyJit
from polygrad.uop.args import Axis, AxisKind

RNG = np.random.default_rng(4)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_segments_of_one_axis_are_told_from_its_other_children() -> None:
    axis = Axis((5,), AxisKind.LOOP)
    first, second = axis.segment(0), axis.segment(1)
    assert first.is_other_segment(second) and first.child(0).is_other_segment(second.child(0))
    for other in (first, axis, axis.child(0), axis.child(1), axis.copy(0), second.child(0)):
        assert not first.is_other_segment(other)
    assert not Axis((5,), AxisKind.LOOP).is_other_segment(Axis((7,), AxisKind.LOOP))  # two axes of a kernel
    assert not first.child(0).is_other_segment(second.child(1))


@pytest.mark.parametrize(("rows", "columns"), [(1023, 101), (700, 300), (4100, 17), (2050, 33)])
def test_sums_of_columns_count_each_element_once(device: str, rows: int, columns: int) -> None:
    """Added up in place: a part that ran twice, or over elements of another, would count some again."""
    x = normal(rows, columns)
    expected = x.astype(np.float64).sum(0)
    step = TinyJit(lambda t: t.sum(0).realize())
    for _ in range(3):
        found = step(Tensor(x, device=device)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@given(data=st.data())
def test_joined_and_padded_rows_and_pools_are_torchs(device: str, data: st.DataObject) -> None:
    size = st.integers(1, 70)
    a, b = normal(2, data.draw(size), data.draw(size)), data.draw(size)
    x, other = Tensor(a, device=device), normal(2, a.shape[1], b)
    joined = x.cat(Tensor(other, device=device), dim=2) * 2
    np.testing.assert_array_equal(joined.numpy(), np.concatenate([a, other], 2) * 2)
    before, after = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    padded = (x + 1).pad(((0, 0), (1, 0), (before, after)))
    np.testing.assert_array_equal(padded.numpy(), np.pad(a + 1, ((0, 0), (1, 0), (before, after))))
    images = normal(2, 3, data.draw(st.integers(3, 40)), data.draw(st.integers(3, 40)))
    kernel, stride = data.draw(st.integers(2, 3)), data.draw(st.integers(1, 3))
    pooled = Tensor(images, device=device).max_pool2d(kernel, stride, padding=1)
    expected = torch.nn.functional.max_pool2d(torch.from_numpy(images), kernel, stride, 1)
    np.testing.assert_array_equal(pooled.numpy(), expected.numpy())


def test_rows_are_written_in_order_and_views_see_them(device: str) -> None:
    """Of a row that is written twice the last values stay, in every part of it."""
    table, values = normal(40, 300), normal(5, 300)
    rows = np.array([3, 7, 3, 39, 7], np.int32)
    x = Tensor(table, device=device).clone().realize()
    view = x[2:9, 250:]
    x[Tensor(rows, device=device)] = Tensor(values, device=device)
    for row, value in zip(rows, values, strict=True):
        table[row] = value
    np.testing.assert_array_equal(view.numpy(), table[2:9, 250:])
    np.testing.assert_array_equal(x.numpy(), table)

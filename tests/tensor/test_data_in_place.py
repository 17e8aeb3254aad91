"""`Tensor._data`: the elements themselves, where Python can look at the device's memory."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.errors import ArgumentError, DeviceError


@pytest.mark.parametrize("device", ["CPU", "INTERP"])
def test_it_is_written_through(device):
    x = Tensor([[1, 2], [3, 4]], device=device)
    view = x._data
    assert view.shape == (2, 2) and view.dtype == np.int32
    view[0] = [7, 8]
    assert x.tolist() == [[7, 8], [3, 4]]
    scalar = Tensor(1.5, device=device)
    scalar._data[...] = 2.5
    assert scalar.item() == 2.5
    half = Tensor([1.0], device=device).half()
    half._data[0] = 0x4000
    assert half.item() == 2


def test_what_was_computed_before_is_not_taken_for_new():
    x = Tensor([1.0, 2.0], device="CPU")
    old = (x * 2).realize()
    x._data[:] = 5
    assert (x * 2).tolist() == [10, 10] and old.tolist() == [2, 4]


def test_the_view_keeps_the_memory():
    view = Tensor([1.0, 2.0], device="CPU")._data
    gc.collect()
    others = [Tensor([9.0, 9.0], device="CPU").realize() for _ in range(20)]
    assert view.tolist() == [1, 2] and others


def test_where_it_cannot_be_had_the_error_says_what_to_do():
    with pytest.raises(
        DeviceError, match=r"device WASM: Python cannot access its memory: copy with Tensor\.data"
    ):
        _ = Tensor([1.0], device="WASM")._data
    w = Tensor([1.0], requires_grad=True)
    with pytest.raises(ArgumentError, match=r"got a lazy one: detach\(\) it"):
        _ = (w * 2)._data


def test_without_numpy_it_is_a_memoryview():
    code = (
        "from polygrad import Tensor\n"
        "import sys\n"
        "x = Tensor([[1.0, 2.0], [3.0, 4.0]], device='CPU')\n"
        "v = x._data\n"
        "assert 'numpy' not in sys.modules and type(v) is memoryview and v.shape == (2, 2)\n"
        "v[1, 0] = 9\n"
        "assert x.tolist() == [[1, 2], [9, 4]]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

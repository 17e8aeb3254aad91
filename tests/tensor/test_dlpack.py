"""Memory exchanged with numpy and torch by DLPack: shared where it can be, and always the same elements."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from polygrad import Tensor
from polygrad.errors import ArgumentError, DTypeError
from polygrad.tensor.core import dlpack_capsule

DTYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (4, 1, 5)])
def test_numpy_reads_the_very_memory(dtype, shape):
    a = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    t = Tensor(a, device="CPU")
    b = np.from_dlpack(t)
    np.testing.assert_array_equal(a, b)
    assert b.dtype == a.dtype
    t.assign(t.cast("int32").eq(0).cast(t.dtype)).realize()
    np.testing.assert_array_equal(b, (a == 0).astype(dtype))


def test_torch_and_a_tensor_write_to_one_memory():
    t = Tensor([[1.0, 2.0], [3.0, 4.0]], device="CPU").realize()
    view = t.T
    a = torch.from_dlpack(t)
    a[0, 1] = 9.0
    assert (
        t.tolist() == [[1, 9], [3, 4]] and view.tolist() == [[1, 3], [9, 4]] and (t + 0).tolist()[0] == [1, 9]
    )
    t[1, 0] = 7.0
    t.realize()
    assert a.tolist() == [[1, 9], [7, 4]]
    del t, view
    gc.collect()
    assert a.sum().item() == 21
    del a
    gc.collect()
    assert not dlpack_capsule._exported


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_a_tensor_reads_torchs_memory(dtype):
    a = torch.arange(1000).reshape(50, 20).to(getattr(torch, dtype))
    t = Tensor.from_dlpack(a)
    assert str(t.dtype) == dtype and t.float().tolist() == a.float().tolist()
    found = dlpack_capsule.take(a.__dlpack__())
    if found.may_be_shared():
        a[3, 4] = 0
        assert t[3, 4].item() == 0
        del a
        gc.collect()
        assert t[49, 19].float().item() == torch.tensor(999).to(getattr(torch, dtype)).float().item()
    copied = Tensor.from_dlpack(torch.ones(3), copy=True)
    assert copied.tolist() == [1, 1, 1]


def test_memory_with_bytes_around_it_is_shared():
    pages = np.zeros(1 << 14, np.uint8)
    start = -pages.ctypes.data % 4096 + 64  # 64 bytes after the start of a page
    a = pages[start : start + 96].view(np.float32).reshape(4, 6)
    for part in (a, a[:, None], a[1:2], a[2, 3:]):
        t = Tensor.from_dlpack(part, copy=False)
        a += 1
        np.testing.assert_array_equal(t.numpy(), part)
        t.assign(t + 1).realize()
        np.testing.assert_array_equal(t.numpy(), part)
    with pytest.raises(BufferError):
        Tensor.from_dlpack(a[:, 1], copy=False)


@pytest.mark.parametrize("i", range(6))
def test_strides_of_any_kind_are_copied(i):
    a = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    view = [
        a.T,
        a[::2],
        a[:, ::-1],
        a[1:, :, 2],
        np.broadcast_to(a[:, :1], (3, 4, 5)).copy()[::-1, ::-2],
        a[:0],
    ][i]
    np.testing.assert_array_equal(Tensor.from_dlpack(view).numpy(), view)
    t = torch.tensor(a).permute(2, 0, 1)[1:, :2]
    assert Tensor.from_dlpack(t).tolist() == t.tolist()
    assert Tensor.from_dlpack(t.expand(2, *t.shape)).tolist() == t.expand(2, *t.shape).tolist()


def test_what_is_no_memory_of_its_own_is_exported_as_a_copy():
    t = Tensor([[1.0, 2.0], [3.0, 4.0]])
    for x in (t.T, t[:, 1], t * 2, Tensor.ones(2, 2), t.to("INTERP"), t.to("WASM"), Tensor.zeros(0, 3)):
        np.testing.assert_array_equal(np.from_dlpack(x), x.numpy())
    for x in (t.T, t[:, 1], t.to("WASM")):
        with pytest.raises(BufferError):
            x.__dlpack__(copy=False)
    np.testing.assert_array_equal(np.from_dlpack(t, copy=True), t.numpy())


def test_what_cannot_be_exchanged_is_refused():
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(Tensor([1.0], requires_grad=True))
    with pytest.raises(DTypeError, match="fp8"):
        Tensor([1.0], dtype="fp8e4m3").__dlpack__()
    with pytest.raises(ArgumentError, match="__dlpack__"):
        Tensor.from_dlpack([1.0])
    with pytest.raises(DTypeError, match="code 5"):
        Tensor.from_dlpack(np.ones(2, np.complex64))
    with pytest.raises(BufferError):
        Tensor.from_dlpack(np.ones((4, 4))[::2], copy=False)
    read_only = np.ones(3)
    read_only.flags.writeable = False
    assert Tensor.from_dlpack(read_only).tolist() == [1, 1, 1]


def test_capsules_that_nobody_takes_are_freed():
    t = Tensor([1.0, 2.0], device="CPU")
    for version in (None, (1, 0)):
        capsule = t.__dlpack__(max_version=version)
        assert len(dlpack_capsule._exported) == 1
        del capsule
        gc.collect()
        assert not dlpack_capsule._exported
    capsule = t.__dlpack__()
    assert dlpack_capsule.take(capsule).shape == (2,)
    with pytest.raises(ArgumentError, match="was taken before"):
        dlpack_capsule.take(capsule)


def test_torchs_constructors_take_a_tensor():
    for values in ([[1.0, 2.0], [3.0, 4.0]], 3.5, [1, 2]):
        t = Tensor(values)
        for made in (torch.tensor(t), torch.as_tensor(t), torch.asarray(t)):
            assert made.tolist() == t.tolist()

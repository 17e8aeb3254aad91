"""numpy's files, read and written without numpy; damaged ones."""

from __future__ import annotations

import io

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.cli.npy import from_npy, to_npy
from polygrad.errors import ArgumentError, DTypeError

ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
    np.asfortranarray(np.arange(24, dtype=np.int16).reshape(2, 3, 4)),
    np.array(1.5),
    np.array([True, False]),
    np.zeros((0, 3), np.uint8),
    np.float16([1, 2]),
    np.uint64([1 << 63]),
]


def file_of(array, version=(1, 0)) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version)
    return out.getvalue()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_files_of_numpy_are_read(array, version):
    found = from_npy(memoryview(file_of(array, version)), "x")
    assert str(found.dtype) == array.dtype.name and found.shape == array.shape
    np.testing.assert_array_equal(found.numpy(), array)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_numpy_reads_what_is_written(array):
    found = np.load(io.BytesIO(to_npy(Tensor(np.ascontiguousarray(array).reshape(array.shape)))))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_a_transposed_tensor_is_written_in_its_order():
    found = np.load(io.BytesIO(to_npy(Tensor([[1, 2, 3], [4, 5, 6]]).T)))
    assert found.tolist() == [[1, 4], [2, 5], [3, 6]]


GOOD = file_of(np.float32([1, 2]))


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "x: it is no .npy file"),
        (b"PK\x03\x04" + bytes(20), "no .npy file"),
        (GOOD[:-1], "8 bytes of elements expected, got 7"),
        (GOOD + b"\0", "8 bytes of elements expected, got 9"),
        (GOOD[:8] + b"\xff\xff" + GOOD[10:], "a header of 65535 bytes"),
        (GOOD.replace(b"(2,)", b"2   "), "header is damaged"),
        (GOOD.replace(b"(2,)", b"(-2)"), "header is damaged"),
        (GOOD.replace(b"'descr'", b"'descs'"), "header is damaged"),
        (GOOD.replace(b"{'", b"[["), "header is damaged"),
        (GOOD.replace(b"False", b"exit "), "header is damaged"),
    ],
)
def test_damaged_files(data, match):
    with pytest.raises(ArgumentError, match=match):
        from_npy(memoryview(data), "x")


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([1], ">i4"), np.array([1j]), np.array([(1,)], [("a", "i4")])]
)
def test_elements_that_no_tensor_holds(array):
    with pytest.raises(DTypeError, match="numpy's type"):
        from_npy(memoryview(file_of(array)), "x")


def test_a_dtype_that_numpy_does_not_have():
    with pytest.raises(DTypeError, match="numpy has no dtype bfloat16"):
        to_npy(Tensor([1.0]).cast("bfloat16"))

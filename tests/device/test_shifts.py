"""Shifts by any number of bits are torch's, constant or not, and the same in every run."""

from __future__ import annotations

import pytest
from plain import dtypes_of

np = pytest.importorskip("numpy", reason="it holds the arrays")
torch = pytest.importorskip("torch", reason="it is the judge")

from polygrad import Tensor, dtypes  # noqa: E402

COUNTS = [-128, -33, -1, 0, 1, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 127]
NAMES = ["int8", "uint8", "int16", "int32", "int64"]


@pytest.mark.parametrize("name", NAMES)
def test_shifts_are_torchs(device, name):
    if dtypes.int64 not in dtypes_of(device) and name == "int64":
        pytest.skip("the device has no int64")
    info = np.iinfo(name)
    counts = np.array([n for n in COUNTS if info.min <= n <= info.max], name)
    values = np.array([0, 1, 2, 5, info.max, info.min, 77, info.max // 3], name)
    a, b = (x.reshape(-1).copy() for x in np.broadcast_arrays(values[:, None], counts))
    x, y, t, u = Tensor(a, device=device), Tensor(b, device=device), torch.tensor(a), torch.tensor(b)
    np.testing.assert_array_equal((x << y).numpy(), (t << u).numpy())
    np.testing.assert_array_equal((x >> y).numpy(), (t >> u).numpy())
    for n in COUNTS:
        np.testing.assert_array_equal((x << n).numpy(), (t << n).numpy(), f"<< {n}")
        np.testing.assert_array_equal((x >> n).numpy(), (t >> n).numpy(), f">> {n}")
    x <<= y
    np.testing.assert_array_equal(x.numpy(), (t << u).numpy())
    constant = Tensor(1, device=device, dtype=name)
    assert (constant << int(counts[-1])).item() == (torch.tensor(1, dtype=t.dtype) << int(counts[-1])).item()


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_shifts_of_wide_unsigned_integers_are_numpys(device, name):
    a = np.array([1, 3, np.iinfo(name).max] * 4, name)
    b = np.array([0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200], name)
    x, y = Tensor(a, device=device), Tensor(b, device=device)
    np.testing.assert_array_equal((x << y).numpy(), a << b)
    np.testing.assert_array_equal((x >> y).numpy(), a >> b)

"""Random numbers: the same seed gives the same bits on every device, and they are the ones that are known."""

from __future__ import annotations

import pytest
from plain import assert_close, dtypes_of, leaves

from polygrad import Tensor
from polygrad.dtype import dtypes
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def threefry(counter, key):
    """threefry2x32 with 20 rounds on Python integers: 64-bit counter and key, the low word first."""
    mask = 0xFFFFFFFF
    x, k = [counter & mask, counter >> 32], [key & mask, key >> 32]
    k.append(k[0] ^ k[1] ^ 0x1BD11BDA)
    x = [(x[0] + k[0]) & mask, (x[1] + k[1]) & mask]
    for i in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            x[0] = (x[0] + x[1]) & mask
            x[1] = ((x[1] << r | x[1] >> (32 - r)) & mask) ^ x[0]
        x = [(x[0] + k[(i + 1) % 3]) & mask, (x[1] + k[(i + 2) % 3] + i + 1) & mask]
    return x[0] | x[1] << 32


def test_threefry_of_the_published_vectors():
    # Random123's known answers: counter and key all zeros, all ones, digits of pi
    assert threefry(0, 0) == 0x99BA4EFE_6B200159
    assert threefry(2**64 - 1, 2**64 - 1) == 0xBB002BE7_1CB996FC
    assert threefry(0x85A308D3_243F6A88, 0x03707344_13198A2E) == 0x483DF7A0_C4923A9C


@pytest.mark.parametrize("n", [1, 5, 16, 37])
def test_threefry_bits(device, n):
    counters = [0, 1, 2**64 - 1, 2**32, 0x243F6A8885A308D3][:n] + [
        i * 0x9E3779B97F4A7C15 % 2**64 for i in range(max(n - 5, 0))
    ]
    keys = [(c * 31 + 7) % 2**64 for c in counters]
    c, k = (Tensor(v, device=device, dtype="uint64") for v in (counters, keys))
    got = Tensor(UOp(Ops.THREEFRY, dtypes.uint64, (c.uop, k.uop)), device=device).tolist()
    assert got == [threefry(a, b) for a, b in zip(counters, keys, strict=True)]


def draws(device, wide):
    Tensor.manual_seed(1337)
    out = {
        "uniform": Tensor.rand(37, device=device),
        "matrix": Tensor.rand(3, 5, device=device),
        "wide": Tensor.rand(6, device=device, dtype=wide),
        "half": Tensor.rand(9, device=device, dtype="float16"),
        "integers": Tensor.randint(41, low=-3, high=1000, device=device),
        "normal": Tensor.randn(19, device=device),
        "again": Tensor.rand(37, device=device),
    }
    return {name: t.tolist() for name, t in out.items()}


def test_every_device_draws_the_same(device):
    wide = dtypes_of(device)[-1]
    here, judge = draws(device, wide), draws("INTERP", wide)
    normal, judged = here.pop("normal"), judge.pop("normal")
    assert here == judge
    assert_close(normal, judged, 1e-5, 1e-6)  # a logarithm and a cosine may differ in the last bit
    assert here["uniform"] != here["again"]
    assert all(0 <= x < 1 for name in ("uniform", "matrix", "wide", "half") for x in leaves(here[name]))
    assert all(-3 <= x < 1000 for x in here["integers"])


def test_the_same_seed_again(device):
    assert draws(device, "float32") == draws(device, "float32")


def test_a_lazy_draw_does_not_depend_on_when_it_is_computed(device):
    Tensor.manual_seed(5)
    a, b = Tensor.rand(8, device=device), Tensor.rand(8, device=device)
    late = (b.tolist(), a.tolist())
    Tensor.manual_seed(5)
    c = Tensor.rand(8, device=device).tolist()
    assert late == (Tensor.rand(8, device=device).tolist(), c)

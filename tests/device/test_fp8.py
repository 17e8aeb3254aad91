"""Floats of 8 bits: conversions are torch's to the bit, arithmetic that of float32, rounded."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
from plain import dtypes_of  # noqa: E402

from polygrad import Tensor, TinyJit, dtypes  # noqa: E402
from polygrad.dtype import float_from_bits, float_to_bits, promote, rounded  # noqa: E402
from polygrad.errors import DTypeError  # noqa: E402
from polygrad.nn.state import safe_load, safe_save, torch_load  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("default_device"),
    pytest.mark.filterwarnings("ignore:overflow encountered in cast"),  # numpy's, of what is tried
]
TORCH = {dtypes.fp8e4m3: torch.float8_e4m3fn, dtypes.fp8e5m2: torch.float8_e5m2}
fp8 = pytest.mark.parametrize("dtype", dtypes.fp8s)
BITS = bytes(range(256))


def samples(dtype):
    """Numbers of the format, what lies between them and just beside that, and ends of ranges."""
    values = sorted({x for x in (float_from_bits(dtype, b) for b in BITS) if math.isfinite(x)})
    out = [math.inf, -math.inf, math.nan, 1e300, -1e300, 1e-300, 5e-324, 464.0, 480.0, 61440.0, 65536.0]
    for a, b in pairwise(values):
        middle = (a + b) / 2
        out += [a, middle, math.nextafter(middle, -math.inf), math.nextafter(middle, math.inf)]
    rng = random.Random(1)
    out += [rng.uniform(-1, 1) * 2.0 ** rng.randint(-20, 17) for _ in range(300)]
    return [*out, *values, -0.0]


def same(got, want):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    np.testing.assert_array_equal(got, want)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


@fp8
def test_every_pattern_of_bits_is_torchs(dtype):
    theirs = torch.frombuffer(bytearray(BITS), dtype=TORCH[dtype]).double().numpy()
    same([float_from_bits(dtype, b) for b in BITS], theirs)
    for b, x in zip(BITS, theirs.tolist(), strict=True):
        assert math.isnan(x) or float_to_bits(dtype, x) == b


def in_torchs_range(dtype, x):
    """The numbers of x that every version of torch rounds alike: of those beyond the largest, some make it,
    others NaN."""
    largest = dtypes.finfo(dtype).max
    beyond = torch.tensor([2 * largest]).to(TORCH[dtype]).double().item()
    return x if beyond == rounded(dtype, 2 * largest) else [v for v in x if not abs(v) > largest]


@fp8
def test_python_numbers_round_once_as_torchs(dtype):
    x = [v for v in samples(dtype) if np.float64(np.float32(v)) == v or math.isnan(v)]
    compared = in_torchs_range(dtype, x)
    want = torch.tensor(compared, dtype=torch.float32).to(TORCH[dtype])
    same([rounded(dtype, v) for v in compared], want.double().numpy())
    assert math.copysign(1, rounded(dtype, -0.0)) == -1
    just_over = 1 + 2.0**-dtype.significand + 2.0**-50  # in float32 a half of the last place
    assert rounded(dtype, just_over) == 1 + 2.0 ** (1 - dtype.significand)
    assert rounded(dtype, 2**64 + 1) == rounded(dtype, 1e300)


@fp8
def test_limits_are_torchs(dtype):
    info, theirs = dtypes.finfo(dtype), torch.finfo(TORCH[dtype])
    assert (info.bits, info.max, info.min, info.tiny) == (8, theirs.max, theirs.min, theirs.tiny)
    assert info.eps == theirs.eps and rounded(dtype, info.smallest_subnormal) == info.smallest_subnormal


@fp8
def test_memory_is_read_as_every_dtype(device, dtype):
    t = Tensor(BITS, dtype=dtype)
    theirs = torch.frombuffer(bytearray(BITS), dtype=TORCH[dtype])
    same(t.tolist(), theirs.double().numpy())
    same(t.numpy(), theirs.double().numpy())
    assert bytes(t.data()) == BITS and t.numpy().dtype == np.float32
    for to in ("float16", "bfloat16", "float32", "float64"):
        same(t.cast(to).float().numpy(), theirs.to(getattr(torch, to)).float().numpy())
    small = Tensor([0.0, -1.5, 3.0, 200.0], dtype=dtype)
    assert small.int().tolist() == [0, -1, 3, int(rounded(dtype, 200))]
    assert small.bool().tolist() == [False, True, True, True]


@fp8
def test_casts_round_once_and_overflow_as_torchs(device, dtype):
    x = samples(dtype)
    single = np.array(x).astype(np.float32)
    compared = np.array(in_torchs_range(dtype, single.tolist()), np.float32)
    same(Tensor(compared).cast(dtype).tolist(), torch.tensor(compared).to(TORCH[dtype]).double().numpy())
    if dtypes.float64 in dtypes_of(device):
        same(Tensor(np.array(x)).cast(dtype).tolist(), [rounded(dtype, v) for v in x])
    half = np.array(x).astype(np.float16)
    same(Tensor(half).cast(dtype).tolist(), [rounded(dtype, v) for v in half.tolist()])
    for ints in (
        np.arange(-128, 128, dtype=np.int8),
        np.array([0, 1, 17, 449, 2**24 + 1, -(2**31)], np.int32),
    ):
        same(Tensor(ints).cast(dtype).tolist(), [rounded(dtype, v) for v in ints.tolist()])
    overflow = Tensor([1e6, -1e6, math.inf]).cast(dtype).tolist()
    largest = dtypes.finfo(dtype).max
    most = largest if dtype is dtypes.fp8e4m3 else math.inf
    assert overflow == [most, -most, most]


@fp8
def test_both_conventions_of_overflow(device, dtype):
    largest = dtypes.finfo(dtype).max
    # e4m3's largest is even, so that half a place beyond it is rounded to it; e5m2's is odd
    half = 464.0 if dtype is dtypes.fp8e4m3 else 61440.0
    wide = dtypes_of(device)[-1]
    exact = np.dtype(str(wide)).type(half)
    inside, beyond = float(np.nextafter(exact, 0)), float(np.nextafter(exact, np.inf))
    x = Tensor([1.5, inside, half, beyond, -beyond, 1e9, math.inf, -math.inf, math.nan], dtype=wide)
    got = x.cast(dtype, saturate=True).tolist()
    assert got[:8] == [1.5, *[largest] * 3, -largest, *[largest] * 2, -largest] and math.isnan(got[8])
    got = x.cast(dtype, saturate=False).tolist()
    over = math.nan if dtype is dtypes.fp8e4m3 else math.inf
    same(
        got,
        [
            1.5,
            largest,
            largest if dtype is dtypes.fp8e4m3 else over,
            over,
            -over,
            over,
            over,
            -over,
            math.nan,
        ],
    )
    assert Tensor([2, 100000]).cast(dtype, saturate=True).tolist() == [2, largest]
    with pytest.raises(DTypeError, match="expected saturate with fp8e4m3"):
        x.cast("float16", saturate=True)


def test_one_format_to_the_other(device):
    for a, b in (dtypes.fp8s, dtypes.fp8s[::-1]):
        t = Tensor(BITS, dtype=a).cast(b)
        same(t.tolist(), [rounded(b, float_from_bits(a, x)) for x in BITS])


OPERATIONS = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "subtract": lambda x, y: x - y,
    "scalar": lambda x, y: x * 1.5 + 0.25,
}


@fp8
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_float32s_rounded_each(device, dtype, name):
    rng = np.random.default_rng(0)
    x, y = (Tensor(rng.normal(size=64).astype(np.float32)).cast(dtype).realize() for _ in range(2))
    got = OPERATIONS[name](x, y)
    assert got.dtype is dtype
    wide = [t.float().numpy() for t in (x, y)]
    if name == "scalar":
        product = np.array([rounded(dtype, v) for v in (wide[0] * np.float32(1.5)).tolist()], np.float32)
        want = product + np.float32(0.25)
    else:
        want = OPERATIONS[name](*wide)
    same(got.tolist(), [rounded(dtype, v) for v in want.tolist()])


@fp8
def test_comparisons_sums_products_and_movement(device, dtype):
    rng = np.random.default_rng(1)
    x, y = (Tensor(rng.normal(size=(4, 6)).astype(np.float32)).cast(dtype).realize() for _ in range(2))
    a, b = x.float().numpy(), y.float().numpy()
    np.testing.assert_array_equal((x < y).numpy(), a < b)
    np.testing.assert_array_equal(x.maximum(y).numpy(), np.maximum(a, b))
    np.testing.assert_array_equal(x.max(1).numpy(), a.max(1))
    np.testing.assert_array_equal((x < y).where(x, y).numpy(), np.minimum(a, b))
    assert x.sum().dtype is dtype and x.sum().item() == rounded(dtype, float(a.sum(dtype=np.float64)))
    product = x.dot(y.T, dtype="float32")
    np.testing.assert_allclose(product.numpy(), a @ b.T, rtol=1e-5, atol=1e-5)
    moved = x.T.reshape(3, 8).flip(0).pad(((1, 0), (0, 2)))
    want = np.pad(a.T.reshape(3, 8)[::-1], ((1, 0), (0, 2)))
    np.testing.assert_array_equal(moved.numpy(), want)
    np.testing.assert_array_equal(x[Tensor([2, 0])].numpy(), a[[2, 0]])
    np.testing.assert_array_equal(x.cat(y).numpy(), np.concatenate([a, b]))
    assert bytes(x.bitcast("uint8").data()) == bytes(x.data()) == bytes(x.bitcast("int8").data())
    assert x.bitcast("uint8").bitcast(dtype).tolist() == x.tolist()
    assert x.isnan().any().item() is False and x.abs().min().item() == abs(a).min()


@fp8
def test_running_values(device, dtype):
    x = Tensor([[1.0, 3.0, -2.0, 5.0, 4.0], [0.5, -1.0, 0.25, 0.0, 2.0]], dtype=dtype)
    a = x.float().numpy()
    np.testing.assert_array_equal(x.cummax(1)[0].numpy(), np.maximum.accumulate(a, 1))
    np.testing.assert_array_equal(x.cummin(1)[0].numpy(), np.minimum.accumulate(a, 1))
    same(x.cumsum(1).tolist(), [[rounded(dtype, v) for v in row] for row in np.cumsum(a, 1).tolist()])
    same(x.sort(1)[0].numpy(), np.sort(a, 1))
    same(x.cumprod(1).tolist(), [[rounded(dtype, v) for v in row] for row in np.cumprod(a, 1).tolist()])


@fp8
def test_in_place_writes_captures_and_gradients(device, dtype):
    t = Tensor([1.0, 2.0, 3.0], dtype=dtype).realize()
    t[1:] += 0.5
    assert t.tolist() == [1, 2.5, 3.5]
    f = TinyJit(lambda x: (x.float() * 3).cast(dtype))
    for i in range(4):
        x = Tensor([float(i), 0.3], dtype=dtype).realize()
        assert f(x).tolist() == [rounded(dtype, 3.0 * i), rounded(dtype, 3 * rounded(dtype, 0.3))]
    w = Tensor([1.0, 2.0], requires_grad=True)
    (w.cast(dtype).float() * Tensor([3.0, 4.0])).sum().backward()
    assert w.grad.tolist() == [3, 4]
    assert Tensor.zeros(3, dtype=dtype).tolist() == [0, 0, 0]
    assert Tensor.full((2,), 0.3, dtype=dtype).tolist() == [rounded(dtype, 0.3)] * 2
    assert Tensor([[-1.0, -2.0]], dtype=dtype).max_pool2d((1, 1), padding=(0, 0)).tolist() == [[-1, -2]]


@fp8
def test_safetensors_and_torch_files(dtype, tmp_path):
    t = Tensor(BITS, dtype=dtype).reshape(16, 16)
    back = safe_load(safe_save({"t": t}))["t"]
    assert back.dtype is dtype and bytes(back.data()) == BITS and back.shape == (16, 16)
    torch.save(torch.frombuffer(bytearray(BITS), dtype=TORCH[dtype]), tmp_path / "t.pt")
    loaded = torch_load(tmp_path / "t.pt")
    assert loaded.dtype is dtype and bytes(loaded.data()) == BITS


def test_promotion():
    a, b = dtypes.fp8s
    assert promote(a, b) is dtypes.float16 and promote(a, a) is a
    for d in (*dtypes.ints, dtypes.bool):
        assert promote(a, d) is a and promote(d, b) is b
    for d in dtypes.floats:
        assert promote(a, d) is d
    assert promote(a, dtypes.int8, dtypes.float32) is dtypes.float32
    assert dtypes.is_float("fp8e4m3") and a.bitsize == 8
    with pytest.raises(DTypeError, match="fp8e5m2, got 'fp8'"):
        Tensor([1.0], dtype="fp8")

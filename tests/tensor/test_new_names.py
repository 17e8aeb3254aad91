"""Names without a counterpart in torch: einops formulas, hashes, bitcasts, masks of fixed sizes, custom
gradients, checkpoints; and what is refused."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
import torch

from polygrad import Tensor, checkpoint, custom_gradient
from polygrad.errors import ArgumentError, AxisError, DTypeError, GradientError, OverflowError_, ShapeError
from polygrad.tensor import hashing

pytestmark = pytest.mark.usefixtures("default_device")
RNG = np.random.default_rng(5)
X = np.asarray(RNG.normal(size=(2, 12, 3)), np.float32)


@pytest.mark.parametrize(
    ("formula", "sizes", "want"),
    [
        ("b (h w) c -> b c h w", {"h": 4}, X.reshape(2, 4, 3, 3).transpose(0, 3, 1, 2)),
        ("... c -> c ...", {}, X.transpose(2, 0, 1)),
        ("b ... -> (b ...)", {}, X.reshape(-1)),
        ("b ... -> b (...)", {}, X.reshape(2, -1)),
        ("b h c -> b 1 h c", {}, X[:, None]),
        ("b h c -> b () (h c)", {}, X.reshape(2, 1, 36)),
        ("a b c->c b a", {}, X.T),
        ("(two a) ... -> two a ...", {"two": 2}, X[:, None]),
        ("b (h 1) c -> b h c", {}, X),
        ("b (h w) c -> (b h) (w c)", {"w": 6}, X.reshape(4, 18)),
    ],
)
def test_rearrange(device: str, formula: str, sizes: dict[str, int], want: np.ndarray) -> None:
    np.testing.assert_array_equal(Tensor(X).rearrange(formula, **sizes).numpy(), want)


@pytest.mark.parametrize(
    ("formula", "sizes", "error"),
    [
        ("a b -> a b c", {}, ShapeError), ("a b c -> a b", {}, ArgumentError), ("a b c", {}, ArgumentError),
        ("(a b c) -> a b c", {}, ShapeError), ("a (b c) d -> a b c d", {}, ArgumentError),
        ("a (b c) d -> a b c d", {"b": 5}, ShapeError), ("a b c -> a b c c", {}, ArgumentError),
        ("a (b (c)) d -> a b c d", {}, ArgumentError), ("a b c) -> a b c", {}, ArgumentError),
        ("a b c -> a b c", {"z": 2}, ArgumentError), ("a b 2 -> a b", {}, ArgumentError),
        ("a%b", {}, ArgumentError), ("a (b ...) -> a b ...", {}, ArgumentError),
        ("a b c -> a b (c", {}, ArgumentError),
        ("a b c -> a b c 2", {}, ArgumentError), ("a 1 c -> a c", {}, ShapeError),
    ],
)  # fmt: skip
def test_formulas_that_are_refused(formula: str, sizes: dict[str, int], error: type[Exception]) -> None:
    with pytest.raises(error, match="rearrange: "):
        Tensor(X).rearrange(formula, **sizes)


@pytest.mark.parametrize("n", [0, 1, 135, 136, 137])
@pytest.mark.parametrize("kind", ["sha3_224", "sha3_256", "sha3_512", "shake_128"])
def test_hashes_are_hashlibs(device: str, kind: str, n: int) -> None:
    if device != "CPU" and (n, kind) != (137, "sha3_256"):
        pytest.skip("integers: one case shows the device")
    data = bytes(RNG.integers(0, 256, n, dtype=np.uint8))
    t = Tensor(data) if n else Tensor.zeros(0, dtype="uint8")
    known: Any = hashlib.new(kind, data)
    assert bytes(t.keccak(kind).data()) == (known.digest(16) if kind == "shake_128" else known.digest())


def test_hash_of_rows_is_that_of_each_row(device: str) -> None:
    rows = RNG.integers(0, 256, (2, 5), dtype=np.uint8)
    found = Tensor(rows).keccak().numpy()
    assert [bytes(r) for r in found] == [hashlib.sha3_256(bytes(r)).digest() for r in rows]


@pytest.mark.parametrize("n", [0, 65])
def test_hash_is_a_tree_of_hashlibs_shake_128(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(hashing, "_CHUNK", 32)
    monkeypatch.setattr(hashing, "_LEAVES", 2)
    data = want = bytes(range(n))
    while True:
        want += bytes(-len(want) % 64 if want else 64)
        leaves = [hashlib.shake_128(want[i : i + 32]).digest(16) for i in range(0, len(want), 32)]
        nodes = [b"".join(leaves[i : i + 2]) for i in range(0, len(leaves), 2)]
        want = b"".join(hashlib.shake_128(node).digest(16) for node in nodes)
        if len(nodes) == 1:
            break
    assert bytes(Tensor(np.frombuffer(data, np.uint8)).hash().data()) == want


def test_random_bits_are_threefrys(device: str) -> None:
    """Threefry-2x32 with 20 rounds of a zero key and counter: Salmon et al.'s known answer."""
    zero = Tensor([0], dtype="uint64")
    assert zero.threefry(zero).tolist() == [0x99BA4EFE_6B200159]
    key, counter = Tensor([1, 2], dtype="uint32"), Tensor([3, 4], dtype="uint32")
    long = Tensor.random_bits(key, counter, 9).tolist()
    assert len(set(long)) == 9 and long != Tensor.random_bits(key, counter + 1, 9).tolist()


@pytest.mark.parametrize("dtype", ["uint16", "int32", "float32", "uint64", "float64", "int64", "float16"])
def test_bitcasts_to_larger_elements(device: str, dtype: str) -> None:
    x = RNG.integers(0, 100, (3, 16), dtype=np.uint8)  # no NaN, whose bits a host may change
    got = Tensor(x).bitcast(dtype)
    assert got.shape == x.view(dtype).shape
    np.testing.assert_array_equal(got.numpy().view(np.uint8), x)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int32", "float32"])
def test_bitcasts_to_smaller_elements(device: str, dtype: str) -> None:
    x = RNG.integers(0, 100, (2, 24), np.uint8).view(np.int64)  # no NaN, as above
    np.testing.assert_array_equal(Tensor(x).bitcast(dtype).numpy().view(np.uint8), x.view(np.uint8))


def test_masks_with_a_size(device: str) -> None:
    x = np.array([[0, 1, 2], [3, 0, 5]], np.int32)
    t = Tensor(x)
    assert t.nonzero().tolist() == np.argwhere(x).tolist()
    assert t.nonzero(size=5, fill_value=-1).tolist() == [*np.argwhere(x).tolist(), [-1, -1]]
    assert t.nonzero(size=2).tolist() == np.argwhere(x)[:2].tolist()
    assert t.masked_select(t > 1, size=4, fill_value=9).tolist() == [2, 3, 5, 9]
    assert t.masked_select(t > 1, size=2).tolist() == [2, 3]
    assert Tensor(1.0).nonzero().shape == (1, 0) and Tensor(0.0).nonzero().shape == (0, 0)
    assert Tensor.zeros(0, 2).nonzero().shape == (0, 2)


def test_counts(device: str) -> None:
    x = RNG.integers(0, 6, (4, 5)).astype(np.int32)
    for got, want in zip(
        Tensor(x).unique(True, True), np.unique(x, return_inverse=True, return_counts=True), strict=True
    ):
        np.testing.assert_array_equal(got.numpy(), want.reshape(got.shape))
    weights = np.asarray(RNG.normal(size=20), np.float32)
    flat = Tensor(x.ravel())
    assert flat.bincount().tolist() == np.bincount(x.ravel()).tolist()
    np.testing.assert_allclose(
        flat.bincount(Tensor(weights), 9).numpy(), np.bincount(x.ravel(), weights, 9), rtol=1e-5, atol=1e-5
    )
    odd = Tensor([float("nan"), 1.0, float("nan"), 1.0])
    assert [v != v for v in odd.unique().tolist()] == [False, True]
    none = Tensor.zeros(2, 0)
    assert none.unique().shape == (0,)
    assert [t.shape for t in none.unique(return_inverse=True)] == [(0,), (2, 0)]
    assert [t.shape for t in none.unique(return_counts=True)] == [(0,), (0,)]


def test_many_masks(device: str) -> None:
    x = RNG.normal(size=(40, 50) if device != "INTERP" else (4, 50)).astype(np.float32)
    t = Tensor(x, requires_grad=True)
    for least in (-9.0, 0.3, 2.0, 9.0):  # all, some, few, none
        picked = t.masked_select(t.detach() > least)
        assert picked.tolist() == x[x > least].tolist()
        assert (t.detach() > least).nonzero().tolist() == np.argwhere(x > least).tolist()
        (gradient,) = picked.square().sum().gradient(t)
        np.testing.assert_allclose(gradient.numpy(), np.where(x > least, 2 * x, 0), rtol=1e-6)


@pytest.mark.parametrize("right", [False, True])
def test_places_in_long_rows(device: str, right: bool) -> None:
    n = 300 if device != "INTERP" else 70
    side = "right" if right else "left"
    for dtype, odd in (("float32", [np.nan, np.inf, -np.inf, -0.0]), ("int32", []), ("uint8", [])):
        rows = np.sort(np.append(RNG.integers(0, 99, n - len(odd)), odd).astype(dtype))
        values = np.append(RNG.integers(-1 if dtype != "uint8" else 0, 101, 40), odd).astype(dtype)
        got = Tensor(rows).searchsorted(Tensor(values), right)
        np.testing.assert_array_equal(got.numpy(), np.searchsorted(rows, values, side))
    batch = np.sort(RNG.normal(size=(3, n)).astype(np.float32))
    values = RNG.normal(size=(3, 5)).astype(np.float32)
    want = [np.searchsorted(b, v, side) for b, v in zip(batch, values, strict=True)]
    np.testing.assert_array_equal(Tensor(batch).searchsorted(Tensor(values), right).numpy(), want)
    assert Tensor(batch[0]).searchsorted(0.5, right).item() == np.searchsorted(batch[0], 0.5, side)
    deep = Tensor(batch).reshape(1, 3, n).searchsorted(Tensor(values).reshape(1, 3, 5), right)
    np.testing.assert_array_equal(deep.numpy(), [want])


def test_distinct_among_many(device: str) -> None:
    x = RNG.integers(0, 30, 400 if device != "INTERP" else 40).astype(np.int32)
    wanted = np.unique(x, return_inverse=True, return_counts=True)
    for got, want in zip(Tensor(x).unique(True, True), wanted, strict=True):
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("side", ["min", "max"])
def test_distinct_integers_at_the_ends_of_their_dtype(device: str, dtype: str, side: str) -> None:
    end = getattr(np.iinfo(dtype), side)
    distance = RNG.integers(0, 50, 60).astype(dtype)
    near = end + distance if side == "min" else end - distance
    ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max] * 3, dtype)  # far apart, but for 8 bits
    for x in (near, near.reshape(6, 10), near[:1], ends):
        wanted = np.unique(x, return_inverse=True, return_counts=True)
        found = Tensor(x).unique(True, True)
        assert found[0].dtype == dtype
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(got.numpy(), want.reshape(got.shape))
        np.testing.assert_array_equal(Tensor(x).unique().numpy(), wanted[0])


def test_masks_of_more_elements_than_results_are_padded_to(device: str) -> None:
    if device == "INTERP":
        pytest.skip("INTERP takes minutes for so many elements")
    x = RNG.random(150_000, dtype=np.float32)
    for least in (-1.0, 0.1, 0.5, 0.9, 2.0):  # all, those of three paddings, none
        t = Tensor(x)
        np.testing.assert_array_equal(t.masked_select(t > least).numpy(), x[x > least])
        np.testing.assert_array_equal((t > least).nonzero().numpy(), np.argwhere(x > least))
        np.testing.assert_array_equal(t[t > least].numpy(), x[x > least])


def test_small_arguments(device: str) -> None:
    assert Tensor([1, 2, 3]).roll((1,)).tolist() == [3, 1, 2]
    assert Tensor.zeros(6, 4).reshape(6, 2, None).shape == (6, 2, 2)
    assert Tensor.arange(2**31, 2**31 + 2).dtype == "int64"
    assert Tensor.arange(2**31, 2**31 + 2).tolist() == [2**31, 2**31 + 1]
    t = Tensor.full((2, 2), 3.0, contiguous=True)
    assert t.tolist() == [[3.0, 3.0]] * 2
    assert Tensor([1, 2]).usum(3, Tensor([4, 5])).tolist() == [8, 10]
    assert Tensor([True, False]).usum([Tensor([False, False])]).tolist() == [True, False]
    assert Tensor.const((1, 2)).tolist() == [1, 2] and Tensor.const(2.0, "int32").dtype == "int32"
    assert Tensor([1.0]).ufix(2).shape == () and Tensor.zeros(2, 3).max_shape == (2, 3)
    assert Tensor([1.0, 2.0]).allclose(Tensor([1.0, 2.1]), atol=0.2).item()
    assert Tensor([[1.0, 0.0], [0.0, 2.0]]).newton_schulz(30, (1.5, -0.5)).round().tolist() == [
        [1, 0],
        [0, 1],
    ]


CLOSE = [[1.0, 2.0], [2.0, 4.0]]
REFUSED: list[tuple[str, Any, type[Exception]]] = [
    ("uniform", lambda: Tensor.uniform(2, low=2.0, high=1.0), ArgumentError),
    ("normal", lambda: Tensor.normal(2, std=-1.0), ArgumentError),
    ("linspace", lambda: Tensor.linspace(0, 1, 3, dtype="bool"), DTypeError),
    ("max", lambda: Tensor.zeros(0, 3).max(0), ShapeError),
    ("axis", lambda: Tensor.zeros(3).cummax(1), AxisError),
    ("operand", lambda: Tensor([1], dtype="int8") + 300, OverflowError_),
    ("roll", lambda: Tensor([1, 2]).roll((1, 2)), ArgumentError),
    ("pad", lambda: Tensor([1, 2]).pad((2, 0), "reflect"), ShapeError),
    ("bitcast", lambda: Tensor([1, 2, 3], dtype="uint8").bitcast("float32"), ShapeError),
    ("bitcast", lambda: Tensor(1.0).bitcast("uint8"), ShapeError),
    ("bitcast", lambda: Tensor([True]).bitcast("uint8"), DTypeError),
    ("masked_select", lambda: Tensor([1]).masked_select(Tensor([1])), DTypeError),
    ("bincount", lambda: Tensor([-1]).bincount(), ArgumentError),
    ("bincount", lambda: Tensor([1.0]).bincount(), DTypeError),
    ("bincount", lambda: Tensor([[1]]).bincount(), ShapeError),
    ("histc", lambda: Tensor([1.0]).histc(0), ArgumentError),
    ("quantile", lambda: Tensor([1.0]).quantile(2.0), ArgumentError),
    ("quantile", lambda: Tensor([1.0]).quantile(0.5, interpolation="cubic"), ArgumentError),
    ("quantile", lambda: Tensor.zeros(0).quantile(0.5), ShapeError),
    ("searchsorted", lambda: Tensor([[1.0]]).searchsorted(Tensor([[1.0], [2.0]])), ShapeError),
    ("cross", lambda: Tensor([1, 2]).cross(Tensor([1, 2])), ShapeError),
    ("outer", lambda: Tensor([[1]]).outer(Tensor([1])), ShapeError),
    ("trace", lambda: Tensor([1]).trace(), ShapeError),
    ("vander", lambda: Tensor([[1]]).vander(), ShapeError),
    ("cdist", lambda: Tensor([[1.0]]).cdist(Tensor([[1.0, 2.0]])), ShapeError),
    ("cdist", lambda: Tensor([[1.0]]).cdist(Tensor([[1.0]]), -1.0), ArgumentError),
    ("inv", lambda: Tensor.zeros(2, 3).inv(), ShapeError),
    ("det", lambda: Tensor([1.0]).det(), ShapeError),
    ("solve", lambda: Tensor.eye(2).solve(Tensor([1.0, 2.0, 3.0])), ShapeError),
    ("qr", lambda: Tensor.eye(2).qr("raw"), ArgumentError),
    ("eigh", lambda: Tensor.zeros(2, 3).eigh(), ShapeError),
    ("newton_schulz", lambda: Tensor([1.0]).newton_schulz(1, (1.0,)), ShapeError),
    ("newton_schulz", lambda: Tensor.eye(2).newton_schulz(1, ()), ArgumentError),
    ("fft", lambda: Tensor([1.0, 2.0, 3.0]).fft(), ShapeError),
    ("fft", lambda: Tensor([[1.0, 2.0]]).fft(norm="none"), ArgumentError),
    ("rfft", lambda: Tensor.zeros(0).rfft(), ArgumentError),
    ("irfft", lambda: Tensor([[1.0, 2.0]]).irfft(0), ArgumentError),
    ("interpolate", lambda: Tensor.zeros(1, 1, 2).interpolate(3, "cubic"), ArgumentError),
    ("interpolate", lambda: Tensor.zeros(1, 1, 2).interpolate(3, "nearest", True), ArgumentError),
    ("interpolate", lambda: Tensor.zeros(1, 1, 2).interpolate(), ArgumentError),
    ("interpolate", lambda: Tensor.zeros(1, 1, 2).interpolate(0), ShapeError),
    ("max_unpool2d", lambda: Tensor.zeros(1, 1, 2).max_unpool2d(Tensor([1])), ShapeError),
    ("cross_entropy", lambda: Tensor.ones(1, 3).cross_entropy(Tensor([0]), weight=Tensor([1])), ShapeError),
    ("kl_div", lambda: Tensor.zeros(2).kl_div(Tensor.zeros(3)), ShapeError),
    ("huber_loss", lambda: Tensor.zeros(2).huber_loss(Tensor.zeros(2), delta=0.0), ArgumentError),
    ("keccak", lambda: Tensor(b"a").keccak("md5"), ArgumentError),
    ("threefry", lambda: Tensor([1]).threefry(Tensor([1])), DTypeError),
    ("random_bits", lambda: Tensor.random_bits(Tensor([1]), Tensor([1]), 3), ArgumentError),
    ("as_param", lambda: Tensor([1]).as_param(), GradientError),
    ("custom_gradient", lambda: custom_gradient(lambda x: 3, lambda *g: None)(Tensor([1.0])), GradientError),
    ("checkpoint", lambda: checkpoint(lambda x: x.int(), Tensor([1.0])), GradientError),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "call", "error"), REFUSED, ids=[f"{i}-{r[0]}" for i, r in enumerate(REFUSED)]
)
def test_what_is_refused_names_itself(name: str, call: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        call()


def test_a_tensor_keeps_its_size() -> None:
    t = Tensor([1, 2])
    with pytest.raises(ArgumentError, match="fixed size"):
        del t[0]


def test_singular_matrices(device: str) -> None:
    assert Tensor(CLOSE).det().item() == 0
    assert not np.isfinite(Tensor(CLOSE).inv().numpy()).any()
    assert np.isnan(Tensor([[-1.0]]).cholesky().item())
    zero = Tensor.zeros(3, 2)
    q, r = zero.qr("complete")
    np.testing.assert_allclose((q @ q.T).numpy(), np.eye(3), atol=1e-6)
    assert r.abs().max().item() == 0
    u, s, _ = Tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]).svd()
    assert s.tolist() == [1.0, 0.0]
    np.testing.assert_allclose((u.T @ u).numpy(), np.eye(3), atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 0), (2, 3, 0), (2, 0, 3)])
def test_singular_vectors_of_empty_matrices(shape: tuple[int, ...]) -> None:
    for full in (True, False):
        want = torch.linalg.svd(torch.zeros(shape), full_matrices=full)
        for got, torchs in zip(Tensor.zeros(*shape).svd(full), want, strict=True):
            assert got.shape == tuple(torchs.shape) and (not full or got.tolist() == torchs.tolist())


# --- gradients of one's own


def test_custom_gradients(device: str) -> None:
    straight = custom_gradient(lambda x: x.round(), lambda g, y, x: g)
    x = Tensor([0.4, 1.6])
    assert straight(x).tolist() == [0.0, 2.0]
    assert (straight(x) * 3).sum().gradient(x)[0].tolist() == [3.0, 3.0]
    cube = custom_gradient(lambda x: x * x * x, lambda g, y, x: g * x * x * 3.0)
    (first,) = cube(x).sum().gradient(x)
    (second,) = first.sum().gradient(x)
    np.testing.assert_allclose(second.numpy(), [2.4, 9.6], rtol=1e-5)
    a, b = Tensor([2.0]), Tensor([3.0])
    product = custom_gradient(lambda a, b, times: a * b * times, lambda g, y, a, b: (g * 10.0, None))
    assert [t.item() for t in product(a, b, 2).sum().gradient(a, b)] == [10.0, 0.0]
    wrong = custom_gradient(lambda a, b: a * b, lambda g, y, a, b: g)
    with pytest.raises(GradientError, match="expected 2 gradients"):
        wrong(a, b).sum().gradient(a)
    bad = custom_gradient(lambda a: a.sum(), lambda g, y, a: g)
    with pytest.raises(ShapeError, match=r"expected a gradient of shape \(2,\)"):
        bad(x).gradient(x)


def test_a_custom_gradient_compiles_once(device: str) -> None:
    from polygrad.engine.stats import stats

    f = custom_gradient(lambda x: x * x, lambda g, y, x: g * x)
    counts = []
    for i in range(4):
        x = Tensor([1.0, float(i) + 0.25])
        f(x).sum().gradient(x)[0].realize()
        counts.append(stats.kernels_compiled + stats.kernels_found)
    assert counts[1] == counts[3]


def test_a_checkpoint_computes_again_and_agrees(device: str) -> None:
    if device == "INTERP":
        pytest.skip("INTERP would take long")
    weights = [Tensor(np.asarray(RNG.normal(size=(8, 8)), np.float32)).realize() for _ in range(3)]

    def block(x: Any) -> Any:
        for w in weights:
            x = (x @ w).tanh().dropout(0.2)
        return x

    def run(call: Any) -> list[np.ndarray]:
        Tensor.manual_seed(3)
        x = Tensor.ones(4, 8).contiguous().realize()
        with Tensor.train():
            loss = call(call(x)).square().sum()
            grads = loss.gradient(x, *weights)
            loss.realize(*grads)
        return [loss.numpy(), *[g.numpy() for g in grads]]

    for got, want in zip(run(lambda x: checkpoint(block, x)), run(block), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_checkpoint_can_be_differentiated_again(device: str) -> None:
    x = Tensor([0.5, -1.0])
    (first,) = checkpoint(lambda t: t.exp() * t, x).sum().gradient(x)
    (second,) = first.sum().gradient(x)
    t = torch.tensor([0.5, -1.0], requires_grad=True)
    np.testing.assert_allclose(second.numpy(), ((2 + t) * t.exp()).detach().numpy(), rtol=1e-5)

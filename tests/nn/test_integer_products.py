"""Products of packed weights with activations in 8 bits: the sums of integers that they are, how near they
are to products of floats, and where they are not used."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packed_weights import KINDS, PACKED, numbers, some_packed

import polygrad
from polygrad import Tensor, TinyJit, Variable, nn
from polygrad.codegen.kernels.passes import kernels_of
from polygrad.codegen.lower.passes import lower
from polygrad.engine.devices import Device
from polygrad.engine.normalize import normalize
from polygrad.errors import ArgumentError, AxisError, DTypeError, ShapeError
from polygrad.nn.integer_products import CODES, to_int8
from polygrad.nn.packed import PackedWeight, linear
from polygrad.nn.state import get_state_dict, load_state_dict, safe_load, safe_save
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

pytestmark = pytest.mark.usefixtures("default_device")
KINDS_OF_INTEGERS = tuple(CODES)
OTHERS = [kind for kind in KINDS if kind not in CODES]
SMALL_BLOCKS = ("q2_k", "q3_k", "q6_k")


def block_of(kind: str) -> int:
    return 16 if kind in SMALL_BLOCKS else 32


def rounded(x: np.ndarray, size: int) -> np.ndarray:
    """What `to_int8` makes of x, in float64: integers times their scales."""
    blocks = x.reshape(-1, size)
    scales = np.abs(blocks).max(-1, keepdims=True) / np.float32(127)
    inverse = np.where(scales == 0, 0, 1 / np.where(scales == 0, 1, scales)).astype(np.float32)
    return (np.round(blocks * inverse).astype(np.float64) * scales).reshape(x.shape)


def product(x: np.ndarray, weight: PackedWeight) -> np.ndarray:
    with Tensor.no_grad():
        out: np.ndarray = linear(Tensor(x), weight).numpy()
    return out


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("kind", KINDS_OF_INTEGERS)
def test_the_sums_of_integers_within_1e_6_of_float64(device: str, kind: str, rows: int) -> None:
    """Of a matrix whose rows are no whole number of panels, on every device."""
    packed = some_packed(kind, 20)
    x = numbers(rows, 256, seed=rows)
    x[0, :64] = 0
    dense = packed.dense().numpy().astype(np.float64)
    expected = rounded(x, block_of(kind)) @ dense.T
    got = product(x, packed.with_activations("int8"))
    assert abs(got - expected).max() < 1e-6 * (np.abs(x).astype(np.float64) @ np.abs(dense).T).max()


@pytest.mark.parametrize("kind", KINDS_OF_INTEGERS)
def test_products_of_floats_within_1_254th_of_the_largest_activation_of_a_block(kind: str) -> None:
    packed, x = some_packed(kind, 48), numbers(37, 256)
    dense = packed.dense().numpy()
    largest = np.abs(x.reshape(len(x), -1, block_of(kind))).max(-1).repeat(block_of(kind), -1)
    bound = largest @ np.abs(dense).T / 254
    difference = np.abs(product(x, packed.with_activations("int8")) - x @ dense.T)
    assert (difference <= bound * 1.001).all()
    assert difference.max() > 0


def test_codes_of_all_values_of_a_byte() -> None:
    """Also -128, which packing never makes and a file may have."""
    bits = np.arange(256).astype(np.uint8).view(np.int8).reshape(8, 1, 32)
    planes = {"scales": Tensor(np.ones((8, 1), np.float16)), "bits": Tensor(bits)}
    x = np.full((1, 32), -127, np.float32)
    got = product(x, PackedWeight("q8_0", planes, "int8"))
    np.testing.assert_array_equal(got, x @ bits.reshape(8, 32).T.astype(np.float32))


def test_rows_of_more_axes_and_a_bias() -> None:
    layer = nn.Linear(256, 24)
    dense = some_packed("q4_0", 24)
    layer.weight = dense.with_activations("int8")
    assert layer.bias is not None
    x = numbers(2, 3, 256)
    with Tensor.no_grad():
        got = layer(Tensor(x)).numpy()
    expected = rounded(x, 32) @ dense.dense().numpy().T + layer.bias.numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS_OF_INTEGERS)
def test_panels_have_the_same_rows(kind: str) -> None:
    packed = some_packed(kind, 40)
    int8, dense = packed.with_activations("int8"), packed.dense().numpy()
    assert int8.shape == packed.shape and int8.device == packed.device
    np.testing.assert_array_equal(int8.dense().numpy(), dense)
    np.testing.assert_array_equal(int8[Tensor([39, 0, 17])].numpy(), dense[[39, 0, 17]])
    np.testing.assert_array_equal(int8[3].numpy(), dense[3])
    part = int8[5:30]
    assert part.activations == "int8"
    np.testing.assert_array_equal(part.dense().numpy(), dense[5:30])
    back = int8.with_activations("float32")
    np.testing.assert_array_equal(back.dense().numpy(), dense)
    assert back.nbytes() == packed.nbytes()


def test_integers_and_their_scales() -> None:
    x = numbers(2, 64)
    x[1, 32:] = 0
    found = to_int8(Tensor(x), 32)
    assert found.q.dtype.name == "int8" and found.q.shape == (2, 2, 32) and found.scales.shape == (2, 2)
    q, scales = found.q.numpy().astype(np.float64), found.scales.numpy()
    assert np.abs(q).max() == 127 and (q[1, 1] == 0).all() and scales[1, 1] == 0
    np.testing.assert_allclose(found.totals.numpy(), q.sum(-1) * scales, rtol=1e-6)
    np.testing.assert_allclose((q * scales[..., None]).reshape(2, 64), rounded(x, 32), rtol=1e-6)


def test_a_product_that_a_gradient_goes_through_is_of_floats() -> None:
    packed, x = some_packed("q4_0", 24), numbers(3, 256)
    int8, dense = packed.with_activations("int8"), packed.dense().numpy()
    input_ = Tensor(x).requires_grad_()
    out = linear(input_, int8)
    np.testing.assert_allclose(out.numpy(), x @ dense.T, rtol=1e-4, atol=1e-3)
    out.sum().backward()
    assert input_.grad is not None
    np.testing.assert_allclose(input_.grad.numpy(), np.ones((3, 24)) @ dense, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", OTHERS)
def test_kinds_without_integers_have_floats(kind: str) -> None:
    packed = some_packed(kind, 16)
    assert packed.with_activations(None) is packed
    with pytest.raises(
        ArgumentError, match=f"activations: int8 is for matrices of the kinds int8.*got {kind}"
    ):
        packed.with_activations("int8")


def test_errors() -> None:
    packed = some_packed("q8_0", 16)
    with pytest.raises(ArgumentError, match="activations: expected one of float32, int8, got 'int4'"):
        packed.with_activations("int4")
    with pytest.raises(ArgumentError, match="got q8_0 and 256 columns in 3 axes"):
        some_packed("q8_0", 2, 16).with_activations("int8")
    with pytest.raises(ShapeError, match=r"linear: expected \(..., 256\) for <PackedWeight q8_0"):
        product(numbers(2, 128), packed.with_activations("int8"))
    model = [nn.Linear(64, 32), nn.Linear(32, 10)]
    before = {name: t.numpy() for name, t in get_state_dict(model).items()}
    with pytest.raises(ArgumentError, match=r"quantize: 0\.weight: fp8 of 64 columns takes no activations"):
        polygrad.quantize(model, "fp8", activations="int8")
    for name, t in get_state_dict(model).items():
        np.testing.assert_array_equal(t.numpy(), before[name])


def test_a_model_and_its_copies() -> None:
    """Copied, saved and loaded, and captured."""

    def made() -> Any:
        return polygrad.quantize([nn.Linear(64, 40), Tensor.relu], "q8_0", activations="int8")

    model, x = made(), Tensor(numbers(2, 64))
    assert model[0].weight.activations == "int8"
    with Tensor.no_grad():
        expected = x.sequential(model).numpy()
        np.testing.assert_array_equal(x.sequential(copy.deepcopy(model)).numpy(), expected)
        other = made()
        load_state_dict(other, get_state_dict(model))
        np.testing.assert_array_equal(x.sequential(other).numpy(), expected)
        step = TinyJit(lambda x: x.sequential(model).realize())
        for _ in range(3):
            np.testing.assert_array_equal(step(x).numpy(), expected)


@pytest.mark.parametrize("kind", [kind for kind in KINDS_OF_INTEGERS if kind in PACKED])
def test_a_file_of_a_model_does_not_depend_on_its_activations(kind: str, tmp_path: Path) -> None:
    """A device that multiplies bytes has other layouts by default than one that does not."""
    for saved, loaded in (("int8", "float32"), ("float32", "int8"), ("int8", "int8")):
        model = polygrad.quantize([nn.Linear(64, 40)], kind, activations=saved)
        other = polygrad.quantize([nn.Linear(64, 40)], kind, activations=loaded)
        before = other[0].weight.planes["scales"].shape
        safe_save(get_state_dict(model), tmp_path / "model.safetensors")
        load_state_dict(other, safe_load(tmp_path / "model.safetensors"))
        assert other[0].weight.activations == loaded and other[0].weight.planes["scales"].shape == before
        np.testing.assert_array_equal(other[0].weight.dense().numpy(), model[0].weight.dense().numpy())
        x = numbers(2, 64)
        expected = product(x, model[0].weight.with_activations(loaded))
        np.testing.assert_array_equal(product(x, other[0].weight), expected)
    wrong = polygrad.quantize([nn.Linear(64, 60)], kind, activations="float32")
    with pytest.raises(ShapeError, match=r"load_state_dict: 0\.weight\.scales: expected shape \(3, .*, 16\)"):
        load_state_dict(other, get_state_dict(wrong))


@pytest.mark.parametrize("rows", [96, 100])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_rows_are_looked_up_by_their_numbers_also_from_the_end(device: str, dtype: str, rows: int) -> None:
    weight = PackedWeight.of(Tensor(numbers(rows, 64)), "q8_0")
    int8, dense = weight.with_activations("int8"), weight.dense().numpy()
    index = [[0, 17, rows - 1], [5, 16, 31]] if dtype[0] == "u" else [[0, 17, rows - 1], [-1, 16, -rows]]
    np.testing.assert_array_equal(int8[Tensor(index, dtype=dtype)].numpy(), dense[np.array(index)])
    np.testing.assert_array_equal(int8[-1].numpy(), dense[-1])
    # rows that a device computed and that do not exist are 0
    absent = (Tensor([rows, -rows - 1, rows + 11, 10**6, -(10**6)]).realize() + 0).realize()
    np.testing.assert_array_equal(int8[absent].numpy(), np.zeros((5, 64)))


@pytest.mark.parametrize("activations", ["float32", "int8"])
def test_rows_are_looked_up_as_those_of_a_tensor(activations: str) -> None:
    weight = PackedWeight.of(Tensor(numbers(96, 64)), "q8_0").with_activations(activations)
    dense = weight.dense().numpy()
    for wrong in ([96], [-97], [2**32 + 1]):
        with pytest.raises(AxisError, match=rf"index {wrong[0]} .* out of range: expected -96 to 95"):
            weight[Tensor(wrong, dtype="int64")]
    with pytest.raises(DTypeError, match="index: expected integers, or bools with axes, got float32"):
        weight[Tensor([1.0])]
    mask = np.arange(96) % 7 == 0
    np.testing.assert_array_equal(weight[Tensor(mask)].numpy(), dense[mask])
    assert weight[Tensor([], dtype="int32")].numpy().shape == (0, 64)
    n = Variable("n", 1, 8)
    index = Tensor([3, 95, 0, 17, 40, 41, 42, 43])
    step = TinyJit(lambda index: weight[index].sum(0).realize())
    for size in (2, 8, 5, 1):
        got = step(index[: n.bind(size)]).numpy()
        np.testing.assert_allclose(got, dense[index.numpy()[:size]].sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("activations", ["float32", "int8"])
@pytest.mark.parametrize("kind", KINDS_OF_INTEGERS)
def test_a_look_up_has_no_loop_over_all_rows(kind: str, activations: str) -> None:
    rows = 16 * 1000  # whole panels: loops over rows would be over panels and rows of a panel
    weight = some_packed(kind, rows).with_activations(activations)
    target = Device.backend("CPU").target
    for index in (Tensor([1, 15999, 5]).realize(), 15999):
        calls = kernels_of(normalize(UOp.sink(weight[index].uop)).sink, target, True).calls
        loops = [
            node.src[0].arg if node.src[0].is_const else rows
            for call in calls
            for node in lower(call.ast, target)
            if node.op is Ops.RANGE
        ]
        assert calls and max(loops, default=0) <= 256, loops


def test_float64_is_multiplied_in_float64() -> None:
    weight = PackedWeight.of(Tensor.randn(16, 64), "q8_0").with_activations("int8")
    x = Tensor.randn(2, 64).cast("float64")
    found = linear(x, weight)
    want = x.numpy() @ weight.dense().numpy().astype(np.float64).T
    assert found.dtype.name == "float64" and np.abs(found.numpy() - want).max() < 1e-12
